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
import * as Layer from "effect/Layer"
import { TaskBounds } from "./internal/base/bounds.ts"
import { awaitStore } from "./internal/engine/engineContext.ts"
import * as extension from "./internal/protocol/extension.ts"
import { runTasks } from "./internal/protocol/handlers.ts"
import { makeLegacyTasks } from "./internal/legacy/legacyTasks.ts"
import { resolveSettings, type TasksOptions } from "./internal/protocol/policy.ts"
import { makeTaskService, TaskService } from "./internal/protocol/taskService.ts"
import { capabilities, handleCall } from "./internal/protocol/taskDecision.ts"
import { TaskEngine } from "./TaskEngine.ts"

export type { LimitOptions, OwnerPolicy, TaskPolicyOptions } from "./internal/protocol/policy.ts"

/** The tasks of a server. */
export interface Options extends TasksOptions {}

/**
 * Offers tasks, in 2025-11-25 and since 2026-07-28, and runs them in this process unless its engine runs none. Options
 * for single tools are in `Task.make` and `Task.policy`. A second `Tasks.layer` in one server, or in a server that is
 * mounted in it, is a defect when the server is built.
 *
 * @example
 * Tasks.layer({ ttl: "2 days", limits: { perClient: { live: 20 } } })
 */
export const layer = (options: Options = {}): Layer.Layer<never, never, Catalog | TaskEngine> =>
  Extension.effect(Effect.gen(function*() {
    const catalog = yield* Catalog
    const { maxWatchedTasks } = yield* TaskBounds
    const tasks = makeTaskService(yield* TaskEngine, catalog, resolveSettings(options))
    const legacy = makeLegacyTasks(tasks)
    return {
      name: "Tasks.layer",
      isSingle: true,
      services: Context.make(TaskService, tasks) as Context.Context<never>,
      capabilities: (caller) =>
        Revision.era(caller.revision) === "stateless" ? capabilities : legacy.capabilities(caller),
      methods: [...extension.methods(tasks), ...legacy.methods],
      call: handleCall(tasks, legacy.call),
      listen: extension.subscribe(tasks, maxWatchedTasks),
      running: tasks.running,
      ready: Effect.andThen(awaitStore(tasks.paceAll), runTasks(tasks))
    }
  }))

/**
 * Tasks with their engine, as one definition of a server, for `AsyncServer.use` for example. `options` are those of `layer`.
 *
 * @example
 * new AsyncServer({ name: "bakery", version: "1.0.0" })
 *   .use(Tasks.withEngine(SqliteTasks.layer({ filename: "tasks.db" }), [Task.async(bake, baking)]))
 *   .runHttp()
 */
export const withEngine = <A, E, R, E2, R2>(
  engine: Layer.Layer<A | TaskEngine, E, R>,
  tasks: ReadonlyArray<Layer.Layer<never, E2, R2>>,
  options?: Options
): Layer.Layer<never, E | E2, R | Exclude<R2 | Catalog | TaskEngine, A | TaskEngine>> =>
  Layer.provide(Layer.mergeAll(layer(options), ...tasks), engine)
