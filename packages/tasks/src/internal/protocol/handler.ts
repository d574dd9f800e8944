/**
 * What a worker runs: the handlers of the catalog, with what every request of the server starts with.
 */
import * as McpError from "@skein/protocol/McpError"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import * as Tracer from "effect/Tracer"
import { requestServices, type ToolEntry } from "@skein/server/Catalog"
import type { Handlers } from "../../TaskEngine.ts"
import type { Outcome } from "../../TaskState.ts"
import type { Face } from "./taskService.ts"
import { given } from "./beforeTask.ts"

/** Runs the tasks of this server's tools, as long as the server is there. */
export const work = (face: Face): Effect.Effect<void, never, Scope.Scope> => face.engine.work(handlers(face))

/** A tool of which nobody knows whether it may be a task is run all the same: one of its tasks is there. */
export const handlers = (face: Face): Handlers => {
  const base = Context.omit(Tracer.ParentSpan)(requestServices(face.catalog)) as Context.Context<never>
  return (name) => {
    const tool = face.catalog.tools.get(name)
    if (tool === undefined) return undefined
    return { durable: face.held(tool)?.durable === true, run: (exchange) => run(face, tool, exchange, base) }
  }
}

const run = (
  { running }: Face,
  tool: ToolEntry,
  exchange: RequestContext,
  base: Context.Context<never>
): Effect.Effect<Outcome> =>
  Effect.clockWith((clock) => {
    exchange.startedAt = Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
    running.add(exchange)
    return tool.call(given(exchange), exchange)
  }).pipe(
    Effect.ensuring(Effect.sync(() => running.delete(exchange))),
    Effect.matchCauseEffect({
      onSuccess: (result) => Effect.succeed<Outcome>({ _tag: "Result", result: { ...result } }),
      onFailure: (cause) => outcome(exchange, cause)
    }),
    Effect.provideContext(Context.add(base, McpRequest, exchange))
  )

/** An error of the protocol is the answer. A defect is one that says nothing but a reference, under which it is in the log. */
const outcome = (exchange: RequestContext, cause: Cause.Cause<McpError.McpError>): Effect.Effect<Outcome> => {
  const { caller: { revision } } = exchange
  // The engine's: the task sleeps, is cancelled, or goes on elsewhere.
  if (Cause.hasInterruptsOnly(cause)) return Effect.failCause(cause as Cause.Cause<never>)
  const failure = cause.reasons.find(Cause.isFailReason)
  if (failure !== undefined && !cause.reasons.some(Cause.isDieReason)) {
    return Effect.succeed({ _tag: "Error", error: McpError.toErrorObject(failure.error, revision) })
  }
  const reference = globalThis.crypto.randomUUID()
  return Effect.as(
    Effect.logError(`The handler of a task died (${reference})`, cause),
    { _tag: "Error", error: McpError.toErrorObject(McpError.internal(reference), revision) }
  )
}
