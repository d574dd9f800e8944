/**
 * The handlers that a worker runs: those of the server's tools, in the context of the server's requests.
 */
import * as McpError from "@skein/protocol/McpError"
import { type Exchange, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import { monotonicMillis } from "@skein/runtime/RequestRunner"
import { requestServices, type ToolEntry } from "@skein/server/Catalog"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import type { Handlers } from "../../TaskEngine.ts"
import type { Outcome } from "../../TaskState.ts"
import { TaskRequestContext } from "../engine/taskRequest.ts"
import { clientArguments } from "./beforeTask.ts"
import type { TaskService } from "./taskService.ts"

/** Runs the tasks of this server's tools until the scope closes. */
export const runTasks = (tasks: TaskService["Service"]): Effect.Effect<void, never, Scope.Scope> =>
  tasks.engine.runTasks(handlersOf(tasks))

/** The handlers of a server's tools. A tool that no longer supports tasks still runs the tasks that it has. */
export const handlersOf = (tasks: TaskService["Service"]): Handlers => {
  const base = Context.omit(Tracer.ParentSpan)(requestServices(tasks.catalog)) as Context.Context<never>
  return (name) => {
    const tool = tasks.catalog.tools.get(name)
    if (tool === undefined) return undefined
    return { durable: tasks.policyFor(tool)?.durable === true, run: (request) => run(tasks, tool, request, base) }
  }
}

const run = (
  { running }: TaskService["Service"],
  tool: ToolEntry,
  request: RequestContext,
  base: Context.Context<never>
): Effect.Effect<Outcome> =>
  Effect.withFiber((fiber) => {
    const { exchange } = request
    exchange.startedAt = monotonicMillis(fiber.getRef(Clock.Clock))
    // A snapshot shows the span that it is in.
    exchange.fiber = fiber as Exchange["fiber"]
    if (!isCheck(request)) running.add(request)
    return tool.call(clientArguments(request), request)
  }).pipe(
    Effect.ensuring(Effect.sync(() => running.delete(request))),
    Effect.matchCauseEffect({
      onSuccess: (result) => Effect.succeed<Outcome>({ _tag: "Result", result: { ...result } }),
      onFailure: (cause) => failureOutcome(request, cause)
    }),
    Effect.provideContext(Context.add(isCheck(request) ? quiet(base) : base, McpRequest, request))
  )

/** Whether a run only compares the code with the log of its task. */
const isCheck = (request: RequestContext): boolean => request instanceof TaskRequestContext && request.isCheck

const quiet = (base: Context.Context<never>): Context.Context<never> =>
  Context.add(base, References.MinimumLogLevel, "None")

/** An `McpError` is the outcome. For a defect the outcome has only a reference, under which the log has the cause. */
const failureOutcome = (request: RequestContext, cause: Cause.Cause<McpError.McpError>): Effect.Effect<Outcome> => {
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
    { _tag: "Error", error: McpError.toErrorObject(McpError.internal(reference), revision) }
  )
}
