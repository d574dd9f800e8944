/**
 * Negotiates the revision with `server/discover` or `initialize`.
 *
 * 2026-07-28, stdio and Streamable HTTP, backward compatibility: a client that supports both lifecycles sends
 * `server/discover` first. A `DiscoverResult`, or an error that only a server of the stateless revision sends, is
 * conclusive. After any other response or none, the client sends `initialize`: a probe never fails where a client of the
 * session-based revisions would connect, unless the server denies access or asks to retry later. Over HTTP, the connection
 * falls back to HTTP+SSE if a server refuses `initialize` as one of 2024-11-05 does.
 */
import { serverErrorOf } from "../base/errors.ts"
import * as Codec from "@skein/protocol/Codec"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import * as Text from "@skein/protocol/Text"
import { TransportError } from "@skein/runtime/TransportError"
import type { Connection } from "@skein/runtime/Connection"
import type { Peer } from "@skein/runtime/Peer"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { ClientError, InvalidResponse, NegotiationFailed } from "../../ClientError.ts"
import type { ServerProfile } from "../../ServerProfile.ts"
import { declared, defaultInfo, type SharedState, stamper } from "./connected.ts"
import type { Agreement } from "./connection.ts"
import { fromHandshake, revealsRevision } from "./handshakeFailure.ts"
import { fromRequest, quotedMessage } from "../base/failure.ts"

/** The settings of the handshake. */
export interface Settings {
  /** The revisions of this client, oldest first: all, the session-based ones, and the stateless ones. */
  readonly revisions: ReadonlyArray<Revision.Revision>
  readonly sessions: ReadonlyArray<Revision.Revision>
  readonly stateless: ReadonlyArray<Revision.Revision>
  readonly probeTimeout: Duration.Input
  /** The state of the client. */
  readonly shared: Pick<SharedState, "answers" | "callClock" | "options">
  /** The extensions of the connection, which its client declares. Undefined before the connection is open. */
  readonly extensions?: Connection["extensions"]
  /** For whom the requests of the connection act. Undefined before the connection is open. */
  readonly authorizationContext?: string | undefined
}

const text = (value: unknown): string | undefined => typeof value === "string" ? value : undefined

/**
 * The versions in a peer's list, each shortened for a message. A value that is not a string is not a version, and is
 * not converted to one.
 */
const quote = (versions: ReadonlyArray<unknown>): string =>
  versions.length === 0
    ? "none"
    : versions.slice(0, 8).map((version) => typeof version === "string" ? Text.quote(version, 32) : "null").join(", ")

const negotiation = (method: string, message: string, error?: McpError.McpError): ClientError =>
  new ClientError({ reason: new NegotiationFailed({ message, error, cause: error }), method })

/** The result of a probe. */
type Probed =
  | { readonly _tag: "Agreed"; readonly agreement: Agreement }
  /** The server is stateless, but supports other versions than the requested one. */
  | { readonly _tag: "Versions"; readonly versions: ReadonlyArray<unknown> }
  /** The server answered as an older one does, or not at all. `lost`: the failure of a probe that got no response. */
  | { readonly _tag: "Legacy"; readonly why: string; readonly isSilent?: boolean; readonly lost?: ClientError }

const discovered = (revision: Revision.Revision, result: JsonRpc.JsonObject): Probed => {
  const { supportedVersions, capabilities, instructions, resultType, _meta } = result
  const known = (resultType ?? "complete") === "complete"
  if (!known || !Array.isArray(supportedVersions) || !JsonRpc.isObject(capabilities)) {
    return { _tag: "Legacy", why: "its response to server/discover is not valid" }
  }
  if (!supportedVersions.includes(revision)) return { _tag: "Versions", versions: supportedVersions }
  const info = JsonRpc.isObject(_meta) ? _meta[RequestMeta.serverInfo] : undefined
  return {
    _tag: "Agreed",
    agreement: {
      revision,
      info: JsonRpc.isObject(info) ? info : undefined,
      capabilities,
      instructions: text(instructions)
    }
  }
}

/**
 * Whether a request was lost while the connection goes on: over HTTP, an idle socket may be closed at the moment that
 * it is used again, and a server or a gateway may close the connection or end the stream without a response.
 */
const isLostAlone = (error: McpError.McpError | RequestError): boolean =>
  !McpError.isMcpError(error) && error.reason._tag === "Closed" && error.reason.end === undefined &&
  error.cause instanceof TransportError && error.cause.reason._tag === "ConnectionLost"

/**
 * Whether a browser did not send or not deliver a request, for a reason that a page cannot see. CORS of an older server
 * may refuse the headers of the stateless revision, and allow `initialize`.
 */
const isOpaque = ({ cause }: RequestError): boolean =>
  cause instanceof TransportError && cause.reason._tag === "OpenFailed" && cause.undelivered !== true

