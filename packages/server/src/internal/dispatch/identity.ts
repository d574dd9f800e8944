/**
 * Finds the caller of a request and its revision: from the request's own `_meta` in a stateless revision, from the
 * session otherwise. One connection may carry both. Nothing here changes anything: `serverMethods.ts` opens the
 * session.
 */
import * as Introduction from "@skein/protocol/Introduction"
import type { JsonObject, Request } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import type { Origin } from "@skein/runtime/Connection"
import type { Caller, Refusal } from "@skein/runtime/RequestContext"
import type { Session } from "@skein/runtime/Session"
import * as Result from "effect/Result"
import { ServerSession } from "../base/session.ts"

/** The refusal of a second `initialize` in a session that the transport names. */
export const alreadyInitialized = (): McpError.McpError => McpError.invalidRequest("The session is initialized already")

const toInfo = (info: object | undefined): JsonObject | undefined => info as JsonObject | undefined

/**
 * The functions that identify callers, for a server that speaks these revisions, newest first: `identify` for requests
 * on a connection, `identifyStateless` for stateless requests only.
 */
export const make = (supported: ReadonlyArray<Revision.Revision>) => {
  const sessionRevisions = supported.filter((revision) => Revision.era(revision) === "session")
  const beforeHandshake: Caller | undefined = sessionRevisions[0] === undefined
    ? undefined
    : { revision: sessionRevisions[0], info: undefined, capabilities: {} }

  const unsupported = (requested: string, revision: Revision.Revision): Refusal => ({
    error: McpError.unsupportedProtocolVersion({ supported, requested }),
    revision
  })

  const invalid = (problem: string, revision: Revision.Revision): Refusal => ({
    error: McpError.invalidParams(`Invalid params: ${problem}`),
    revision
  })

  /**
   * A stateless request describes its caller. A refusal is in the latest revision, even if the connection has a session
   * of an older one.
   */
  const identifyStateless = (request: Request, origin: Origin | undefined): Caller | Refusal => {
    const requested = RequestMeta.versionOf(request.params)
    if (requested !== undefined) {
      const spoken = supported.find((revision) => revision === requested)
      if (spoken === undefined || Revision.era(spoken) !== "stateless") return unsupported(requested, Revision.latest)
    }
    const meta = RequestMeta.read(request.params)
    if (Result.isFailure(meta)) return invalid(meta.failure, Revision.latest)
    const { clientInfo, clientCapabilities, logLevel } = meta.success
    const revision = meta.success.protocolVersion as Revision.Revision
    return {
      revision,
      info: toInfo(clientInfo),
      capabilities: clientCapabilities,
      logLevel,
      principal: origin?.principal
    }
  }

  /**
   * A second `initialize` opens a new session: a bridge gives several clients, one after the other, one child process.
   *
   * "If the server supports the requested protocol version, it MUST respond with the same version. Otherwise, the
   * server MUST respond with another protocol version it supports."
   */
  const identifyInitialize = (
    request: Request,
    session: Session | undefined,
    origin: Origin | undefined
  ): Caller | Refusal => {
    if (session instanceof ServerSession && session.peer.hasSessionId) {
      return { error: alreadyInitialized(), revision: session.revision }
    }
    const requested = request.params?.["protocolVersion"]
    const known = Revision.read(requested)
    const revision = sessionRevisions.find((revision) => revision === known) ?? sessionRevisions[0]
    // The error of a stateless server names its revisions: an older client can show its user nothing else.
    if (revision === undefined) return unsupported(typeof requested === "string" ? requested : "", Revision.latest)
    const params = Introduction.read(request.params)
    if (Result.isFailure(params)) return invalid(params.failure, revision)
    const { clientInfo, capabilities } = params.success
    return { revision, info: toInfo(clientInfo), capabilities, principal: origin?.principal }
  }

  const identify = (
    request: Request,
    session: Session | undefined,
    origin: Origin | undefined
  ): Caller | Refusal => {
    if (RequestMeta.isModern(request.params)) return identifyStateless(request, origin)
    if (request.method === "initialize") return identifyInitialize(request, session, origin)
    if (session !== undefined) return session instanceof ServerSession ? session.callerFor(origin?.principal) : session
    if (request.method === "ping" && beforeHandshake !== undefined) return beforeHandshake
    const wanted = `params._meta[${JSON.stringify(RequestMeta.protocolVersion)}]: missing`
    return invalid(
      sessionRevisions.length === 0 ? wanted : `${wanted}, and the session is not initialized`,
      Revision.latest
    )
  }

  return { supported, identifyStateless, identify }
}

/** The functions that `make` returns. */
export type Identity = ReturnType<typeof make>
