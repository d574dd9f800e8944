/**
 * Tasks for a server: calls of tools that take minutes or days, outlive this process, and are looked at, answered and cancelled
 * by their id.
 *
 * `Tasks.layer` stands among the definitions of a server, and needs an engine: `MemoryTasks`, `SqliteTasks` or `PostgresTasks`.
 * Every tool of the server can run as a task then: those of `Task.layer`, and those that say
 * `execution: { taskSupport: "optional" }`. A process that has the same definitions and no door is a worker.
 *
 * @example
 * const Server = McpServer.layer({ name: "bakery", version: "1.0.0" }, Task.layer(bake, baking), Tasks.layer()).pipe(
 *   Layer.provide(SqliteTasks.layer({ filename: "tasks.db" })))
 */
import * as Revision from "@skein/protocol/Revision"
import { Catalog } from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import * as calls from "./internal/protocol/call.ts"
import * as extension from "./internal/protocol/extension.ts"
import { Face, faceOf } from "./internal/protocol/taskService.ts"
import { Legacy } from "./internal/protocol/legacy/legacyTasks.ts"
import { listen } from "./internal/protocol/listen.ts"
import { type Bounds, settings, type TaskPolicyOptions } from "./internal/protocol/policy.ts"
import { work } from "./internal/protocol/handler.ts"
import { TaskEngine } from "./TaskEngine.ts"
import type { State } from "./TaskState.ts"

export type { Bounds, OwnerPolicy, TaskPolicyOptions } from "./internal/protocol/policy.ts"

/** How a server keeps tasks. */
export interface Options extends TaskPolicyOptions {
  /** How many tasks there may be. At a bound a call is refused with `-32603`, and nothing is begun. */
  readonly limits?: Bounds | undefined
  /**
   * How many tasks one `subscriptions/listen` may watch: 100 by default. Of more ids than that the first ones are looked at, and
   * its acknowledgement says which were agreed on.
   */
  readonly maxWatched?: number | undefined
  /**
   * Whether clients of 2025-11-25 may list their tasks (`tasks/list`).
   *
   * - `identified`, the default: those whom an owner policy knows, by their principal for instance. They see their own.
   * - `always`: the others too. **They see the tasks of everybody who is not known**: for a server with one user, on stdio.
   * - `never`: nobody.
   */
  readonly list?: "identified" | "always" | "never" | undefined
  /** How many tasks a page of such a listing holds: 100 by default. */
  readonly pageSize?: number | undefined
  /**
   * What a model is told in place of the result while a task runs, in 2025-11-25 (`io.modelcontextprotocol/model-immediate-response`
   * of "Creating Tasks"). Nothing by default: the host has words of its own.
   */
  readonly immediateResponse?: ((state: State) => string | undefined) | undefined
}

/**
 * Offers tasks, in both shapes, and runs them in this process, if its engine works. Once in a server: a second one there is a defect
 * when the server is built. What differs from tool to tool is for `Task.terms`.
 */
export const layer = (options: Options = {}): Layer.Layer<never, never, Catalog | TaskEngine> =>
  Extension.effect(Effect.gen(function*() {
    const catalog = yield* Catalog
    if (faceOf(catalog) !== undefined) {
      return yield* Effect.die(
        new Error("`Tasks.layer` is twice among the definitions of one server: leave one of them")
      )
    }
    const face = new Face(yield* TaskEngine, catalog, settings(options))
    const legacy = new Legacy(face)
    return {
      name: "tasks",
      face,
      capabilities: (caller) =>
        Revision.era(caller.revision) === "request" ? extension.capabilities : legacy.capabilities(caller),
      methods: [...extension.methods(face), ...legacy.methods ?? []],
      call: calls.answer(face, legacy),
      listen: listen(face),
      running: face.running,
      ready: work(face)
    }
  }))