/** Reads the server's revision from a failed probe: an older one, or another version. Other failures fail. */
const readFailure = (error: McpError.McpError | RequestError): Effect.Effect<Probed, ClientError> => {
  if (!McpError.isMcpError(error)) {
    const failure = fromHandshake("server/discover", error)
    const { reason } = failure
    // A lost probe proves nothing about the server, as silence does not.
    if (isLostAlone(error) || isOpaque(error)) {
      return Effect.succeed({ _tag: "Legacy", why: error.message, isSilent: true, lost: failure })
    }
    return reason._tag === "Timeout" || reason._tag === "InvalidResponse" ||
        (reason._tag === "HttpError" && revealsRevision(reason.status))
      ? Effect.succeed({ _tag: "Legacy", why: error.message, isSilent: reason._tag === "Timeout" })
      : Effect.fail(failure)
  }
  const { code, message, data } = error
  if (code === undefined || !McpError.isStateless({ code, message, data })) {
    return Effect.succeed({ _tag: "Legacy", why: quotedMessage(message) })
  }
  const versions = JsonRpc.isObject(data) ? data["supported"] : undefined
  return error.reason === "UnsupportedProtocolVersion" && Array.isArray(versions)
    ? Effect.succeed({ _tag: "Versions", versions })
    : Effect.fail(fromRequest("server/discover", error))
}

/** Sends a request of the handshake, and again if it was lost: none of them does harm. */
const ask = (peer: Peer, method: string, params: JsonRpc.JsonObject) => {
  const asked = peer.request(method, params)
  return Effect.catchIf(asked, isLostAlone, () => asked)
}

const discover = (
  peer: Peer,
  { extensions, shared: { answers, options } }: Settings,
  revision: Revision.Revision
): Effect.Effect<Probed, ClientError> =>
  Effect.matchEffect(ask(peer, "server/discover", stamper(options, answers, revision, extensions)({})), {
    onSuccess: (result) => Effect.succeed(discovered(revision, result)),
    onFailure: readFailure
  })

/** The params of `initialize`. */
const introduction = (
  { extensions, shared: { answers, options } }: Settings,
  protocolVersion: Revision.Revision
): JsonRpc.JsonObject => {
  const capabilities = declared(answers.capabilities, options.extensions, extensions)
  const params = { protocolVersion, capabilities, clientInfo: options.info ?? defaultInfo }
  return Result.getOrElse(
    Codec.encodeParams(Method.Initialize, protocolVersion, params),
    () => params as JsonRpc.JsonObject
  )
}

/** The newest of the revisions that is in a list of versions. */
const newest = (
  revisions: ReadonlyArray<Revision.Revision>,
  versions: ReadonlyArray<unknown>
): Revision.Revision | undefined => revisions.findLast((revision) => versions.includes(revision))

/**
 * Opens a session: `initialize`, then `notifications/initialized`. `negotiatedBefore` is the time of the negotiation if a
 * server profile has replaced it.
 */
export const initialize = Effect.fnUntraced(function*(
  peer: Peer,
  settings: Settings,
  revision = settings.sessions.at(-1)!,
  negotiatedBefore?: number
): Effect.fn.Return<Agreement, ClientError> {
  const method = "initialize"
  const result = yield* Effect.mapError(
    ask(peer, method, introduction(settings, revision)),
    (failure) => {
      if (!McpError.isMcpError(failure)) return fromHandshake(method, failure)
      // The peer decoded the error before a revision was negotiated. Only here is it known which lifecycle defines
      // the data of a refused version.
      const { code = -32603, message, data } = failure
      const error = McpError.fromErrorObject({ code, message, data }, revision)
      return negotiation(method, `The server refused to initialize: ${quotedMessage(message)}`, error)
    }
  )
  const { protocolVersion, capabilities, serverInfo, instructions } = result
  if (typeof protocolVersion !== "string") {
    const message = "The response to initialize has no protocolVersion"
    return yield* new ClientError({ reason: new InvalidResponse({ message }), method })
  }
  const version = Revision.read(protocolVersion)
  const agreed = settings.sessions.find((revision) => revision === version)
  if (agreed === undefined) {
    const message = `The server supports ${quote([protocolVersion])}, this client ${quote(settings.revisions)}`
    return yield* negotiation(method, message)
  }
  const info = JsonRpc.isObject(serverInfo) ? serverInfo : undefined
  const offered = JsonRpc.isObject(capabilities) ? capabilities : {}
  peer.session = { revision: agreed, info, capabilities: offered }
  yield* peer.notify("notifications/initialized")
  const negotiatedAt = negotiatedBefore ?? (yield* Clock.currentTimeMillis)
  return { revision: agreed, info, capabilities: offered, instructions: text(instructions), negotiatedAt }
})

/** A session that was opened because the server did not answer the probe. */
const silent = (agreement: Agreement) => ({ ...agreement, silence: { verdict: undefined as Agreement | undefined } })

