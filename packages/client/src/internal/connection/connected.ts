/**
 * An open connection of a client: it owns the peer, filters the messages that the peer receives, and passes
 * notifications on.
 */
import type { ClientCapabilities } from "@skein/protocol/Capabilities"
import * as Codec from "@skein/protocol/Codec"
import type { Implementation } from "@skein/protocol/Implementation"
import type { LoggingLevel } from "@skein/protocol/Logging"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Stamp from "@skein/protocol/Stamp"
import * as Revision from "@skein/protocol/Revision"
import * as Task from "@skein/protocol/Task"
import type { Connection, Origin } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type { Caller, Dispatcher, Progress, RequestContext } from "@skein/runtime/RequestContext"
import type * as Limits from "@skein/runtime/Limits"
import * as Peer from "@skein/runtime/Peer"
import { RequestRunner } from "@skein/runtime/RequestRunner"
import type { Session, SessionEnd } from "@skein/runtime/Session"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type { Notification } from "../../Notification.ts"
import type { Telemetry } from "../../Telemetry.ts"
import type { CallClock } from "../base/callClock.ts"
import type { Configured, Options } from "./clientOptions.ts"
import type { Agreement, ConnectionOwner, NegotiatedConnection } from "./connection.ts"
import type { InputRequestHandler } from "./inputRequests.ts"

/** The state of a client that all of its connections share. It receives their messages. */
export interface SharedState extends Configured {
  /** The services of all fibers of a connection. */
  readonly context: Context.Context<never>
  /** The clock of the timeouts of calls, which connections stop. */
  readonly callClock: CallClock
  /** Handles the requests of the server. */
  readonly answers: InputRequestHandler
  /** Whether `publish` has receivers. */
  readonly hasReaders: boolean
  /** Receives each decoded notification. */
  readonly publish: (notification: Notification) => void
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

/** Name and version of a client that sets none. */
export const defaultInfo: Implementation = { name: "skein", version: "0.2.0" }

type Extensions = Readonly<Record<string, JsonRpc.JsonObject>> | undefined

/** The capabilities that a client declares, with the extensions of the host, of the transport, and of tasks. */
export const declared = (
  own: ClientCapabilities,
  ofHost: Extensions,
  ofTransport: Extensions,
  ofTasks?: Extensions
): ClientCapabilities => {
  const extensions = { ...own.extensions, ...ofHost, ...ofTransport, ...ofTasks }
  return Object.keys(extensions).length === 0 ? own : { ...own, extensions }
}

/** Makes the function that adds the `_meta` of the stateless revision to each request. */
export const stamper = (
  { extensions: ofHost, info: clientInfo = defaultInfo, tasks }: Pick<Options, "extensions" | "info" | "tasks">,
  { capabilities }: InputRequestHandler,
  protocolVersion: Revision.Revision,
  ofTransport: Connection["extensions"],
  logLevel?: LoggingLevel
) => {
  const ofTasks = tasks === false ? undefined : { [Task.extension]: {} }
  const clientCapabilities = declared(capabilities, ofHost, ofTransport, ofTasks)
  return Stamp.stamper({ protocolVersion, clientInfo, clientCapabilities, logLevel })
}

const asItIs = (params: JsonRpc.JsonObject): JsonRpc.JsonObject => params

/**
 * Why a message of the server is dropped; undefined if it is handled. The peer would answer messages that it does not
 * understand, as a server must; a client must not.
 *
 * - An error response to input that is not JSON-RPC would be useless to a server that writes prose to its stdout. A
 *   malformed response is handled, since a request waits for it.
 * - In the stateless revision, a server "MUST NOT write JSON-RPC requests", and the client "MUST NOT write JSON-RPC
 *   responses" (2026-07-28, stdio).
 */
const reasonToDrop = (
  message: JsonRpc.Message | JsonRpc.Invalid,
  revision: Revision.Revision | undefined
): string | undefined => {
  if (message._tag === "Invalid" && !message.answer) return "they are not JSON-RPC"
  return message._tag === "Request" && revision === "2026-07-28"
    ? "2026-07-28 has no requests of the server"
    : undefined
}

const tags: ReadonlyMap<string, Exclude<Notification["_tag"], "Other">> = new Map([
  [Method.LoggingMessage.name, "LoggingMessage"],
  [Method.ToolListChanged.name, "ToolListChanged"],
  [Method.ResourceListChanged.name, "ResourceListChanged"],
  [Method.ResourceUpdated.name, "ResourceUpdated"],
  [Method.PromptListChanged.name, "PromptListChanged"],
  [Method.ElicitationComplete.name, "ElicitationComplete"],
  [Method.SubscriptionsAcknowledged.name, "SubscriptionsAcknowledged"]
])

/**
 * Decodes a notification in a revision; returns a message about the problem if it is malformed. Malformed optional members
 * are left out: their sender would not learn of an error.
 */
const decode = (
  message: JsonRpc.Notification,
  revision: Revision.Revision
): Result.Result<Notification, string> => {
  const { method, params = {} } = message
  const known = Method.notification(method, revision)
  const _tag = known === undefined ? undefined : tags.get(method)
  if (known === undefined || _tag === undefined) return Result.succeed({ _tag: "Other", method, params })
  return Result.map(
    Codec.decodeParams(known, revision, params, []),
    (params) => ({ _tag, method, params }) as Notification
  )
}

/**
 * A connection before and after its handshake. It is the options of its peer as well: an object of its own for them
 * needs a closure for each option, and made an idle client of the stateless revision 27 % larger (7.7 kB, not 6.0).
 */
export class Connected implements NegotiatedConnection, Peer.Options<never> {
  readonly peer: Peer.Peer
  readonly connection: Connection
  isAssumed: boolean | undefined = undefined
  streamError: TransportError | undefined = undefined
  isStateless = false
  stamp: NegotiatedConnection["stamp"] = asItIs
  readonly #shared: SharedState
  readonly #mayInitialize: boolean
  #agreement: Agreement | undefined = undefined
  #owner: ConnectionOwner | undefined = undefined
  #end: SessionEnd | undefined = undefined
  // Why messages were dropped. Each reason is logged once.
  #dropped: Set<string> | undefined = undefined

