/**
 * Opens a connection to a server and negotiates. If the server exits because of the probe, it opens another one.
 */
import * as Codec from "@skein/protocol/Codec"
import type { Implementation } from "@skein/protocol/Implementation"
import type { LoggingLevel } from "@skein/protocol/Logging"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import * as Task from "@skein/protocol/Task"
import type { Connection, Origin, Transport } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type { Caller, Dispatcher, Progress, RequestContext } from "@skein/runtime/RequestContext"
import type * as Limits from "@skein/runtime/Limits"
import * as Peer from "@skein/runtime/Peer"
import { RequestRunner } from "@skein/runtime/RequestRunner"
import type { Session, SessionEnd } from "@skein/runtime/Session"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import { type ClientError, NegotiationFailed } from "../../ClientError.ts"
import { type CallClock, CurrentCallClock } from "../base/callClock.ts"
import { clientError } from "../base/errors.ts"
import type { ServerProfile } from "../../ServerProfile.ts"
import type { Notification } from "../../Notification.ts"
import type { Telemetry } from "../../Telemetry.ts"
import type { Configured, Options } from "./clientOptions.ts"
import type { InputRequestHandler } from "./inputRequests.ts"
import { InboundFilter } from "./inboundFilter.ts"
import { initialize, probe, resume, type Settings } from "./handshake.ts"
import { fromConnect, isRefuted } from "./handshakeFailure.ts"
import type { ScopeListener } from "./supervisor.ts"
import { type Agreement, type ConnectionOwner, type NegotiatedConnection, readServerProfile } from "./connection.ts"
import type { Broadcast } from "../base/broadcast.ts"
import { decode } from "./notification.ts"

const defaultInfo: Implementation = { name: "skein", version: "0.2.0" }

/** Makes the function that adds the `_meta` of the stateless revision to each request. */
const stamper = (
  { extensions: ofHost, info: clientInfo = defaultInfo, tasks }: Pick<Options, "extensions" | "info" | "tasks">,
  { capabilities }: InputRequestHandler,
  protocolVersion: Revision.Revision,
  ofTransport: Connection["extensions"],
  logLevel?: LoggingLevel
) => {
  const extensions = {
    ...capabilities.extensions,
    ...ofHost,
    ...ofTransport,
    ...(tasks === false ? undefined : { [Task.extension]: {} })
  }
  const clientCapabilities = { ...capabilities, ...(Object.keys(extensions).length === 0 ? undefined : { extensions }) }
  return RequestMeta.stamper({ protocolVersion, clientInfo, clientCapabilities, logLevel })
}

const settingsOf = (options: Options, { answers, callClock }: ConnectContext, transport: Transport): Settings => {
  const revisions = Revision.all.filter((revision) => options.revisions?.includes(revision) ?? true)
  return {
    revisions,
    sessions: revisions.filter((revision) => Revision.era(revision) === "session"),
    stateless: revisions.filter((revision) => Revision.era(revision) === "stateless"),
    probeTimeout: options.probeTimeout ?? transport.probeTimeout ?? "3 seconds",
    callClock,
    stamp: (revision, extensions) => stamper(options, answers, revision, extensions),
    introduction: (protocolVersion, ofTransport) => {
      const own = answers.capabilities
      const extensions = { ...own.extensions, ...options.extensions, ...ofTransport }
      const capabilities = Object.keys(extensions).length === 0 ? own : { ...own, extensions }
      const params = { protocolVersion, capabilities, clientInfo: options.info ?? defaultInfo }
      return Result.getOrElse(Codec.encodeParams(Method.Initialize, protocolVersion, params), () => params)
    }
  }
}

type Handshake = (peer: Peer.Peer, settings: Settings) => Effect.Effect<Agreement, ClientError, Scope.Scope>

