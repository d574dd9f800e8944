/**
 * Adds the trace context of the caller to the `_meta` of a request.
 *
 * "The keys `traceparent`, `tracestate`, and `baggage` are reserved for OpenTelemetry trace context propagation" since
 * 2026-07-28 (basic/index). In the older revisions `_meta` may have any key, and servers find them there too. `baggage`
 * is not sent: an application may store data in it that servers must not receive.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { isObject } from "@skein/protocol/JsonRpc"
import * as TraceContext from "@skein/protocol/TraceContext"
import { Remote } from "@skein/runtime/Trace"
import * as Context from "effect/Context"
import type * as Fiber from "effect/Fiber"
import * as Tracer from "effect/Tracer"

/** The nearest span that may be sent to a server, if there is one. */
const propagated = (span: Tracer.AnySpan | undefined): Tracer.AnySpan | undefined => {
  let at = span
  while (at !== undefined && Context.get(at.annotations, Tracer.DisablePropagation)) {
    at = at._tag === "Span" && at.parent._tag === "Some" ? at.parent.value : undefined
  }
  return at
}

/**
 * Adds the span of the fiber, at no cost if the fiber has none. A trace context that the caller has set is retained.
 */
export const traced = (fiber: Fiber.Fiber<unknown, unknown>, params: JsonObject): JsonObject => {
  const { span } = fiber.cache
  return span === undefined ? params : stamp(fiber, span, params)
}

const stamp = (fiber: Fiber.Fiber<unknown, unknown>, current: Tracer.AnySpan, params: JsonObject): JsonObject => {
  const meta = isObject(params["_meta"]) ? params["_meta"] : {}
  const span = fiber.getRef(Tracer.DisablePropagation) ? undefined : propagated(current)
  if (span === undefined || Object.hasOwn(meta, "traceparent")) return params
  const traceparent = TraceContext.formatParent(span)
  // The ids of a tracer may be invalid: "their values MUST follow W3C Trace Context".
  if (TraceContext.parseParent(traceparent) === undefined) return params
  const remote = fiber.getRef(Remote)
  const tracestate = remote?.parent?.traceId === span.traceId ? remote.tracestate : undefined
  return { ...params, _meta: { ...meta, traceparent, ...(tracestate === undefined ? undefined : { tracestate }) } }
}
