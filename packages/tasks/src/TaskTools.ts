/**
 * Tools with which a model uses long tasks, in a client that has none: `task_status` looks at a task, waits for it and gives its
 * result, `task_answer` answers what it asks, `task_cancel` ends it, and `task_list` shows the caller's tasks, where callers are
 * identified.
 *
 * With them, a call of a task waits no longer than the `maxWait`: it is answered with a text that names the task and says how to go
 * on. It does so at once where the task asks something that the client cannot be asked; and since the model can answer forms, a
 * task may ask them in any client. Clients that have tasks themselves see none of this.
 *
 * @example
 * const Server = McpServer.layer({ name: "bakery", version: "1.0.0" },
 *   Task.layer(bake, baking), Tasks.layer(), TaskTools.layer({ maxWait: "10 seconds" }))
 */
import type { Caller } from "@skein/runtime/RequestContext"
import { Catalog } from "@skein/server/Catalog"
import type { DefinitionError } from "@skein/server/DefinitionError"
import * as Extension from "@skein/server/Extension"
import type { Visible } from "@skein/server/Registry"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { declares } from "./internal/protocol/call.ts"
import { type Face, faceOf } from "./internal/protocol/taskService.ts"
import * as modelTools from "./internal/protocol/modelTools.ts"

/** How models use tasks. */
export interface Options {
  /**
   * For how long a call of a task waits for the result, and `task_status` at most for a change (an hour at most): 20 seconds by
   * default. It should be less than what clients give a call, which is a minute for most.
   */
  readonly maxWait?: Duration.Input | undefined
  /**
   * Who has these tools, in place of: whoever has no tasks. Since 2026-07-28 clients declare them for each request. In 2025-11-25
   * no client says that it makes its calls tasks; those that can be asked with tasks themselves (`tasks` among the client's
   * capabilities) are taken for such. It must be quick.
   */
  readonly offered?: Visible | undefined
}

/** Whether a client has tasks, as far as it says. */
const hasTasks = ({ capabilities, revision }: Caller): boolean =>
  revision >= "2026-07-28" ? declares(capabilities) : revision === "2025-11-25" && capabilities["tasks"] !== undefined

/**
 * Offers the tools. `Tasks.layer` has to be among the definitions of the server: without it the server is not built, and dies with
 * a line that says so. A tool of the server's that has one of these names fails it with `DefinitionError` `Duplicate`.
 *
 * A task belongs to whom it belongs to: of somebody else's task these tools know nothing, as the methods do.
 */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> => {
  const { offered = (caller) => !hasTasks(caller) } = options
  const maxWait = Duration.toMillis(options.maxWait ?? "20 seconds")
  return Layer.unwrap(Effect.map(Catalog, (catalog) => {
    let face: Face | undefined
    const extension = Extension.layer({
      name: "tools for tasks",
      ready: Effect.suspend(() => {
        face = faceOf(catalog)
        if (face === undefined) return Effect.die(new Error("`TaskTools.layer` needs `Tasks.layer` beside it"))
        face.tools = { offered, maxWait }
        return Effect.void
      })
    })
    return Layer.merge(extension, modelTools.layer(() => face!, { offered, maxWait }))
  }))
}
