/**
 * One side of a connection: it handles the requests of its peer, and sends requests of its own.
 *
 * It needs no fiber while it is idle, and no mailbox, because a connection delivers its messages one by one. Each
 * inbound request is an `Exchange`, run in a fiber that ends with the session at the latest. Each outbound call
 * waits in a table, with one timer for all of them.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import { logValue } from "@skein/protocol/Text"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import type { Connection, Origin, Receiver } from "./Connection.ts"
import { Bounds, type FixedBounds } from "./internal/base/fixedBounds.ts"
import { type Identify, InboundRequests, logFailure, RunningNotifications } from "./internal/peer/inboundRequests.ts"
import {
  closedError,
  OutboundCalls,
  type PeerCore,
  readProgress,
  type RequestIds
} from "./internal/peer/outboundCalls.ts"
import * as Limits from "./Limits.ts"
import type { CallOptions, CallResult, Exchange, McpRequest, Progress, SessionPeer } from "./RequestContext.ts"
import { logInterrupted, type RequestHandler, RequestRunner } from "./RequestRunner.ts"
import type { Session, SessionEnd } from "./Session.ts"
import type { TransportError } from "./TransportError.ts"

export type { RequestIds } from "./internal/peer/outboundCalls.ts"

/** How a peer is made, with a runner of its requests. */
export interface BaseOptions<R> {
  readonly connection: Connection
  /**
   * Finds the caller and the revision of a request, or the reason to refuse it before it is dispatched. It must not
   * change anything: the session is opened by the handler of `initialize`.
   */
  readonly identify: Identify
  /**
   * Whether a message is handled. A message that is not handled gets no reply. It is called for each message, and for
   * each member of a batch, and must not throw. By default every message is handled.
   */
  readonly accept?: ((message: JsonRpc.Message | JsonRpc.Invalid) => boolean) | undefined
  /**
   * Whether the members of a batch are handled one by one, each with a reply of its own. By default a batch gets one
   * reply, and is refused in revisions that have no batches.
   */
  readonly splitBatches?: boolean | undefined
  /**
   * Handles a notification other than `notifications/cancelled` and `notifications/progress`, which the peer handles
   * itself. Failures are logged. Handlers start in the order of the notifications, and do not wait for each other.
   */
  readonly onNotification?:
    | ((
      peer: Peer,
      notification: JsonRpc.Notification,
      origin: Origin | undefined
    ) => Effect.Effect<void, never, R> | void)
    | undefined
  /**
   * Receives progress that belongs to no pending call: the call was answered with a task, or is over. Must not throw.
   */
  readonly onUnmatchedProgress?: ((token: unknown, progress: Progress) => void) | undefined
  /**
   * Receives the result of a request that was cancelled on this side, if the result arrives all the same because the
   * two messages crossed. The last 1,000 cancelled requests are remembered. Must not throw.
   */
  readonly onLateResult?: ((method: string, result: JsonRpc.JsonObject) => void) | undefined
  /** Called after the end of the session, when everything that ran in it is over: see {@link Peer.ended}. */
  readonly onEnded?: ((end: SessionEnd) => void) | undefined
  /** Called when notifications may have been missed; with an error, no further ones will arrive. See `Receiver.gap`. */
  readonly onGap?: ((error: TransportError | undefined) => void) | undefined
  /**
   * Whether the timeouts of outbound calls are paused while an inbound request is handled, up to their `maxTimeout`,
   * and restart afterwards. For a client, whose user may have to answer the server before the server answers the call.
   * Off by default.
   */
  readonly pauseTimeoutsWhileHandling?: boolean | undefined
  /**
   * Returns a time of the monotonic clock, in milliseconds, without the time for which the timeouts of outbound calls
   * have stood still. It never decreases. A client stops it while credentials are being obtained. By default it
   * returns its argument.
   */
  readonly callTimeAt?: ((now: number) => number) | undefined
  /** Whether this side handles something other than a request for the peer. That pauses timeouts too. */
  readonly handlingOther?: boolean | undefined
  /**
   * The ids of the requests of this side, for a server whose processes share their sessions: an id names the process. By
   * default the ids begin with 1.
   */
  readonly requestIds?: RequestIds | undefined
  readonly limits?: Limits.Limits | undefined
}

/** How a peer is made. `R` are the services that its handlers need besides the request. */
export interface Options<R> extends BaseOptions<R>, RequestHandler<R> {}

