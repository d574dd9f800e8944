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
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import { type Exchange, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import { monotonicMillis } from "@skein/runtime/RequestRunner"
import { Catalog, requestServices, type ToolEntry } from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import { TaskBounds } from "./internal/base/bounds.ts"
import { TaskMaker } from "./internal/engine/childTasks.ts"
import { awaitStore } from "./internal/engine/engineContext.ts"
import { TaskRequestContext } from "./internal/engine/taskRequest.ts"
import { clientArguments } from "./internal/protocol/beforeTask.ts"
import * as extension from "./internal/protocol/extension.ts"
import { makeLegacyTasks } from "./internal/legacy/legacyTasks.ts"
import { registerOutput } from "./internal/protocol/outputResource.ts"
import { resolveSettings, type TasksOptions } from "./internal/protocol/policy.ts"
import { makeStarted } from "./internal/protocol/startedTask.ts"
import { makeTaskService, publishService, TaskService } from "./internal/protocol/taskService.ts"
import { capabilities, handleCall } from "./internal/protocol/taskDecision.ts"
import { type Handlers, TaskEngine } from "./TaskEngine.ts"
import type { Outcome } from "./TaskState.ts"

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
    const { maxWatchedTasks, outputInterval } = yield* TaskBounds
    const tasks = makeTaskService(yield* TaskEngine, catalog, resolveSettings(options))
    const legacy = makeLegacyTasks(tasks)
    yield* publishService(tasks)
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
      ready: Effect.andThen(
        Effect.andThen(
          awaitStore(tasks.paceAll),
          Effect.suspend(() => hasDurable(tasks) ? registerOutput(tasks, outputInterval) : Effect.void)
        ),
        Effect.suspend(() => tasks.engine.runTasks(handlersOf(tasks), { tools: toolsOf(tasks) }))
      )
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

/** The tools of a server whose calls become tasks, with their pools. */
const toolsOf = ({ catalog, policyFor }: TaskService["Service"]) =>
  catalog.tools.sorted.flatMap(([tool, entry]) => {
    const policy = policyFor(entry)
    return policy === undefined ? [] : [{ tool, pool: policy.pool }]
  })

/** Whether a server has a task that can emit. */
const hasDurable = ({ catalog, policyFor }: TaskService["Service"]): boolean =>
  catalog.tools.sorted.some(([, entry]) => policyFor(entry)?.durable === true)

/** The handlers of a server's tools. A tool that no longer supports tasks still runs the tasks that it has. */
const handlersOf = (tasks: TaskService["Service"]): Handlers => {
  const base = Context.omit(Tracer.ParentSpan)(requestServices(tasks.catalog)) as Context.Context<never>
  return (name) => {
    const tool = tasks.catalog.tools.get(name)
    if (tool === undefined) return undefined
    const { durable = false, pinned, retry } = tasks.policyFor(tool) ?? {}
    return { durable, pinned, retry, run: (request) => run(tasks, tool, request, base) }
  }
}

const run = (
  tasks: TaskService["Service"],
  tool: ToolEntry,
  request: RequestContext,
  base: Context.Context<never>
): Effect.Effect<Outcome> =>
  Effect.withFiber((fiber) => {
    const { exchange } = request
    exchange.startedAt = monotonicMillis(fiber.getRef(Clock.Clock))
    // A snapshot shows the span that it is in.
    exchange.fiber = fiber as Exchange["fiber"]
    if (!isCheck(request)) tasks.running.add(request)
    return tool.call(clientArguments(request), request)
  }).pipe(
    Effect.ensuring(Effect.sync(() => tasks.running.delete(request))),
    Effect.matchCauseEffect({
      onSuccess: (result) => Effect.succeed<Outcome>({ _tag: "Result", result: { ...result } }),
      onFailure: (cause) => failureOutcome(tool, request, base, cause)
    }),
    Effect.provideContext(
      Context.add(isCheck(request) ? quiet(base) : base, McpRequest, request).pipe(
        Context.add(TaskMaker, { make: (task, args) => makeStarted(tasks, task, { args, ...callerOf(request) }) })
      )
    )
  )

/** The part of the caller of a task that its children have. */
const callerOf = ({ caller: { principal }, exchange: { traceparent } }: RequestContext) => ({ principal, traceparent })

/** Whether a run only compares the code with the log of its task. */
const isCheck = (request: RequestContext): boolean => request instanceof TaskRequestContext && request.isCheck

const quiet = (base: Context.Context<never>): Context.Context<never> =>
  Context.add(base, References.MinimumLogLevel, "None")

/** An `McpError` is the outcome. After a defect it is the result that the call would have had without a task. */
const failureOutcome = (
  { definition }: ToolEntry,
  request: RequestContext,
  base: Context.Context<never>,
  cause: Cause.Cause<McpError.McpError>
): Effect.Effect<Outcome> => {
  const { caller: { revision } } = request
  // The engine interrupts: the task is suspended or cancelled, or continues elsewhere.
  if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause as Cause.Cause<never>)
  const failure = cause.reasons.find(Cause.isFailReason)
  if (isCheck(request) && cause.reasons.some(Cause.isDieReason)) return Effect.die(Cause.squash(cause))
  if (failure !== undefined && !cause.reasons.some(Cause.isDieReason)) {
    return Effect.succeed({ _tag: "Error", error: McpError.toErrorObject(failure.error, revision) })
  }
  const reference = globalThis.crypto.randomUUID()
  return Effect.as(
    Effect.logError(`the handler of a task died (${reference})`, cause),
    { _tag: "Result", result: { ...Extension.defectResult(definition.name, definition, { base, cause, reference }) } }
  )
}