/** The state that all connections of a client share. */
export interface ConnectContext extends Configured {
  readonly answers: InputRequestHandler
  /** The clock of the timeouts of calls, which connections stop. */
  readonly callClock: CallClock
  readonly notifications: Broadcast<Notification>
  /** Whether `notifications` has readers. */
  readonly hasListeners: boolean
  /** The services of all fibers of a connection. */
  readonly context: Context.Context<never>
  /** Receives every notification as it was sent, and the request on whose stream it arrived. */
  readonly onNotification: (notification: JsonRpc.Notification, about?: JsonRpc.Id) => void
  /** Receives progress that belongs to no pending request. */
  readonly onUnmatchedProgress: (peer: Peer.Peer, token: unknown, progress: Progress) => void
  /** Receives the result of a cancelled request, if it arrives nevertheless. */
  readonly onLateResponse: (connection: NegotiatedConnection, method: string, result: JsonRpc.JsonObject) => void
  /**
   * Called when notifications may have been missed; with an error, the connection delivers no further unsolicited
   * messages.
   */
  readonly onGap: (error: TransportError | undefined) => void
}

const asItIs = (params: JsonRpc.JsonObject): JsonRpc.JsonObject => params

/**
 * A connection before and after its handshake. It is also the owner of its peer, so that a connection is one object.
 */
class Connected extends InboundFilter implements NegotiatedConnection, Peer.Options<never> {
  readonly peer: Peer.Peer
  isAssumed: boolean | undefined = undefined
  streamError: TransportError | undefined = undefined
  isStateless = false
  stamp: NegotiatedConnection["stamp"] = asItIs
  readonly #shared: ConnectContext
  readonly #mayInitialize: boolean
  #agreement: Agreement | undefined = undefined
  #owner: ConnectionOwner | undefined = undefined
  #end: SessionEnd | undefined = undefined

  constructor(connection: Connection, shared: ConnectContext, settings: Settings) {
    super(connection)
    this.#shared = shared
    this.#mayInitialize = settings.sessions.length > 0
    this.peer = Peer.makeUnsafe(this, new RequestRunner<never>(this, shared.context))
  }

  /** Closes it with that scope. The finalizer does not retain objects that only the handshake needs. */
  closeWith(scope: Scope.Scope): Effect.Effect<void> {
    return Scope.addFinalizerExit(scope, () => {
      this.peer.close({ _tag: "ClosedByUs" })
      return this.peer.ended
    })
  }

  agreed(agreement: Agreement): void {
    this.#agreement = agreement
    this.isStateless = Revision.era(agreement.revision) === "stateless"
    this.setLogLevel(undefined)
  }

  // ---- for the calls

  get connection(): Connection {
    return this
  }

  get agreement(): Agreement {
    return this.#agreement!
  }

  get revision(): Revision.Revision {
    return this.agreement.revision
  }

  get capabilities(): JsonRpc.JsonObject {
    return this.agreement.capabilities
  }

  get telemetry(): Telemetry | undefined {
    return this.#shared.options.telemetry
  }

  setLogLevel(level: LoggingLevel | undefined): void {
    const { answers, options } = this.#shared
    if (this.isStateless) this.stamp = stamper(options, answers, this.revision, this.extensions, level)
  }

