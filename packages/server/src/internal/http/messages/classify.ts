/**
 * Determines once per HTTP request whether it is stateless or belongs to a session.
 */
import * as Header from "@skein/protocol/Header"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { HttpRequest } from "./adapter.ts"
import { fromError, type HttpRefusal, invalid, noResponses, noSession } from "./refusals.ts"

/** A stateless request, a message of a session (or `initialize`, which opens one), or a refusal. */
export type Classified = "stateless" | "session" | HttpRefusal

const isModern = (version: string): boolean => Revision.is(version) && Revision.era(version) === "stateless"

const unsupported = (supported: ReadonlyArray<string>, requested: string): HttpRefusal =>
  fromError(McpError.unsupportedProtocolVersion({ supported, requested }))

const noBatch = invalid(400, "Invalid Request: a batch must be sent in a session")
const mixed = invalid(400, "Invalid Request: a stateless request must not be part of a batch")

const hasOwnMetadata = (message: JsonRpc.Inbound): boolean =>
  (message._tag === "Request" || message._tag === "Notification") && RequestMeta.isModern(message.params)

/** "An `initialize` request selects legacy semantics" (2026-07-28, versioning). */
export const isOpening = (message: JsonRpc.Inbound | undefined): message is JsonRpc.Request =>
  message?._tag === "Request" && message.method === "initialize"

/**
 * Classifies an HTTP request. `message` is the body of a POST; `supported` are the revisions of the server.
 *
 * - A message with a protocol version in its `_meta` is stateless, and so is a request whose `MCP-Protocol-Version`
 *   header names a stateless revision. A session id is then ignored: "an `Mcp-Session-Id` header on a request: ignore
 *   it".
 * - `initialize` opens a session regardless of its headers: the version is negotiated in the body.
 * - Any other message belongs to the session that `Mcp-Session-Id` names, and is refused without that header, except by
 *   an endpoint without sessions (`stateless`).
 *
 * Whether headers and body agree is validated afterwards. An unsupported version in the header is refused with 400 and
 * `-32022`, which lists the supported ones: "the server MUST respond with `400 Bad Request`".
 */
export const classify = (
  request: Pick<HttpRequest, "method" | "header">,
  message: JsonRpc.Inbound | undefined,
  supported: ReadonlyArray<Revision.Revision>,
  stateless = false
): Classified => {
  if (message !== undefined && hasOwnMetadata(message)) return "stateless"
  const sessions = supported.some((one) => Revision.era(one) === "session")
  const opens = isOpening(message)
  if (opens && sessions) return "session"
  // "A server that supports only modern versions SHOULD name the protocol versions it supports in any error it returns
  // to an `initialize` request."
  if (opens) {
    const requested = message.params?.["protocolVersion"]
    return unsupported(supported, typeof requested === "string" ? requested : "")
  }
  const version = request.header(Header.keys.protocolVersion)
  const isStateless = (version !== undefined && isModern(version)) || !sessions
  // "HTTP GET or DELETE to the MCP endpoint: respond with `405 Method Not Allowed`."
  if (isStateless && message === undefined) {
    return invalid(405, `Method Not Allowed: ${request.method}`, { allow: "POST" })
  }
  if (version !== undefined && !supported.includes(Revision.read(version)!)) return unsupported(supported, version)
  if (isStateless) {
    if (message?._tag === "Batch") return noBatch
    return message?._tag === "Success" || message?._tag === "Failure" ? noResponses : "stateless"
  }
  if (message?._tag === "Batch" && message.members.some(hasOwnMetadata)) return mixed
  if (!stateless && request.header(Header.keys.sessionId) === undefined) {
    return message?._tag === "Batch"
      ? noBatch
      : noSession
  }
  return "session"
}
