/**
 * Sends a request on a connection, with its parameters in the form of the revision, the trace of the caller, and
 * telemetry.
 */
import * as Codec from "@skein/protocol/Codec"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as TraceContext from "@skein/protocol/TraceContext"
import type { CallOptions } from "@skein/runtime/RequestContext"
import { Remote } from "@skein/runtime/Trace"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Tracer from "effect/Tracer"
import { type ClientError, Unsupported } from "../../ClientError.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import { clientError } from "../base/errors.ts"
import type { CallHandler, CallResponse } from "./context.ts"
import { fromRequest } from "../base/failure.ts"
import { mirrors, noHeaders } from "./toolCatalog.ts"

/** The nearest span that may be sent to a server, if there is one. */
const propagated = (span: Tracer.AnySpan | undefined): Tracer.AnySpan | undefined => {
  let at = span
  while (at !== undefined && Context.get(at.annotations, Tracer.DisablePropagation)) {
    at = at._tag === "Span" && at.parent._tag === "Some" ? at.parent.value : undefined
  }
  return at
}

/**
 * Adds the trace context of the fiber to the `_meta` of a request, at no cost if the fiber has no span. A trace context
 * that the caller has set is retained.
 *
 * "The keys `traceparent`, `tracestate`, and `baggage` are reserved for OpenTelemetry trace context propagation" since
 * 2026-07-28 (basic/index). In the older revisions `_meta` may have any key, and servers find them there too. `baggage`
 * is not sent: an application may store data in it that servers must not receive.
 */
const traced = (fiber: Fiber.Fiber<unknown, unknown>, params: JsonObject): JsonObject => {
  const { span } = fiber.cache
  return span === undefined ? params : withSpan(fiber, span, params)
}

const withSpan = (fiber: Fiber.Fiber<unknown, unknown>, current: Tracer.AnySpan, params: JsonObject): JsonObject => {
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

/** Sends one request outside of the layers of a call, with the trace of the fiber and with telemetry. */
export const send = (
  connection: NegotiatedConnection,
  method: string,
  params: JsonObject,
  options: CallOptions
): Effect.Effect<JsonObject, ClientError> => {
  const { peer, revision, sendsHeaders: http, telemetry } = connection
  const result = Effect.withFiber((fiber) =>
    Effect.mapError(
      peer.request(method, traced(fiber, connection.stamp(params)), options),
      (error) => fromRequest(method, error)
    )
  )
  return telemetry === undefined
    ? result
    : telemetry.around({ method, params, revision, http }, result)
}

/** A response that the layers have not completed, or one with a result that is complete already. */
export const responseOf = (
  connection: NegotiatedConnection,
  startedAt: number,
  raw: JsonObject,
  result: unknown
): CallResponse => ({
  connection,
  startedAt,
  raw,
  augmented: undefined,
  answer: undefined,
  result,
  keep: false
})

/**
 * Sends the request of a call in the form of its connection's revision, with the HTTP headers that repeat its
 * parameters, and waits for its response.
 */
export const sendRequest: CallHandler = ({ client, connection, method, options, params, startedAt }) => {
  const encoded = Codec.encodeParams(method, connection.revision, params)
  if (Result.isFailure(encoded)) {
    const { failure } = encoded
    const message = `${method.name} cannot be sent: ${failure.message}`
    return Effect.fail(clientError(Unsupported, message, method.name, failure))
  }
  const isMirrored = method.name === Method.CallTool.name && mirrors(connection)
  const headers = isMirrored ? client.toolCatalog.headers(encoded.success) : noHeaders
  if (Result.isFailure(headers)) return Effect.fail(headers.failure)
  const sent = headers.success === undefined ? options : { ...options, headers: headers.success }
  return Effect.map(
    send(connection, method.name, encoded.success, sent),
    (raw) => responseOf(connection, startedAt, raw, undefined)
  )
}

const memberOf = (value: unknown, key: string): JsonObject => {
  const member = isObject(value) ? value[key] : undefined
  return isObject(member) ? member : {}
}

/**
 * Returns parameters that declare an extension for one request of the stateless revision, without settings, in addition
 * to those that each request declares: "the client signals support by including the extension in its per-request
 * capabilities" (the extension `io.modelcontextprotocol/tasks`). Members that the caller has set in `_meta` are
 * retained.
 */
export const declaring = (connection: NegotiatedConnection, extension: string, params: JsonObject): JsonObject => {
  const meta = memberOf(connection.stamp(params), "_meta")
  const capabilities = memberOf(meta, RequestMeta.clientCapabilities)
  const extensions = { ...memberOf(capabilities, "extensions"), [extension]: {} }
  return { ...params, _meta: { ...meta, [RequestMeta.clientCapabilities]: { ...capabilities, extensions } } }
}
