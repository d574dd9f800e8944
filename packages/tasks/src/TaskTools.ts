/**
 * Tools with which a model uses long tasks in a client without tasks: `task_status` waits for a task and returns its
 * status and result, `task_answer` answers its questions, `task_cancel` cancels it, and `task_list` lists the tasks of
 * an identified caller.
 *
 * With these tools, a call of a task waits no longer than `maxWait`. Then it returns a text with the task id and how to
 * continue. It does so immediately when the task asks something that the client cannot be asked. Since the model can
 * answer forms, a task may use forms in any client. Clients with tasks do not see the tools.
 *
 * @example
 * const Server = McpServer.layer({ name: "bakery", version: "1.0.0" },
 *   Task.layer(bake, baking), Tasks.layer(), TaskTools.layer({ waitTimeout: "10 seconds" }))
 */
import { resolve } from "@skein/runtime/Options"
import type { Caller } from "@skein/runtime/RequestContext"
import { Catalog } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as Extension from "@skein/server/Extension"
import type { Visible } from "@skein/server/Registry"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as modelTools from "./internal/protocol/modelTools.ts"
import { findTaskService, type TaskService } from "./internal/protocol/taskService.ts"
import { declaresTasks } from "./internal/protocol/taskDecision.ts"

/** The tools for models. */
export interface Options {
  /**
   * How long a call of a task waits for the result, and `task_status` waits for a change (at most one hour): 20 seconds
   * by default. Raise it for clients with long request timeouts: it must be shorter than these, which often are one
   * minute.
   */
  readonly waitTimeout?: Duration.Input | undefined
  /**
   * Which callers see the tools. Default: those without tasks. Since 2026-07-28 clients declare tasks with each
   * request. In 2025-11-25 clients do not declare that they create tasks; a client that receives tasks (`tasks` among
   * its capabilities) counts as one with tasks. It must be fast.
   */
  readonly visible?: Visible | undefined
}

/** Whether a client has tasks, as far as it declares. */
const hasTasks = ({ capabilities, revision }: Caller): boolean =>
  revision >= "2026-07-28"
    ? declaresTasks(capabilities)
    : revision === "2025-11-25" && capabilities["tasks"] !== undefined

/**
 * Offers the tools. `Tasks.layer` must be among the definitions of the server; without it the server dies at its start.
 * Fails with `DefinitionError` `Duplicate` if the server has a tool with one of these names.
 *
 * The tools respect the owners of tasks: a caller cannot find out about tasks of others.
 *
 * @example
 * TaskTools.layer({ waitTimeout: "10 seconds" })
 */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> => {
  const { visible = (caller) => !hasTasks(caller), ...times } = options
  const { waitTimeout } = resolve(times, {}, { waitTimeout: "20 seconds" })
  return Layer.unwrap(Effect.map(Catalog, (catalog) => {
    let tasks: TaskService["Service"] | undefined
    const extension = Extension.layer({
      name: "tools for tasks",
      ready: Effect.suspend(() => {
        tasks = findTaskService(catalog)
        if (tasks === undefined) {
          return Effect.die(
            new Error("`TaskTools.layer` requires `Tasks.layer`: add it to the definitions of the server")
          )
        }
        tasks.modelTools = { visible, waitTimeout }
        return Effect.void
      })
    })
    return Layer.merge(extension, modelTools.layer(() => tasks!, { visible, waitTimeout }))
  }))
}
