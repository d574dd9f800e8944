/**
 * What is answered to a request that is not handled. Every refusal is a JSON-RPC error, and keeps nothing.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import type { Headers, HttpAnswer } from "./adapter.ts"

/** The headers of an answer that is one JSON object. */
export const json: Headers = { "content-type": "application/json" }

/** Why a request is not handled: the HTTP status, and the JSON-RPC error that is its body. */
export interface Refused {
  readonly _tag: "Refused"
  readonly status: number
  readonly error: JsonRpc.ErrorObject
  readonly headers?: Headers | undefined
}

/** The request is none that can be served: `-32600`. */
export const invalid = (status: number, message: string, headers?: Headers): Refused => ({
  _tag: "Refused",
  status,
  error: { code: -32600, message },
  headers
})

/** It is no message. */
export const malformed = ({ error }: JsonRpc.Invalid): Refused => ({ _tag: "Refused", status: 400, error })

/** The server cannot take it now, and may later: 503. */
export const busy = (message: string): Refused => ({
  _tag: "Refused",
  status: 503,
  error: { code: -32603, message },
  headers: { "retry-after": "1" }
})

/** It cannot be handled any more, or could not be handled to its end. */
export const closing = busy("Service Unavailable: the server ends")

/** As many requests are handled as may be. */
export const tooMany = busy("Service Unavailable: too many requests in flight")

/** As many streams are open as may be. */
export const tooManyStreams = busy("Service Unavailable: too many open streams")

/** It belongs to a session, and does not say to which. */
export const noSession = invalid(400, "Bad Request: the Mcp-Session-Id header of a session is missing")

/** It answers a question, in the era in which none is sent. */
export const noAnswers = invalid(400, "Invalid Request: a client posts no responses in this revision")

/** An error of the protocol, in the words of a revision. */
export const because = (
  error: McpError.McpError,
  revision: Revision.Revision = Revision.latest,
  status = 400
): Refused => ({ _tag: "Refused", status, error: McpError.toErrorObject(error, revision) })

/** The id that a message is refused with: where there is one, that of a request. */
export const idOf = (message: JsonRpc.Inbound): JsonRpc.Id | undefined =>
  message._tag === "Request" ? message.id : undefined

/** Answers with a refusal; the id is the request's, where it had one that could be read. */
export const refuse = (answer: HttpAnswer, refused: Refused, id?: JsonRpc.Id): void => {
  const headers = refused.headers === undefined ? json : { ...json, ...refused.headers }
  answer.reply(refused.status, headers, JsonRpc.encode(JsonRpc.failure(id, refused.error)))
}