  authorizationContext: string | undefined

  constructor(connection: Connection, shared: SharedState, mayInitialize: boolean) {
    this.connection = connection
    this.#shared = shared
    this.#mayInitialize = mayInitialize
    this.peer = Peer.makeUnsafe(this, new RequestRunner<never>(this, shared.context))
  }

  /** Closes it with that scope. The finalizer does not retain objects that only the handshake needs. */
  closeWith(scope: Scope.Scope): Effect.Effect<void> {
    return Scope.addFinalizerExit(scope, () => {
      this.peer.close({ _tag: "ClosedByUs" })
      return this.peer.ended
    })
  }

  agreed(agreement: Agreement, authorizationContext: string | undefined): void {
    this.#agreement = agreement
    this.authorizationContext = authorizationContext
    this.isStateless = Revision.era(agreement.revision) === "stateless"
    this.setLogLevel(undefined)
  }

  // ---- for the calls

  get sendsHeaders(): boolean {
    return this.connection.sendsHeaders === true
  }

  get httpMode(): string | undefined {
    return this.connection.httpMode
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
    if (!this.isStateless) return
    const { answers, options } = this.#shared
    this.stamp = stamper(options, answers, this.revision, this.connection.extensions, level)
  }

  onEnd(owner: ConnectionOwner): void {
    if (this.#end !== undefined) return owner.connectionEnded(this, this.#end)
    this.#owner = owner
  }

  // ---- for the peer

  /**
   * The negotiated revision. Before the negotiation, the stateless revision if no session can be opened, else
   * undefined.
   */
  get #effectiveRevision(): Revision.Revision | undefined {
    return this.#agreement?.revision ?? (this.#mayInitialize ? undefined : Revision.latest)
  }

  accept(message: JsonRpc.Message | JsonRpc.Invalid): boolean {
    const why = reasonToDrop(message, this.#effectiveRevision)
    if (why === undefined) return true
    const dropped = this.#dropped ??= new Set()
    if (!dropped.has(why)) this.#shared.warn(`messages of the server were ignored: ${why}`)
    dropped.add(why)
    return false
  }

  get splitBatches(): boolean {
    return this.#effectiveRevision !== "2025-03-26"
  }

  get limits(): Limits.Limits | undefined {
    return this.#shared.options.limits
  }

  callTimeAt(now: number): number {
    return this.#shared.callClock.at(now)
  }

  get pauseTimeoutsWhileHandling(): boolean {
    return true
  }

  dispatch(request: RequestContext): ReturnType<Dispatcher> {
    return this.#shared.answers.dispatch(request, this.peer)
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
    const shared = this.#shared
    shared.onNotification(message, origin?.about)
    if (this.#agreement === undefined || !shared.hasReaders) return
    const decoded = decode(message, this.revision)
    if (Result.isSuccess(decoded)) return shared.publish(decoded.success)
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
