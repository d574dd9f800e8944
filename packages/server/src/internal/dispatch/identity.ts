/**
 * Who asks, and in which revision: from the request's own `_meta` in the request era, from the session in the session era. One
 * connection may carry both.
 */
import * as Initialize from "@skein/protocol/Initialize"
import type { JsonObject, Request } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { Origin } from "@skein/runtime/Connection"
import type { Caller, Refusal } from "@skein/runtime/RequestContext"
import type { Peer } from "@skein/runtime/Peer"
import { ServerSession } from "./session.ts"
import * as Result from "effect/Result"

/**
 * The functions that tell who asks, for a server that speaks these revisions, newest first: `inSession` on a connection of any
 * era, `alone` of a request that is all that came.
 */
export const make = (supported: ReadonlyArray<Revision.Revision>) => {
  const sessions = supported.filter((revision) => Revision.era(revision) === "session")
  const beforeHandshake: Caller | undefined = sessions[0] === undefined
    ? undefined
    : { revision: sessions[0], info: undefined, capabilities: {} }

  const unsupported = (requested: string, revision: Revision.Revision): Refusal => ({
    error: McpError.unsupportedProtocolVersion({ supported, requested }),
    revision
  })

  const invalid = (problem: string, revision: Revision.Revision): Refusal => ({
    error: McpError.invalidParams(`Invalid params: ${problem}`),
    revision
  })

  /** The request era: each request says it itself. It is refused in that era's terms, whatever session is beside it. */
  const modern = (request: Request, origin: Origin | undefined): Caller | Refusal => {
    const requested = RequestMeta.versionOf(request.params)
    if (requested !== undefined) {
      const spoken = supported.find((revision) => revision === requested)
      if (spoken === undefined || Revision.era(spoken) !== "request") return unsupported(requested, Revision.latest)
    }
    const meta = RequestMeta.read(request.params)
    if (Result.isFailure(meta)) return invalid(meta.failure.message, Revision.latest)
    const { clientInfo, clientCapabilities, logLevel } = meta.success
    const revision = meta.success.protocolVersion as Revision.Revision
    return {
      revision,
      info: open(clientInfo),
      capabilities: clientCapabilities,
      logLevel,
      principal: origin?.principal
    }
  }

  /**
   * "If the server supports the requested protocol version, it MUST respond with the same version. Otherwise, the server MUST
   * respond with another protocol version it supports."
   */
  const handshake = (peer: Peer, request: Request, origin: Origin | undefined): Caller | Refusal => {
    if (peer.session !== undefined) {
      const error = McpError.invalidRequest("The session is initialized already")
      return { error, revision: peer.session.revision }
    }
    const requested = request.params?.["protocolVersion"]
    const revision = sessions.find((revision) => revision === requested) ?? sessions[0]
    // A modern server's error names what it speaks: an older client has nothing else to show to its user.
    if (revision === undefined) return unsupported(typeof requested === "string" ? requested : "", Revision.latest)
    const params = Initialize.read(request.params)
    if (Result.isFailure(params)) return invalid(params.failure, revision)
    const { clientInfo, capabilities } = params.success
    return peer.session = new ServerSession(peer, revision, open(clientInfo), capabilities, origin?.principal)
  }

  const inSession = (peer: Peer, request: Request, origin: Origin | undefined): Caller | Refusal => {
    if (RequestMeta.isModern(request.params)) return modern(request, origin)
    if (request.method === "initialize") return handshake(peer, request, origin)
    const { session } = peer
    if (session !== undefined) return session instanceof ServerSession ? session.by(origin?.principal) : session
    if (request.method === "ping" && beforeHandshake !== undefined) return beforeHandshake
    const wanted = `params._meta[${JSON.stringify(RequestMeta.protocolVersion)}]: missing`
    return invalid(sessions.length === 0 ? wanted : `${wanted}, and no initialize came before`, Revision.latest)
  }

  return { supported, alone: modern, inSession }
}

const open = (info: object | undefined): JsonObject | undefined => info as JsonObject | undefined