/** One side of a connection. */
export interface Peer extends SessionPeer {
  /**
   * Waits for the end of the session, when everything that ran in it is over and the connection is closed, and returns
   * the reason. Work that ignores its interruption is waited for no longer than 5 seconds.
   */
  readonly ended: Effect.Effect<SessionEnd>
  /** The inbound requests that are suspended now, oldest first. */
  readonly requests: Iterable<Exchange>
  /** The number of inbound requests that wait until another one ends. */
  readonly queued: number
  /** Those requests, oldest first. */
  readonly queuedRequests: Iterable<JsonRpc.Request>
  /**
   * The pending outbound calls, oldest first; `startedAt` in milliseconds of the monotonic clock, `about` the id of the
   * inbound request whose handler sent it.
   */
  readonly calls: Iterable<{
    readonly id: number
    readonly method: string
    readonly startedAt: number
    readonly about: JsonRpc.Id | undefined
  }>
}

const none: Iterable<never> = []

class PeerImpl<R> implements Peer, Receiver, PeerCore {
  #session: Session | undefined = undefined
  readonly limits: Limits.Resolved
  readonly bounds: FixedBounds
  readonly #options: BaseOptions<R>
  readonly #runner: RequestRunner<R>
  readonly #requests: InboundRequests<R>
  #calls: OutboundCalls | undefined = undefined
  #notifications: RunningNotifications | undefined = undefined
  #scope: Scope.Closeable | undefined = undefined
  #end: SessionEnd | undefined = undefined
  // The fiber that shuts the session down once it has ended, and the callers that wait for that.
  #shutdown: Fiber.Fiber<SessionEnd> | undefined = undefined
  #awaitingEnd: Set<(end: Effect.Effect<SessionEnd>) => void> | undefined = undefined
  #awaitingIdle: ((done: Effect.Effect<void>) => void) | undefined = undefined
  // The peer has stopped sending, and the requests in flight may finish.
  #draining = false
  // The session ends because this side stops.
  #stopping = false

  constructor(options: BaseOptions<R>, runner: RequestRunner<R>, limits: Limits.Resolved) {
    this.#options = options
    this.#runner = runner
    this.limits = limits
    this.bounds = Context.get(runner.context, Bounds)
    this.#requests = new InboundRequests(this, runner, options)
    options.connection.open(this)
  }

  // ---- the public side

  request(method: string, params?: JsonRpc.JsonObject, options?: CallOptions): CallResult {
    return this.call(undefined, method, params, options)
  }