  onEnd(owner: ConnectionOwner): void {
    if (this.#end !== undefined) return owner.connectionEnded(this, this.#end)
    this.#owner = owner
  }

  // ---- for the inbound filter

  protected get effectiveRevision(): Revision.Revision | undefined {
    return this.#agreement?.revision ?? (this.#mayInitialize ? undefined : Revision.latest)
  }

  protected dropped(why: string): void {
    this.#shared.warn(`messages of the server were ignored: ${why}`)
  }

  // ---- for the peer

  get limits(): Limits.Limits | undefined {
    return this.#shared.options.limits
  }

  callTimeAt(now: number): number {
    return this.#shared.callClock.at(now)
  }

  get pauseTimeoutsWhileHandling(): boolean {
    return true
  }

  dispatch(exchange: RequestContext): ReturnType<Dispatcher> {
    return this.#shared.answers.dispatch(exchange, this.peer)
  }

  get handlingOther(): boolean {
    return this.#shared.answers.hasRunningTask(this.peer)
  }

  identify(_request: JsonRpc.Request, session: Session | undefined): Caller {
    return {
      revision: session?.revision ?? Revision.latestSession,
      info: session?.info,
      capabilities: session?.capabilities ?? {}
    }
  }

  onNotification(
    _: Peer.Peer,
    message: JsonRpc.Notification,
    origin?: Origin
  ): Effect.Effect<void> | void {
    this.#shared.onNotification(message, origin?.about)
    if (this.#agreement === undefined || !this.#shared.hasListeners) return
    const decoded = decode(message, this.revision)
    if (Result.isSuccess(decoded)) return this.#shared.notifications.publish(decoded.success)
    return Effect.logWarning(`${message.method} was dropped: ${decoded.failure}`)
  }

  onUnmatchedProgress(token: unknown, progress: Progress): void {
    this.#shared.onUnmatchedProgress(this.peer, token, progress)
  }

  onLateResult(method: string, result: JsonRpc.JsonObject): void {
    this.#shared.onLateResponse(this, method, result)
  }

  onEnded(end: SessionEnd): void {
    this.#end = end
    this.#owner?.connectionEnded(this, end)
  }

  onGap(error: TransportError | undefined): void {
    this.streamError = error
    if (this.#agreement !== undefined) this.#shared.onGap(error)
  }
}

/** The stored server profile, if it can be used. */
const storedProfile = (
  { serverProfile }: Options,
  { revisions }: Settings,
  client: ConnectContext
): ServerProfile | undefined => {
  if (serverProfile === undefined || serverProfile === null) return undefined
  const profile = readServerProfile(serverProfile)
  if (profile === undefined) client.warn("serverProfile is malformed and was ignored")
  return profile !== undefined && revisions.includes(profile.revision) ? profile : undefined
}

/**
 * Opens a connection in a scope that is passed to `owned` before anything runs in it. The errors are those of
 * `Client.make`.
 *
 * A `serverProfile` that can be used skips the probe. In the session-based revisions, if the handshake fails because of
 * the profile, another handshake runs without it. The stateless revision has no handshake: the connection `isAssumed`,
 * and a caller that refutes the assumption opens the next connection with the option `serverProfile: undefined`.
 */
export const connect = (
  transport: Transport,
  options: Options,
  shared: ConnectContext,
  owned: ScopeListener
): Effect.Effect<NegotiatedConnection, ClientError> => {
  const settings = settingsOf(options, shared, transport)
  if (settings.revisions.length === 0) {
    return Effect.fail(clientError(NegotiationFailed, "The option `revisions` names no revision"))
  }
  /** Opens one connection and runs its handshake, in a separate scope. If it fails, the scope is closed first. */
  const attempt = (handshake: Handshake, connecting = transport.connect) =>
    Effect.suspend(() => {
      const scope = Scope.makeUnsafe()
      owned(scope)
      const opening = Effect.gen(function*() {
        const opened = yield* Effect.provideService(
          Effect.mapError(connecting, fromConnect),
          CurrentCallClock,
          shared.callClock
        )
        const connection = yield* Effect.uninterruptible(Effect.suspend(() => {
          const connection = new Connected(opened, shared, settings)
          return Effect.as(connection.closeWith(scope), connection)
        }))
        connection.agreed(yield* handshake(connection.peer, { ...settings, extensions: opened.extensions }))
        return connection
      })
      return opening.pipe(
        Scope.provide(scope),
        Effect.onError((cause) => Scope.close(scope, Exit.failCause(cause)))
      )
    })
  // Some servers of the session-based revisions exit when they get a request before `initialize`. A request that is
  // lost while the connection goes on is not such an exit.
  const negotiated: Effect.Effect<NegotiatedConnection, ClientError> = settings.stateless.length === 0
    ? attempt(initialize)
    : settings.sessions.length === 0
    ? attempt(probe)
    : Effect.catchIf(
      attempt(probe),
      ({ reason }) => reason._tag === "Closed" && reason.end !== undefined,
      () => attempt(initialize)
    )
  const serverProfile = storedProfile(options, settings, shared)
  if (serverProfile === undefined) return negotiated
  const { httpMode } = serverProfile
  const connecting = httpMode === undefined ? transport.connect : transport.connectWith?.(httpMode)
  const assumed = Effect.map(attempt(resume(serverProfile), connecting), (connection): NegotiatedConnection => {
    connection.isAssumed = connection.isStateless
    return connection
  })
  return Effect.catchIf(assumed, isRefuted, () => negotiated)
}
