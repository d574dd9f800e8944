/**
 * Sends a request on a connection, with its parameters in the form of the revision, the trace of the caller, and
 * telemetry.
 */
import * as Codec from "@skein/protocol/Codec"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import type { CallOptions } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { type ClientError, Unsupported } from "../../ClientError.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import { clientError } from "../base/errors.ts"
import type { CallHandler, CallResponse } from "./context.ts"
import { fromRequest } from "../base/failure.ts"
import { mirrors, noHeaders } from "./toolCatalog.ts"
import { traced } from "./trace.ts"

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
