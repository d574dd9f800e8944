/**
 * The actor of one connection: it runs what the other side asks, and asks the other side.
 *
 * A peer is a few fields, and no fiber while it is idle: its end starts one. It has no mailbox, because a connection delivers its
 * messages one by one already. Each request of the other side is an `RequestContext`, a fiber that ends with the peer at the latest;
 * each own request waits in a table with one timer for all.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type * as Revision from "@skein/protocol/Revision"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import type { Connection, Headers, Origin, Receiver } from "./Connection.ts"
import type { TransportError } from "./TransportError.ts"
import type {
  Caller,
  CallOptions,
  Dispatcher,
  McpRequest,
  Progress,
  Refusal,
  RequestContext
} from "./RequestContext.ts"
import { BatchReply } from "./internal/batch.ts"
import { type CallResult, Calls, closed, type Host as CallsHost, readProgress } from "./internal/outboundCalls.ts"
import { guard } from "./internal/guard.ts"
import { harmless, Notices } from "./internal/notificationQueue.ts"
import { type Host as RequestsHost, Requests } from "./internal/inboundRequests.ts"
import { millisOf } from "./internal/time.ts"
import * as Limits from "./Limits.ts"
import type { RequestError } from "./RequestError.ts"
import type { Session, SessionEnd } from "./Session.ts"

/** How a peer is made. `R` is what its handlers need besides the request. */
export interface Options<R> {
  readonly connection: Connection
  /** Answers the requests of the other side. */
  readonly dispatch: Dispatcher<R | McpRequest>
  /** Says who asks, and in which revision; or why the request is refused before it is dispatched. */
  readonly identify: (peer: Peer, request: JsonRpc.Request, origin: Origin | undefined) => Caller | Refusal
  /**
   * Handles a notification other than `notifications/cancelled` and `notifications/progress`, which the peer handles itself.
   * What fails is logged. Each is started in the order in which it came, and does not wait for the one before.
   */
  readonly onNotification?:
    | ((peer: Peer, notification: JsonRpc.Notification) => Effect.Effect<void, never, R> | void)
    | undefined
  /** Hears of progress that belongs to no call that waits: to one that was answered with a task, or too late. Must not throw. */
  readonly onStray?: ((token: unknown, progress: Progress) => void) | undefined
  /**
   * Hears the result of a request that was cancelled on this side, where it comes all the same: the two have crossed. It is told of
   * the last 1,000 that were. Must not throw.
   */
  readonly onLate?: ((method: string, result: JsonRpc.JsonObject) => void) | undefined
  /** Hears the end of the session, when everything that ran in it is over: see {@link Peer.ended}. */
  readonly onEnded?: ((end: SessionEnd) => void) | undefined
  /** Hears that notifications may have been missed; with an error, that no more will come unasked. See `Receiver`. */
  readonly onMissed?: ((error: TransportError | undefined) => void) | undefined
  /**
   * Whether the timeouts of own requests stand still while a request of the other side is handled, up to their `maxTimeout`, and
   * start anew when it was answered: for a client, whose user may be asked by the server before the call is answered. Off by
   * default.
   */
  readonly patient?: boolean | undefined
  /** Whether this side is at work for the other side though it has no request to answer: `patient` counts that too. */
  readonly occupied?: boolean | undefined
  readonly limits?: Limits.Limits | undefined
}

/** One side of a connection. See the module's text. */
export interface Peer {
  /** What was negotiated, once it was; for a request-era connection it stays undefined. */
  session: Session | undefined
  /** Sends a request and waits for its answer. Interrupting it tells the other side, with `notifications/cancelled`. */
  readonly request: (
    method: string,
    params?: JsonRpc.JsonObject,
    options?: CallOptions
  ) => Effect.Effect<JsonRpc.JsonObject, McpError.McpError | RequestError>
  /**
   * Sends a notification. Waits while the other side is slow to read; does nothing after the end. Parameters without JSON form
   * are a defect.
   */
  readonly notify: (method: string, params?: JsonRpc.JsonObject) => Effect.Effect<void>
  /**
   * Ends the session for a reason of this side's. Requests in flight are interrupted, calls fail with `Closed`. A session that
   * has ended already keeps its reason; if it still waits for requests to finish, it does not any more.
   *
   * `stopping`: because this side stops as a whole. Its requests know that then: see `RequestContext.stopped`.
   */
  readonly close: (end: SessionEnd, stopping?: boolean) => void
  /**
   * Waits for the end of the session, when everything that ran in it is over and the connection is closed, and says why it
   * ended. What ignores its interruption is waited for no longer than `interruptTimeout`.
   */
  readonly ended: Effect.Effect<SessionEnd>
  /** Closed when the session ends. Made when first asked for. */
  readonly scope: Scope.Scope
  /** The requests of the other side that are suspended now, oldest first. */
  readonly exchanges: Iterable<RequestContext>
  /** How many requests of the other side wait for one of those to end. */
  readonly queued: number
  /** The own requests that wait for an answer, oldest first; `startedAt` in milliseconds of the monotonic clock. */
  readonly calls: Iterable<{ readonly id: number; readonly method: string; readonly startedAt: number }>
}

