/**
 * The responses to HTTP requests that are not handled: a status and a JSON-RPC error. Each is logged and counted.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import { logValue } from "@skein/protocol/Text"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as LogLevel from "effect/LogLevel"
import type { ServerCore } from "../../dispatch/serverCore.ts"
import type { Headers, HttpAnswer } from "./adapter.ts"

/** The headers of a response that is one JSON object. */
export const json: Headers = { "content-type": "application/json" }

/** Why a request is not handled: the HTTP status, and the JSON-RPC error that is its body. */
export interface HttpRefusal {
  readonly status: number
  readonly error: JsonRpc.ErrorObject
  readonly headers?: Headers | undefined
}

/** The request cannot be served: `-32600`. */
export const invalid = (status: number, message: string, headers?: Headers): HttpRefusal => ({
  status,
  error: { code: -32600, message },
  headers
})

export const inFlight = invalid(400, "Invalid Request: a request with this id is in flight already")

export const inFlightOrTwice = invalid(
  400,
  "Invalid Request: two requests of the batch have the same id, or one is in flight already"
)

export const noBatches = invalid(400, "Invalid Request: only revision 2025-03-26 has batches")

// "The `initialize` request MUST NOT be part of a JSON-RPC batch" (2025-03-26, lifecycle).
export const noInitialize = invalid(400, "Invalid Request: initialize must not be part of a batch")

export const unknownEvent = invalid(
  400,
  "Bad Request: the events after this Last-Event-ID do not exist, or are no longer stored"
)

/** The body is not a JSON-RPC message. */
export const malformed = ({ error }: JsonRpc.Invalid): HttpRefusal => ({ status: 400, error })

/** The server is overloaded, and may handle the request later: 503. */
export const busy = (message: string): HttpRefusal => ({
  status: 503,
  error: { code: -32603, message },
  headers: { "retry-after": "1" }
})

/** The server shuts down, and has not begun to handle the request. */
export const closing = busy("Service Unavailable: the server is shutting down")

export const tooManyRequests = busy("Service Unavailable: too many requests in flight")

export const tooManyBytes = busy(
  "Service Unavailable: the server retains too much for its clients (maxRetainedBytes)"
)

export const unreadable = busy("Service Unavailable: the events of the stream cannot be read now")

export const tooManyStreams = busy("Service Unavailable: too many open streams")

/**
 * Why a request is not answered whose handler has begun. A proxy or a client repeats a request that was refused, so this is
 * an error like one of the handler: neither the status is 503 or 404, nor is there a `Retry-After`.
 */
const unanswered = (message: string): JsonRpc.ErrorObject => ({ code: -32603, message })

export const interrupted = unanswered(
  "Interrupted: the server shut down while it handled this request, which may have run: check that before you send it again"
)

/** The request is given up at a bound, for a client with a smaller share. */
export const displaced = unanswered(
  "Interrupted: the server is overloaded, and this client has the largest share: the request may have run: check that " +
    "before you send it again"
)

/** The log line of a request that is given up. */
export const logDisplaced = /* @__PURE__ */ Effect.logDebug(
  "HTTP: gave up a request of the client with the largest share, because the server is overloaded"
)

export const sessionEnded = unanswered(
  "Interrupted: the session ended while the server handled this request, which may have run: check that before you send " +
    "it again"
)

/** The node of a fleet that handled the request has ended without an answer. */
export const nodeLost = unanswered(
  "Interrupted: the server process that handled this request has ended, and the request may have run: check that before " +
    "you send it again"
)

/** The refusal of a message that belongs to a session and does not have its id. */
export const noSession = invalid(400, "Bad Request: the Mcp-Session-Id header is missing")

/** The refusal of a response, in a revision in which the server sends no requests. */
export const noResponses = invalid(400, "Invalid Request: this revision does not allow responses from a client")

/** An error of the protocol, written in a revision. */
export const fromError = (
  error: McpError.McpError,
  revision: Revision.Revision = Revision.latest,
  status = 400
): HttpRefusal => ({ status, error: McpError.toErrorObject(error, revision) })

/** The id of a message, if it is a request. */
export const idOf = (message: JsonRpc.Inbound): JsonRpc.Id | undefined =>
  message._tag === "Request" ? message.id : undefined

/** Sends a refusal; `id` is that of the request, if it could be read. */
export const send = (answer: HttpAnswer, refused: HttpRefusal, id?: JsonRpc.Id): void => {
  const headers = refused.headers === undefined ? json : { ...json, ...refused.headers }
  answer.reply(refused.status, headers, JsonRpc.encode(JsonRpc.failure(id, refused.error)))
}

/**
 * Refuses a request: logs the refusal, counts it, and sends it. Middleware does not see refused requests. They are
 * logged at the level `Debug` with their error, or as `logged` defines.
 */
export type Refuse = (
  answer: HttpAnswer,
  refused: HttpRefusal,
  id?: JsonRpc.Id,
  logged?: { readonly level: LogLevel.Severity; readonly text: string }
) => void

export const makeRefuse = (core: ServerCore, context: Context.Context<never>): Refuse => {
  core.observer?.refusing(usualStatuses)
  return (answer, refused, id, logged) => {
    const text = logged?.text ?? `HTTP: refused a request with ${refused.status}, ${logValue(refused.error.message)}`
    Effect.runForkWith(context)(Effect.logWithLevel(logged?.level ?? "Debug")(text))
    core.observer?.refused(refused.status)
    send(answer, refused, id)
  }
}

/** The statuses of refusals, without those of rare faults of HTTP and of an application's middleware. */
const usualStatuses = [400, 401, 403, 404, 405, 406, 413, 415, 429, 500, 503]
