/**
 * Tasks for a server: tool calls that take minutes or days, survive the end of the process, and are read, answered and
 * cancelled by their id.
 *
 * `Tasks.layer` is one of the definitions of a server. It needs an engine: `MemoryTasks`, `SqliteTasks` or
 * `PostgresTasks`. With it, the tools of `Task.layer` can run as tasks, and so can tools with `execution: {
 * taskSupport: "optional" }`. A process with the same definitions that serves no transport is a worker.
 *
 * @example
 * const Server = McpServer.layer({ name: "bakery", version: "1.0.0" }, Task.layer(bake, baking), Tasks.layer()).pipe(
 *   Layer.provide(SqliteTasks.layer({ filename: "tasks.db" })))
 */
import * as Revision from "@skein/protocol/Revision"
import { Catalog } from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as extension from "./internal/protocol/extension.ts"
import { runTasks } from "./internal/protocol/handlers.ts"
import { LegacyTasks } from "./internal/protocol/legacy/legacyTasks.ts"
import { type LimitOptions, resolveSettings, type TaskPolicyOptions } from "./internal/protocol/policy.ts"
import { findTaskService, makeTaskService, TaskService } from "./internal/protocol/taskService.ts"
import { capabilities, handleCall } from "./internal/protocol/toolCall.ts"
import { TaskEngine } from "./TaskEngine.ts"
import type { State } from "./TaskState.ts"

export type { LimitOptions, OwnerPolicy, TaskPolicyOptions } from "./internal/protocol/policy.ts"

/** The tasks of a server. */
export interface Options extends TaskPolicyOptions {
  /** The numbers of tasks. At a limit a call is rejected with `-32603`, and no task is created. */
  readonly limits?: LimitOptions | undefined
  /**
   * How many tasks one `subscriptions/listen` may watch: 100 by default. With more ids only the first ones are watched,
   * and the acknowledgement lists them.
   */
  readonly maxWatchedTasks?: number | undefined
  /**
   * Which clients of 2025-11-25 may list tasks (`tasks/list`).
   *
   * - `identified`, the default: callers with an owner, by their principal for instance. They list their own tasks.
   * - `always`: callers without an owner too. **They list the tasks of all callers without an owner**: for a server
   *   with one user, on stdio.
   * - `never`: no client.
   */
  readonly list?: "identified" | "always" | "never" | undefined
  /** How many tasks a page of a listing holds: 100 by default. */
  readonly pageSize?: number | undefined
  /**
   * The text that a model receives in place of the result while a task runs, in 2025-11-25
   * (`io.modelcontextprotocol/model-immediate-response` of "Creating Tasks"). Without it the host chooses the text.
   */
  readonly immediateResponse?: ((state: State) => string | undefined) | undefined
}

/**
 * Offers tasks, in 2025-11-25 and since 2026-07-28, and runs them in this process unless its engine runs none. Options
 * for single tools are in `Task.make` and `Task.policy`. A second `Tasks.layer` in one server is a defect when the
 * server is built.
 *
 * @example
 * Tasks.layer({ ttl: "2 days", limits: { perOwner: { live: 20 } } })
 */
export const layer = (options: Options = {}): Layer.Layer<never, never, Catalog | TaskEngine> =>
  Extension.effect(Effect.gen(function*() {
    const catalog = yield* Catalog
    if (findTaskService(catalog) !== undefined) {
      return yield* Effect.die(
        new Error("`Tasks.layer` is twice among the definitions of one server: remove one of them")
      )
    }
    const tasks = makeTaskService(yield* TaskEngine, catalog, resolveSettings(options))
    const legacy = new LegacyTasks(tasks)
    return {
      name: "tasks",
      services: Context.make(TaskService, tasks) as Context.Context<never>,
      capabilities: (caller) =>
        Revision.era(caller.revision) === "request" ? capabilities : legacy.capabilities(caller),
      methods: [...extension.methods(tasks), ...legacy.methods ?? []],
      call: handleCall(tasks, (call) => legacy.call(call)),
      listen: extension.subscribe(tasks),
      running: tasks.running,
      ready: runTasks(tasks)
    }
  }))