const none: Iterable<never> = []

const isAnswered = (message: JsonRpc.Message | JsonRpc.Invalid): message is JsonRpc.Invalid =>
  message._tag === "Invalid" && !message.answer && message.notification !== true

class PeerImpl<R> implements Peer, Receiver, CallsHost, RequestsHost {
  session: Session | undefined = undefined
  readonly #context: Context.Context<R>
  readonly #clock: Clock.Clock
  readonly #options: Options<R>
  readonly #connection: Connection
  readonly #limits: Limits.Resolved
  readonly #requests: Requests<R>
  #calls: Calls | undefined = undefined
  #notices: Notices | undefined = undefined
  #scope: Scope.Closeable | undefined = undefined
  #end: SessionEnd | undefined = undefined
  // What winds it down, once it has ended, and who waits for that.
  #last: Fiber.Fiber<SessionEnd> | undefined = undefined
  #awaiting: Set<(end: Effect.Effect<SessionEnd>) => void> | undefined = undefined
  #idle: ((done: Effect.Effect<void>) => void) | undefined = undefined
  #paused = false
  // Requests and notifications that are in the part of their handler that comes before it suspends.
  #starting = 0
  #draining = false
  // It ends because this side stops.
  #stopping = false

  constructor(options: Options<R>, context: Context.Context<R>, limits: Limits.Resolved) {
    this.#options = options
    this.#connection = options.connection
    this.#limits = limits
    this.#context = context
    this.#clock = Context.get(context, Clock.Clock)
    this.#requests = new Requests(this, options.connection, options, context, limits)
    this.#connection.open(this)
  }

  // ---- what a holder of the peer sees

  request(method: string, params?: JsonRpc.JsonObject, options?: CallOptions): ReturnType<Peer["request"]> {
    return this.call(undefined, method, params, options)
  }

