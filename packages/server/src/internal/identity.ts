/**
 * Who asks, and in which revision: from the request's own `_meta` in the request era, from the session in the session era. One
 * connection may carry both.
 */
import * as Initialize from "@skein/protocol/Initialize"
import type { JsonObject, Request } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { Caller } from "@skein/runtime/Exchange"
import type { Peer } from "@skein/runtime/Peer"
import * as Result from "effect/Result"

/** The function that tells who asks, for a server that speaks these revisions, newest first. */
export const make = (supported: ReadonlyArray<Revision.Revision>) => {
  const sessions = supported.filter((revision) => Revision.era(revision) === "session")
  const beforeHandshake: Caller | undefined = sessions[0] === undefined
    ? undefined
    : { revision: sessions[0], info: undefined, capabilities: {} }

  const unsupported = (requested: string): McpError.McpError => {
    const error = McpError.unsupportedProtocolVersion({ supported, requested })
    // With the code of the request era, which is the one that asks, whatever a session on the same connection speaks.
    return McpError.other(McpError.codeOf(error, Revision.latest), error.message, error.data)
  }

  /** The request era: each request says it itself. */
  const modern = (request: Request): Caller | McpError.McpError => {
    const requested = RequestMeta.versionOf(request.params)
    if (requested !== undefined) {
      const spoken = supported.find((revision) => revision === requested)
      if (spoken === undefined || Revision.era(spoken) !== "request") return unsupported(requested)
    }
    const meta = RequestMeta.read(request.params)
    if (Result.isFailure(meta)) return McpError.invalidParams(`Invalid params: ${meta.failure.message}`)
    const { clientInfo, clientCapabilities, logLevel } = meta.success
    const revision = meta.success.protocolVersion as Revision.Revision
    return { revision, info: open(clientInfo), capabilities: clientCapabilities, logLevel }
  }

  /**
   * "If the server supports the requested protocol version, it MUST respond with the same version. Otherwise, the server MUST
   * respond with another protocol version it supports."
   */
  const handshake = (peer: Peer, request: Request): Caller | McpError.McpError => {
    if (peer.session !== undefined) return McpError.invalidRequest("The session is initialized already")
    const requested = request.params?.["protocolVersion"]
    const revision = sessions.find((revision) => revision === requested) ?? sessions[0]
    // A modern server's error names what it speaks: an older client has nothing else to show to its user.
    if (revision === undefined) return unsupported(String(requested))
    const params = Initialize.read(request.params)
    if (Result.isFailure(params)) return McpError.invalidParams(`Invalid params: ${params.failure}`)
    const { clientInfo, capabilities } = params.success
    return peer.session = { revision, info: open(clientInfo), capabilities }
  }

  return (peer: Peer, request: Request): Caller | McpError.McpError => {
    if (RequestMeta.isModern(request.params)) return modern(request)
    if (request.method === "initialize") return handshake(peer, request)
    if (peer.session !== undefined) return peer.session
    if (request.method === "ping" && beforeHandshake !== undefined) return beforeHandshake
    const wanted = `params._meta[${JSON.stringify(RequestMeta.protocolVersion)}]: missing`
    return McpError.invalidParams(
      sessions.length === 0 ? `Invalid params: ${wanted}` : `Invalid params: ${wanted}, and no initialize came before`
    )
  }
}

const open = (info: object | undefined): JsonObject | undefined => info as JsonObject | undefined