  call(
    about: JsonRpc.Id | undefined,
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions = {}
  ): CallResult {
    return Effect.callback((resume) => {
      if (this.#end !== undefined) return resume(Effect.fail(closedError(method, this.#end, true)))
      return (this.#calls ??= new OutboundCalls(this, this.#options.requestIds)).start(
        method,
        params,
        options,
        about,
        resume
      )
    })
  }

  notify(method: string, params?: JsonRpc.JsonObject): Effect.Effect<void> {
    return Effect.suspend(() =>
      this.connection.send(JsonRpc.notification(method, params)) ? Effect.void : this.connection.drained
    )
  }

  close(end: SessionEnd, stopping = false): void {
    if (this.#end !== undefined) {
      if (!this.#draining || end._tag === "ClosedByPeer") return
      this.#draining = false
      this.#stopping &&= stopping
      this.#awaitingIdle?.(Effect.void)
      return
    }
    this.#end = end
    this.#draining = end._tag === "ClosedByPeer"
    this.#stopping = stopping
    this.#calls?.end(end)
    const shutdown = this.#shutdown = this.fork(Effect.as(this.#shutDown, end))
    const awaiting = this.#awaitingEnd ?? []
    this.#awaitingEnd = undefined
    for (const resume of awaiting) resume(Fiber.join(shutdown))
    if (this.#options.onEnded !== undefined) shutdown.addObserver(() => this.#options.onEnded!(end))
  }

  get ended(): Effect.Effect<SessionEnd> {
    return Effect.callback((resume) => {
      if (this.#shutdown !== undefined) return resume(Fiber.join(this.#shutdown))
      const awaiting = this.#awaitingEnd ??= new Set()
      awaiting.add(resume)
      return Effect.sync(() => void awaiting.delete(resume))
    })
  }

  get session(): Session | undefined {
    return this.#session
  }

  set session(session: Session | undefined) {
    if (this.#session !== undefined && session !== undefined) this.#requests.sessionReplaced()
    this.#session = session
  }

  get hasSessionId(): boolean {
    return this.connection.hasSessionId === true
  }

  get scope(): Scope.Scope {
    if (this.#scope === undefined) {
      this.#scope = Scope.makeUnsafe("parallel")
      if (this.#end !== undefined) this.fork(Scope.close(this.#scope, Exit.void))
    }
    return this.#scope
  }

  get requests(): Iterable<Exchange> {
    return this.#requests.suspendedRequests
  }

  get queued(): number {
    return this.#requests.queued
  }

  get queuedRequests(): Iterable<JsonRpc.Request> {
    return this.#requests.queuedRequests
  }

  get calls(): Peer["calls"] {
    return this.#calls?.pending ?? none
  }

  // ---- the messages of the peer

  message(inbound: JsonRpc.Inbound, origin: Origin | undefined): void {
    if (inbound._tag === "Batch") return this.#onBatch(inbound.members, origin)
    if (this.#options.accept?.(inbound) === false) return
    switch (inbound._tag) {
      case "Request":
        return this.#requests.receive(inbound, origin)
      case "Notification":
        return this.#onNotification(inbound, origin)
      case "Success":
      case "Failure":
        return this.#calls?.settle(inbound)
      case "Invalid":
        return this.#onInvalid(inbound)
    }
  }

  #onBatch(members: ReadonlyArray<JsonRpc.Message | JsonRpc.Invalid>, origin: Origin | undefined): void {
    const options = this.#options
    if (options.splitBatches === true) return members.forEach((member) => this.message(member, origin))
    const accepted = options.accept === undefined ? members : members.filter((member) => options.accept!(member))
    if (accepted.length === 0 && members.length > 0) return
    this.#requests.receiveBatch(accepted, origin, (member, origin) => this.message(member, origin))
  }

  refused(id: JsonRpc.Id, error: TransportError): void {
    this.#calls?.fail(id, error)
  }

  gap(error: TransportError | undefined): void {
    if (this.#end === undefined) this.#options.onGap?.(error)
  }

  end(end: SessionEnd): void {
    this.close(end, end._tag === "ClosedByPeer" && this.connection.stopsWithPeer === true)
  }

  #onNotification(notification: JsonRpc.Notification, origin: Origin | undefined): void {
    switch (notification.method) {
      case "notifications/cancelled": {
        const { requestId, reason } = notification.params ?? {}
        if (!this.#requests.cancel(requestId as JsonRpc.Id, reason)) this.#calls?.endSubscription(requestId)
        return
      }
      case "notifications/progress":
        if (notification.params !== undefined && this.#calls?.progress(notification.params) === false) {
          this.#onStrayProgress(notification.params)
        }
        return
      default:
        // The handler of the connection runs first, so that the client's state is up to date when a call receives the
        // notification.
        this.#handle(notification, origin)
        return this.#calls?.notify(notification)
    }
  }

  #onStrayProgress(params: JsonRpc.JsonObject): void {
    const report = this.#options.onUnmatchedProgress === undefined ? undefined : readProgress(params)
    if (report !== undefined) this.#options.onUnmatchedProgress!(params["progressToken"], report)
  }

  #handle(notification: JsonRpc.Notification, origin: Origin | undefined): void {
    if (this.#end !== undefined) return
    const { method } = notification
    this.#requests.starting(() => {
      let handled: Effect.Effect<void, never, R> | void
      try {
        handled = this.#options.onNotification?.(this, notification, origin)
      } catch (defect) {
        handled = Effect.die(defect)
      }
      if (handled === undefined) return
      // The bound is on the effects. Synchronous parts, such as clearing a cache, always run.
      if (this.#notifications?.full === true) return this.#notifications.drop(method)
      const fiber = this.fork(logFailure(method, handled))
      if (fiber.pollUnsafe() !== undefined) return
      ;(this.#notifications ??= new RunningNotifications(this)).add(method, fiber)
      if (this.isOver) fiber.interruptUnsafe()
    })
  }

  #onInvalid(invalid: JsonRpc.Invalid): void {
    // A response is never answered: its id would name a request of the peer.
    if (invalid.answer) return this.#calls?.failInvalid(invalid)
    // "The receiver MUST NOT send a response" (2025-11-25, basic, notifications).
    if (invalid.notification === true) {
      return this.#runner.log(Effect.logDebug(`ignored an invalid notification: ${invalid.error.message}`))
    }
    this.#requests.replyInvalid(invalid)
  }

  // ---- for the inbound requests and the outbound calls

  get connection(): Connection {
    return this.#options.connection
  }

  now(): number {
    return this.#runner.now()
  }

  callTimeAt(now: number): number {
    return this.#options.callTimeAt === undefined ? now : this.#options.callTimeAt(now)
  }

  fork<A, E>(effect: Effect.Effect<A, E, R>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(this.#runner.context)(effect)
  }

  get revision(): Revision.Revision {
    return this.session?.revision ?? Revision.latest
  }

  get isEnded(): boolean {
    return this.#end !== undefined
  }

  get isOver(): boolean {
    return this.#end !== undefined && !this.#draining
  }

  get isStopping(): boolean {
    return this.#stopping
  }

  get pausesTimeouts(): boolean {
    return this.#options.pauseTimeoutsWhileHandling === true &&
      (this.#requests.size > 0 || this.#options.handlingOther === true)
  }

  get onLateResult(): PeerCore["onLateResult"] {
    const options = this.#options
    return options.onLateResult === undefined ? undefined : (method, result) => options.onLateResult!(method, result)
  }

  countChanged(): void {
    if (this.#options.pauseTimeoutsWhileHandling === true && this.#requests.size === 0) this.#calls?.restartTimeouts()
    this.settle()
  }

  settle(): void {
    if (this.#awaitingIdle !== undefined && this.#running === 0) this.#awaitingIdle(Effect.void)
  }

  // ---- shutdown

  get #running(): number {
    return this.#requests.active + (this.#notifications?.running.size ?? 0)
  }

  get #awaitIdle(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.#running === 0) return resume(Effect.void)
      this.#awaitingIdle = resume
    })
  }

  /**
   * Ends the work of the session. Requests in flight may finish first if the peer merely stopped sending; then they are
   * interrupted.
   */
  get #shutDown(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      const releasable = [...this.requests].filter(({ release }) => release !== undefined)
      for (const exchange of releasable) exchange.release?.()
      // They end in the next turn, and are answered even if everything else is interrupted.
      if (releasable.length > 0) yield* Effect.yieldNow
      if (this.#draining && this.#running > 0) yield* Effect.timeoutOption(this.#awaitIdle, this.limits.shutdownTimeout)
      this.#draining = false
      this.#requests.discardQueued()
      const interrupted = [...this.requests]
      for (const exchange of interrupted) exchange.cancel(this.#stopping)
      // The sessions of an HTTP endpoint, which stop together, have one line.
      if (this.connection.stopsWithPeer === true) yield* logInterrupted(interrupted)
      for (const fiber of this.#notifications?.running.keys() ?? none) fiber.interruptUnsafe()
      const { interruptTimeout } = this.bounds
      const closing = this.#scope === undefined ? undefined : this.fork(Scope.close(this.#scope, Exit.void))
      if (closing !== undefined || this.#running > 0) {
        const scopeClosed = closing === undefined ? Effect.void : Fiber.await(closing)
        yield* Effect.timeoutOption(Effect.andThen(scopeClosed, this.#awaitIdle), interruptTimeout)
      }
      const left = [
        ...Array.from(this.requests, ({ method }) => logValue(method)),
        ...Array.from<string, string>(this.#notifications?.running.values() ?? none, (method) => logValue(method))
      ]
      if (closing !== undefined && closing.pollUnsafe() === undefined) left.push("a finalizer of the session")
      for (const name of left) {
        yield* Effect.logWarning(`${name} did not stop within ${interruptTimeout} ms of its interruption`)
      }
      yield* this.connection.close
    })
  }
}

/**
 * Starts a peer that the caller must close, with a runner that several peers may share. Handlers get the services of
 * the runner.
 */
export const makeUnsafe = <R = never>(options: BaseOptions<R>, runner: RequestRunner<R>): Peer =>
  new PeerImpl(options, runner, Limits.resolve(options.limits))

/**
 * Starts a peer on a connection. Its handlers get the services of the surrounding context. When the scope closes, the
 * session is closed and everything that runs in it is interrupted; that waits for 5 seconds at most.
 */
export const make = <R = never>(
  options: Options<R>
): Effect.Effect<Peer, never, Exclude<R, McpRequest> | Scope.Scope> =>
  Effect.acquireRelease(
    Effect.map(
      Effect.context<Exclude<R, McpRequest>>(),
      // Each request adds itself, as `McpRequest`. The scope belongs to the connection, and requests must not use it.
      (context): Peer =>
        makeUnsafe(options, new RequestRunner(options, Context.omit(Scope.Scope)(context) as Context.Context<R>))
    ),
    (peer) =>
      Effect.suspend(() => {
        peer.close({ _tag: "ClosedByUs" }, true)
        return peer.ended
      })
  )
