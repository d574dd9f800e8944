/**
 * To which era a request belongs. It is decided once per HTTP request, here.
 */
import * as Header from "@skein/protocol/Header"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { HttpRequest } from "./adapter.ts"
import { fromError, invalid, noResponses, noSession, type Refused } from "./refusals.ts"

/** It carries all that there is to know, and is handled alone. */
export interface RequestEra {
  readonly _tag: "RequestEra"
}

/** It belongs to the session with this id, or opens one: only `initialize` comes without an id. */
export interface SessionEra {
  readonly _tag: "SessionEra"
  readonly id: string | undefined
}

/** What a request is found to be. */
export type Classified = RequestEra | SessionEra | Refused

const requestEra: RequestEra = { _tag: "RequestEra" }

const isModern = (version: string): boolean => Revision.is(version) && Revision.era(version) === "request"

const unsupported = (supported: ReadonlyArray<string>, requested: string): Refused =>
  fromError(McpError.unsupportedProtocolVersion({ supported, requested }))

const noBatch = invalid(400, "Invalid Request: only a session may be sent a batch")
const mixed = invalid(400, "Invalid Request: a request that carries its own metadata is posted alone")

const carries = (message: JsonRpc.Inbound): boolean =>
  (message._tag === "Request" || message._tag === "Notification") && RequestMeta.isModern(message.params)

/** "An `initialize` request selects legacy semantics" (2026-07-28, versioning). */
export const isOpening = (message: JsonRpc.Inbound | undefined): message is JsonRpc.Request =>
  message?._tag === "Request" && message.method === "initialize"

/**
 * Tells the era of an HTTP request; `message` is what it posted, where it did. `supported` are the revisions that the server speaks.
 *
 * - What carries `_meta` with a protocol version is of the request era, and so is what names a revision of that era in
 *   `MCP-Protocol-Version`. A session id beside it is ignored: "an `Mcp-Session-Id` header on a request: ignore it".
 * - `initialize` opens a session, whatever else its header names: there the version is negotiated in the body.
 * - All else belongs to the session that `Mcp-Session-Id` names, and is refused without one; except by an endpoint that keeps no
 *   sessions (`stateless`).
 *
 * Whether headers and body agree is looked at afterwards, in the terms of the era. A version in the header that is not spoken is
 * refused with 400 and `-32022`, which lists those that are: "the server MUST respond with `400 Bad Request`", in both eras.
 */
export const classify = (
  request: Pick<HttpRequest, "method" | "header">,
  message: JsonRpc.Inbound | undefined,
  supported: ReadonlyArray<Revision.Revision>,
  stateless = false
): Classified => {
  if (message !== undefined && carries(message)) return requestEra
  const sessions = supported.some((one) => Revision.era(one) === "session")
  const id = request.header(Header.keys.sessionId)
  const opening = isOpening(message)
  if (opening && sessions) return { _tag: "SessionEra", id }
  // "A server that supports only modern versions SHOULD name the protocol versions it supports in any error it returns to an
  // `initialize` request."
  if (opening) return unsupported(supported, String(message.params?.["protocolVersion"] ?? ""))
  const version = request.header(Header.keys.protocolVersion)
  const lone = (version !== undefined && isModern(version)) || !sessions
  // "HTTP GET or DELETE to the MCP endpoint: respond with `405 Method Not Allowed`."
  if (lone && message === undefined) return invalid(405, `Method Not Allowed: ${request.method}`, { allow: "POST" })
  if (version !== undefined && !supported.includes(version as Revision.Revision)) return unsupported(supported, version)
  if (lone) {
    if (message?._tag === "Batch") return noBatch
    return message?._tag === "Success" || message?._tag === "Failure" ? noResponses : requestEra
  }
  if (message?._tag === "Batch" && message.members.some(carries)) return mixed
  if (id === undefined && !stateless) return message?._tag === "Batch" ? noBatch : noSession
  return { _tag: "SessionEra", id }
}