/** Continues after the response to a probe: agrees, probes another version, initializes, or fails. */
const conclude = (
  peer: Peer,
  settings: Settings,
  tried: ReadonlyArray<Revision.Revision>,
  probed: Probed
): Effect.Effect<Agreement, ClientError> => {
  switch (probed._tag) {
    case "Agreed":
      return Effect.succeed(probed.agreement)
    case "Legacy": {
      const { isSilent, lost, why } = probed
      if (settings.sessions.length === 0) {
        const message = `The server does not support ${quote(settings.revisions)}: ${why}`
        return Effect.fail(lost ?? negotiation("server/discover", message))
      }
      const opened = initialize(peer, settings)
      return Effect.map(
        lost === undefined ? opened : Effect.mapError(opened, () => lost),
        (agreement) => isSilent === true ? silent(agreement) : agreement
      )
    }
    case "Versions": {
      const { versions } = probed
      const once = (revision: Revision.Revision): boolean => tried.indexOf(revision) === tried.lastIndexOf(revision)
      const next = newest(settings.stateless.filter((revision) => !tried.includes(revision)), versions) ??
        // The server lists the version that it has just refused. It is probed once more: there may be several servers
        // behind one address.
        newest(settings.stateless.filter(once), versions)
      if (next !== undefined) {
        return Effect.flatMap(
          discover(peer, settings, next),
          (again) => conclude(peer, settings, [...tried, next], again)
        )
      }
      const session = newest(settings.sessions, versions)
      if (session !== undefined) return initialize(peer, settings, session)
      const named = newest(settings.revisions, versions)
      const message = named === undefined
        ? `The server supports ${quote(versions)}, this client ${quote(settings.revisions)}`
        : `The server refuses ${quote([named])}, although it lists it as supported`
      return Effect.fail(negotiation("server/discover", message))
    }
  }
}

/** Whether `initialize` was refused with an error that only a server of the stateless revision sends. */
const isFromStatelessServer = (failure: ClientError): boolean => {
  const error = serverErrorOf(failure)
  return error?.code !== undefined && McpError.isStateless({ code: error.code, message: error.message })
}

/** Whether a probe found a server of the stateless revision. */
const isModern = (exit: Exit.Exit<Probed, ClientError> | undefined): exit is Exit.Success<Probed> =>
  exit !== undefined && Exit.isSuccess(exit) && (exit.value._tag === "Agreed" || exit.value._tag === "Versions")

/**
 * Probes the server, and falls back to `initialize`.
 *
 * The probe is not cancelled after `probeTimeout`, since a server may be slow to start. If the server then refuses
 * `initialize`, and has answered the probe in the meantime, that response counts. If it refuses with an error of the
 * stateless revision, the response to the probe is awaited.
 *
 * If the server opens a session, that is its revision for as long as the connection: "an `initialize` request selects
 * legacy semantics, scoped to the stdio process" (2026-07-28, versioning). But silence does not prove an older server.
 * The probe stays pending within the timeout of a request, and its late response decides about the next connection.
 */
export const probe = (peer: Peer, settings: Settings): Effect.Effect<Agreement, ClientError, Scope.Scope> =>
  Effect.gen(function*() {
    const first = settings.stateless.at(-1)!
    const fiber = yield* Effect.forkScoped(discover(peer, settings, first), { startImmediately: true })
    if (settings.sessions.length === 0) {
      return yield* conclude(peer, settings, [first], yield* Fiber.join(fiber))
    }
    const early = yield* settings.shared.callClock.timeoutOption(Fiber.join(fiber), settings.probeTimeout)
    if (early._tag === "Some") return yield* conclude(peer, settings, [first], early.value)
    const opened = yield* Effect.result(initialize(peer, settings))
    const awaited = Result.isFailure(opened) && isFromStatelessServer(opened.failure)
    const late = awaited ? yield* Fiber.await(fiber) : fiber.pollUnsafe()
    if (Result.isFailure(opened) && opened.failure.reason._tag === "NegotiationFailed" && isModern(late)) {
      return yield* conclude(peer, { ...settings, revisions: settings.stateless, sessions: [] }, [first], late.value)
    }
    if (Result.isFailure(opened)) {
      yield* Fiber.interrupt(fiber)
      return yield* Effect.fail(opened.failure)
    }
    const agreement = silent(opened.success)
    fiber.addObserver((exit) => {
      if (Exit.isFailure(exit)) return
      const probed = exit.value
      if (probed._tag === "Agreed") agreement.silence.verdict = probed.agreement
      else if (probed._tag === "Legacy" && probed.isSilent !== true) agreement.silence.verdict = opened.success
    })
    return agreement
  })

/**
 * Uses a stored server profile. Fails, without a request, if it is that of another authorization context. In the stateless revision nothing is sent; in a session-based one, the session is
 * opened.
 */
export const resume =
  (serverProfile: ServerProfile) => (peer: Peer, settings: Settings): Effect.Effect<Agreement, ClientError> => {
    const { authorizationContext, capabilities, info, instructions, negotiatedAt, revision } = serverProfile
    if (authorizationContext !== settings.authorizationContext) {
      return Effect.fail(negotiation("server/discover", "The profile is that of another authorization context"))
    }
    return Revision.era(revision) === "session"
      ? initialize(peer, settings, revision, negotiatedAt)
      : Effect.succeed({ revision, info, capabilities, instructions })
  }