  call(
    about: JsonRpc.Id | undefined,
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions = {}
  ): CallResult {
    return Effect.callback((resume) => {
      if (this.#end !== undefined) return resume(Effect.fail(closed(method, this.#end, true)))
      const cancel = (this.#calls ??= new Calls(this, this.#limits)).start(method, params, options, about, resume)
      this.#flow()
      return cancel
    })
  }

  notify(method: string, params?: JsonRpc.JsonObject): Effect.Effect<void> {
    return Effect.suspend(() =>
      this.#connection.send(JsonRpc.notification(method, params)) ? Effect.void : this.#connection.drained
    )
  }

  close(end: SessionEnd, stopping = false): void {
    if (this.#end !== undefined) {
      if (!this.#draining || end._tag === "Ended") return
      this.#draining = false
      this.#stopping &&= stopping
      this.#idle?.(Effect.void)
      return
    }
    this.#end = end
    this.#draining = end._tag === "Ended"
    this.#stopping = stopping
    this.#flow()
    this.#calls?.end(end)
    const last = this.#last = this.fork(Effect.as(this.#windDown, end))
    const awaiting = this.#awaiting ?? []
    this.#awaiting = undefined
    for (const resume of awaiting) resume(Fiber.join(last))
    if (this.#options.onEnded !== undefined) last.addObserver(() => this.#options.onEnded!(end))
  }

  get ended(): Effect.Effect<SessionEnd> {
    return Effect.callback((resume) => {
      if (this.#last !== undefined) return resume(Fiber.join(this.#last))
      const awaiting = this.#awaiting ??= new Set()
      awaiting.add(resume)
      return Effect.sync(() => void awaiting.delete(resume))
    })
  }

  get scope(): Scope.Scope {
    if (this.#scope === undefined) {
      this.#scope = Scope.makeUnsafe("parallel")
      if (this.#end !== undefined) this.fork(Scope.close(this.#scope, Exit.void))
    }
    return this.#scope
  }

  get exchanges(): Iterable<RequestContext> {
    return this.#requests.exchanges
  }

  get queued(): number {
    return this.#requests.queued
  }

  get calls(): Peer["calls"] {
    return this.#calls?.waiting ?? none
  }

  // ---- what comes in

  end(end: SessionEnd): void {
    this.close(end)
  }

  refused(id: JsonRpc.Id, error: TransportError): void {
    this.#calls?.fail(id, error)
  }

  gap(error: TransportError | undefined): void {
    if (this.#end === undefined) this.#options.onMissed?.(error)
  }

  message(inbound: JsonRpc.Inbound, origin: Origin | undefined): void {
    switch (inbound._tag) {
      case "Request":
        return this.#onRequest(inbound, undefined, origin)
      case "Notification":
        return this.#onNotification(inbound)
      case "Success":
      case "Failure":
        return this.#calls?.settle(inbound)
      case "Invalid":
        return this.#onInvalid(inbound, undefined)
      case "Batch":
        return this.#onBatch(inbound.members, origin)
    }
  }

  #onRequest(request: JsonRpc.Request, batch: BatchReply | undefined, origin: Origin | undefined): void {
    if (this.#end !== undefined) return this.#requests.forget(request.id, batch)
    this.#starting++
    this.#requests.receive(request, batch, origin)
    this.#starting--
    this.#settled()
  }

  #onNotification(notification: JsonRpc.Notification): void {
    switch (notification.method) {
      case "notifications/cancelled": {
        const { requestId, reason } = notification.params ?? {}
        if (!this.#requests.cancel(requestId as JsonRpc.Id, reason)) this.#calls?.revoke(requestId)
        return
      }
      case "notifications/progress":
        if (notification.params !== undefined && this.#calls?.progress(notification.params) === false) {
          this.#stray(notification.params)
        }
        return
      default:
        // The connection hears of it first: whoever acts on it by what a call hears finds the rest of the client informed.
        this.#notice(notification)
        return this.#calls?.notice(notification)
    }
  }

  #stray(params: JsonRpc.JsonObject): void {
    const report = this.#options.onStray === undefined ? undefined : readProgress(params)
    if (report !== undefined) this.#options.onStray!(params["progressToken"], report)
  }

  #notice(notification: JsonRpc.Notification): void {
    const { method } = notification
    if (this.#end !== undefined || this.#notices?.drop(method) === true) return
    this.#starting++
    const handled = guard(() => this.#options.onNotification?.(this, notification))
    const fiber = handled === undefined ? undefined : this.fork(harmless(method, handled))
    this.#starting--
    if (fiber === undefined || fiber.pollUnsafe() !== undefined) return this.#settled()
    ;(this.#notices ??= new Notices(this, this.#limits.maxRunningNotifications)).add(method, fiber)
    if (this.over) fiber.interruptUnsafe()
  }

  #onInvalid(invalid: JsonRpc.Invalid, batch: BatchReply | undefined): void {
    // An answer is never answered: the id would name a request of the other side's.
    if (invalid.answer) return this.#calls?.refuse(invalid)
    // "The receiver MUST NOT send a response" (2025-11-25, basic, notifications).
    if (invalid.notification === true) {
      return this.log(Effect.logDebug(`A notification was ignored: ${invalid.error.message}`))
    }
    this.#requests.reply(JsonRpc.failure(invalid.id, invalid.error), batch)
  }

  #onBatch(members: ReadonlyArray<JsonRpc.Message | JsonRpc.Invalid>, origin: Origin | undefined): void {
    const refused = this.session?.revision !== "2025-03-26"
      ? "Only revision 2025-03-26 has batches"
      : members.length > this.#limits.maxBatchMessages
      ? `A batch holds at most ${this.#limits.maxBatchMessages} messages`
      : undefined
    if (refused !== undefined) {
      return this.#requests.reply(
        JsonRpc.failure(undefined, { code: -32600, message: `Invalid Request: ${refused}` }),
        undefined
      )
    }
    // About its first request, so that a transport with several streams can choose one.
    const about = members.find((member) => member._tag === "Request")?.id
    const batch = new BatchReply((replies) => this.#connection.send({ _tag: "Batch", members: replies }, about))
    this.#starting++
    for (const member of members) {
      if (member._tag === "Request") this.#onRequest(member, batch.expect(), origin)
      else if (isAnswered(member)) this.#onInvalid(member, batch.expect())
      else this.message(member, origin)
    }
    batch.seal()
    this.#starting--
    this.#settled()
  }

  // ---- what the requests, the calls and the notices need

  now(): number {
    return millisOf(this.#clock.monotonicTimeNanosUnsafe())
  }

  fork<A, E>(effect: Effect.Effect<A, E, R>): Fiber.Fiber<A, E> {
    return Effect.runForkWith(this.#context)(effect)
  }

  identify(request: JsonRpc.Request, origin: Origin | undefined): Caller | Refusal {
    return this.#options.identify(this, request, origin)
  }

  log(effect: Effect.Effect<void>): void {
    this.fork(effect)
  }

  get revision(): Revision.Revision {
    return this.session?.revision ?? "2026-07-28"
  }

  quiet(): void {
    this.#flow()
  }

  counted(): void {
    if (this.#options.patient === true && this.#requests.size === 0) this.#calls?.postpone()
    this.#flow()
    this.#settled()
  }

  starting(start: () => void): void {
    this.#starting++
    start()
    this.#starting--
    this.#settled()
  }

  send(message: JsonRpc.Message, about: JsonRpc.Id | undefined, headers?: Headers): void {
    this.#connection.send(message, about, headers)
  }

  get held(): boolean {
    return this.#options.patient === true && (this.#requests.size > 0 || this.#options.occupied === true)
  }

  get late(): ((method: string, result: JsonRpc.JsonObject) => void) | undefined {
    const options = this.#options
    return options.onLate === undefined ? undefined : (method, result) => options.onLate!(method, result)
  }

  toError(error: JsonRpc.ErrorObject): McpError.McpError {
    return McpError.fromErrorObject(error, this.revision)
  }

  // ---- flow and end

  /** Reads on, or stops reading, as the bounds say. Whoever waits for an answer has to go on reading. */
  #flow(): void {
    const stop = this.#end === undefined && (this.#calls?.size ?? 0) === 0 &&
      (this.#requests.full || this.#notices?.full === true)
    if (stop === this.#paused || this.#connection.pause === undefined) return
    this.#paused = stop
    if (stop) this.#connection.pause()
    else this.#connection.resume?.()
  }

  /** Tells the end of the session, if it waits, that nothing runs any more. */
  #settled(): void {
    if (this.#idle !== undefined && this.#running === 0) this.#idle(Effect.void)
  }

  get #running(): number {
    return this.#starting + this.#requests.size + this.#requests.queued + (this.#notices?.size ?? 0)
  }

  /** Whether nothing may go on any more. */
  get over(): boolean {
    return this.#end !== undefined && !this.#draining
  }

  /** Whether that is so because this side stops. */
  get stopping(): boolean {
    return this.#stopping
  }

  get #awaitIdle(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.#running === 0) return resume(Effect.void)
      this.#idle = resume
    })
  }

  /** Requests in flight may end by themselves when the other side merely stopped asking; then they are interrupted. */
  get #windDown(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      const lasting = [...this.exchanges].filter(({ release }) => release !== undefined)
      for (const exchange of lasting) exchange.release?.()
      // They end in the next turn, and are answered even where everything else is interrupted.
      if (lasting.length > 0) yield* Effect.yieldNow
      if (this.#draining && this.#running > 0) yield* Effect.timeoutOption(this.#awaitIdle, this.#limits.drainTimeout)
      this.#draining = false
      this.#requests.clear()
      for (const exchange of this.exchanges) exchange.cancel(this.#stopping)
      this.#notices?.interrupt()
      const closing = this.#scope === undefined ? undefined : this.fork(Scope.close(this.#scope, Exit.void))
      if (closing !== undefined || this.#running > 0) {
        const scopeClosed = closing === undefined ? Effect.void : Fiber.await(closing)
        yield* Effect.timeoutOption(Effect.andThen(scopeClosed, this.#awaitIdle), this.#limits.interruptTimeout)
      }
      const left = [...Array.from(this.exchanges, (exchange) => exchange.method), ...this.#notices?.methods ?? []]
      if (closing !== undefined && closing.pollUnsafe() === undefined) left.push("a finalizer of the session")
      for (const what of left) yield* Effect.logWarning(`${what} ignores its interruption and was left behind`)
      yield* this.#connection.close
    })
  }
}

/**
 * Starts a peer that its maker has to close, for one that keeps many of them. Its handlers get the services of the context.
 */
export const makeUnsafe = <R = never>(options: Options<R>, context: Context.Context<R>): Peer =>
  new PeerImpl(options, context, Limits.resolve(options.limits))

/**
 * Starts a peer on a connection. Its handlers get the services that are in the context here. When the scope closes, the
 * session is closed and everything that runs in it is interrupted; that waits for `interruptTimeout` at most.
 */
export const make = <R = never>(
  options: Options<R>
): Effect.Effect<Peer, never, Exclude<R, McpRequest> | Scope.Scope> =>
  Effect.acquireRelease(
    Effect.map(
      Effect.context<Exclude<R, McpRequest>>(),
      // Each request adds itself, as `McpRequest`. The scope is the connection's, and no business of a request's.
      (context): Peer => makeUnsafe(options, Context.omit(Scope.Scope)(context) as Context.Context<R>)
    ),
    (peer) =>
      Effect.suspend(() => {
        peer.close({ _tag: "Closed" }, true)
        return peer.ended
      })
  )
