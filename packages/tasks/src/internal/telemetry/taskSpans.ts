/**
 * The spans of tasks: one for each run of a handler, and one for each executed attempt of a step.
 */
import { named } from "@skein/protocol/Conventions"
import { clip } from "@skein/protocol/Text"
import * as TraceContext from "@skein/protocol/TraceContext"
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Tracer from "effect/Tracer"
import type { ObservedAttempt, ObservedRun, RunTrace } from "./taskObserver.ts"
import { shortTaskId } from "../base/text.ts"

/** Characters of the name of a step in an attribute. */
const maxNameChars = 200

/** Runs an effect in a span. Its log lines have the ids of the span. */
const inSpan = <A, E, R>(effect: Effect.Effect<A, E, R>, span: Tracer.Span): Effect.Effect<A, E, R> =>
  Effect.annotateLogs(Effect.provideService(effect, Tracer.ParentSpan, span), {
    trace_id: span.traceId,
    span_id: span.spanId
  })

/** The link to the call that has created the task. */
const linksTo = (traceparent: string | undefined): Array<Tracer.SpanLink> => {
  const call = TraceContext.parseParent(traceparent)
  return call === undefined ? [] : [{ span: Tracer.externalSpan(call), attributes: {} }]
}

// A failed task is a result of its run, and an error of the span.
const failures: Readonly<Record<string, Exit.Exit<never, Error>>> = Object.fromEntries(
  ["tool_error", "failed"].map((reason) => [
    reason,
    Exit.fail(Object.assign(new Error("the task failed"), { name: reason, stack: undefined }))
  ])
)

const makeTrace = (span: Tracer.Span, clock: Clock.Clock) => {
  let reason: string | undefined
  const trace: RunTrace = {
    event: (name, attributes = {}) => span.event(name, clock.currentTimeNanosUnsafe(), attributes),
    conclude: (given) => {
      if (reason !== undefined) return
      reason = given
      span.attribute("mcp.server.task.run.end", reason)
    }
  }
  const end = (exit: Exit.Exit<unknown, unknown>): void =>
    span.end(clock.currentTimeNanosUnsafe(), failures[reason ?? ""] ?? exit)
  return { trace, end }
}

/** Records a run. It is the root of a trace, since it may be days after the call, and the next one days later. */
export const traceRun = <A, R>(
  { id, lostWorkers, pool, tool, traceparent, worker }: ObservedRun,
  body: (trace: RunTrace) => Effect.Effect<A, never, R>
): Effect.Effect<A, never, R> =>
  Effect.clockWith((clock) =>
    Effect.flatMap(
      Effect.makeSpan(`task ${tool}`, {
        kind: "consumer",
        root: true,
        links: linksTo(traceparent),
        attributes: {
          ...named("tools/call", tool),
          "mcp.server.task.id": shortTaskId(id),
          "mcp.server.task.pool": pool,
          "mcp.server.task.worker": worker,
          "mcp.server.task.lost_workers": lostWorkers
        }
      }),
      (span) => {
        const { end, trace } = makeTrace(span, clock)
        return Effect.onExit(inSpan(body(trace), span), (exit) => Effect.sync(() => end(exit)))
      }
    )
  )

/** Records an attempt of a step, as a child of the span around the step. */
export const traceAttempt = <A, E, R>(
  { attempt, parent, step }: ObservedAttempt,
  label: string,
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A, E, R> =>
  Effect.useSpan(
    label,
    {
      ...parent !== undefined && { parent },
      attributes: { "mcp.server.task.step.name": clip(step, maxNameChars), "mcp.server.task.step.attempt": attempt }
    },
    (span) => inSpan(effect, span)
  )
