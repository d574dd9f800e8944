/**
 * The actor of one connection: it runs what the other side asks, and asks the other side.
 *
 * A peer is one parked fiber and a few fields. It has no mailbox, because a connection delivers its messages one by one
 * already, and nothing is allocated while it is idle. Each request of the other side is an `Exchange`, a fiber that ends with
 * the peer at the latest; each own request waits in a table with one timer for all.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import type { Connection } from "./Connection.ts"
import {
  type Answer,
  type Caller,
  type CallOptions,
  type Dispatcher,
  Exchange,
  McpRequest,
  type Owner
} from "./Exchange.ts"
import { BatchReply } from "./internal/batch.ts"
import { Calls, closed, type Host } from "./internal/calls.ts"
import { harmless, Notices } from "./internal/notices.ts"
import * as Limits from "./Limits.ts"
import { RequestError } from "./RequestError.ts"
import type { Session, SessionEnd } from "./Session.ts"

/** How a peer is made. `R` is what its handlers need besides the request. */
export interface Options<R> {
  readonly connection: Connection
  /** Answers the requests of the other side. */
  readonly dispatch: Dispatcher<R | McpRequest>
  /** Says who asks, and in which revision; or why the request is refused before it is dispatched. */
  readonly identify: (peer: Peer, request: JsonRpc.Request) => Caller | McpError.McpError
  /**
   * Handles a notification other than `notifications/cancelled` and `notifications/progress`, which the peer handles itself.
   * What fails is logged. Each is started in the order in which it came, and does not wait for the one before.
   */
  readonly onNotification?:
    | ((peer: Peer, notification: JsonRpc.Notification) => Effect.Effect<void, never, R> | void)
    | undefined
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
   */
  readonly close: (end: SessionEnd) => void
  /**
   * Waits for the end of the session, when everything that ran in it is over and the connection is closed, and says why it
   * ended. What ignores its interruption is waited for no longer than `interruptGrace`.
   */
  readonly ended: Effect.Effect<SessionEnd>
  /** Closed when the session ends. Made when first asked for. */
  readonly scope: Scope.Scope
  /** The requests of the other side that are suspended now, oldest first. */
  readonly exchanges: Iterable<Exchange>
  /** The own requests that wait for an answer, oldest first. */
  readonly calls: Iterable<{ readonly id: number; readonly method: string; readonly startedAt: number }>
}

const none: Iterable<never> = []

class PeerImpl<R> implements Peer, Owner, Host {
  session: Session | undefined = undefined
  readonly clock: Clock.Clock
  readonly fork: <A, E>(effect: Effect.Effect<A, E, R>) => Fiber.Fiber<A, E>
  readonly #context: Context.Context<R>
  readonly #options: Options<R>
  readonly #connection: Connection
  readonly #limits: Limits.Resolved
  readonly #life: Fiber.Fiber<SessionEnd>
  #calls: Calls | undefined = undefined
  #exchanges: Map<JsonRpc.Id, Exchange> | undefined = undefined
  #notices: Notices | undefined = undefined
  #batches: Map<Exchange, BatchReply> | undefined = undefined
  #scope: Scope.Closeable | undefined = undefined
  #end: SessionEnd | undefined = undefined
  #wake: ((end: Effect.Effect<SessionEnd>) => void) | undefined = undefined
  #idle: ((done: Effect.Effect<void>) => void) | undefined = undefined
  #paused = false
  // Requests and notifications that are in the part of their handler that comes before it suspends.
  #starting = 0
  #draining = false

  constructor(options: Options<R>, context: Context.Context<R>, limits: Limits.Resolved) {
    this.#options = options
    this.#context = context
    this.#connection = options.connection
    this.#limits = limits
    this.clock = Context.get(context, Clock.Clock)
    this.fork = Effect.runForkWith(context)
    this.#life = this.fork(Effect.flatMap(
      Effect.callback<SessionEnd>((resume) => {
        this.#wake = resume
      }),
      (end) => Effect.as(this.#windDown(end), end)
    ))
    this.#connection.open({ message: (message) => this.#receive(message), end: (end) => this.close(end) })
  }

  // ---- what a holder of the peer sees

  request(method: string, params?: JsonRpc.JsonObject, options?: CallOptions): ReturnType<Peer["request"]> {
    return this.#call(undefined, method, params, options)
  }

  #call(
    about: JsonRpc.Id | undefined,
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions = {}
  ): ReturnType<Peer["request"]> {
    return Effect.callback((resume) => {
      if (this.#end !== undefined) return resume(Effect.fail(closed(method, this.#end)))
      const cancel = (this.#calls ??= new Calls(this, this.#limits)).start(method, params, options, about, resume)
      this.#flow()
      return cancel
    })
  }

  notify(method: string, params?: JsonRpc.JsonObject): Effect.Effect<void> {
    return Effect.suspend(() =>
      this.#connection.send(JsonRpc.notification(method, params)) ? Effect.void : this.drained
    )
  }

  close(end: SessionEnd): void {
    if (this.#end !== undefined) {
      if (this.#draining && end._tag !== "Ended") this.#idle?.(Effect.void)
      return
    }
    this.#end = end
    this.#flow()
    this.#calls?.end(end)
    this.#wake?.(Effect.succeed(end))
  }

  get drained(): Effect.Effect<void> {
    return this.#connection.drained
  }

  get ended(): Effect.Effect<SessionEnd> {
    return Fiber.join(this.#life)
  }

  get scope(): Scope.Scope {
    if (this.#scope === undefined) {
      this.#scope = Scope.makeUnsafe("parallel")
      if (this.#end !== undefined) this.fork(Scope.close(this.#scope, Exit.void))
    }
    return this.#scope
  }

  get exchanges(): Iterable<Exchange> {
    return this.#exchanges?.values() ?? none
  }

  get calls(): Peer["calls"] {
    return this.#calls?.waiting ?? none
  }

  // ---- what comes in

  #receive(inbound: JsonRpc.Inbound): void {
    switch (inbound._tag) {
      case "Request":
        return this.#onRequest(inbound, undefined)
      case "Notification":
        return this.#onNotification(inbound)
      case "Success":
      case "Failure":
        return this.#calls?.settle(inbound)
      case "Invalid":
        return this.#onInvalid(inbound, undefined)
      case "Batch":
        return this.#onBatch(inbound.members)
    }
  }

  #onRequest(request: JsonRpc.Request, batch: BatchReply | undefined): void {
    if (this.#end !== undefined) return batch?.drop()
    const caller = this.#refusal(request) ?? this.#identify(request)
    if (McpError.isMcpError(caller)) return this.#refuse(request, caller, batch)
    const exchange = new Exchange(this, request, caller)
    if (batch !== undefined) (this.#batches ??= new Map()).set(exchange, batch)
    this.#starting++
    exchange.start()
    this.#starting--
    this.#settled()
  }

  #identify(request: JsonRpc.Request): Caller | McpError.McpError {
    try {
      return this.#options.identify(this, request)
    } catch (defect) {
      return this.#internal(request.method, defect)
    }
  }

  #refuse(request: JsonRpc.Request, error: McpError.McpError, batch: BatchReply | undefined): void {
    const revision = this.session?.revision ?? "2026-07-28"
    try {
      this.#reply(JsonRpc.failure(request.id, McpError.toErrorObject(error, revision)), batch)
    } catch (defect) {
      const internal = McpError.toErrorObject(this.#internal(request.method, defect), revision)
      this.#reply(JsonRpc.failure(request.id, internal), batch)
    }
  }

  #refusal(request: JsonRpc.Request): McpError.McpError | undefined {
    if (this.#exchanges === undefined) return undefined
    if (this.#exchanges.has(request.id)) {
      return McpError.invalidRequest(`A request with the id ${JSON.stringify(request.id)} is in flight already`)
    }
    if (this.#exchanges.size < this.#limits.maxInFlight) return undefined
    return new McpError.McpError({
      reason: "InternalError",
      message: `Too many requests are in flight: at most ${this.#limits.maxInFlight}`
    })
  }

  #onNotification(notification: JsonRpc.Notification): void {
    switch (notification.method) {
      case "notifications/cancelled": {
        const { requestId, reason } = notification.params ?? {}
        const exchange = this.#exchanges?.get(requestId as JsonRpc.Id)
        if (exchange === undefined) return this.#calls?.revoke(requestId)
        // "The `initialize` request MUST NOT be cancelled by clients"
        if (exchange.method === "initialize" || exchange.cancelled) return
        exchange.cancel()
        // "Both parties SHOULD log cancellation reasons for debugging"
        if (typeof reason === "string") {
          this.fork(Effect.logDebug(`${exchange.method} was cancelled: ${reason.slice(0, maxReason)}`))
        }
        return
      }
      case "notifications/progress":
        if (notification.params !== undefined) this.#calls?.progress(notification.params)
        return
      default:
        return this.#notice(notification)
    }
  }

  #notice(notification: JsonRpc.Notification): void {
    const { method } = notification
    if (this.#end !== undefined || this.#notices?.drop(method) === true) return
    this.#starting++
    const handled = guard(() => this.#options.onNotification?.(this, notification))
    const fiber = handled === undefined ? undefined : this.fork(harmless(method, handled))
    this.#starting--
    if (fiber === undefined || fiber.pollUnsafe() !== undefined) return this.#settled()
    ;(this.#notices ??= new Notices(this, this.#limits.maxNotices)).add(method, fiber)
    if (this.#over) fiber.interruptUnsafe()
  }

  #onInvalid(invalid: JsonRpc.Invalid, batch: BatchReply | undefined): void {
    // An answer is never answered: the id would name a request of the other side's.
    if (invalid.answer) return this.#calls?.refuse(invalid)
    this.#reply(JsonRpc.failure(invalid.id, invalid.error), batch)
  }

  #onBatch(members: ReadonlyArray<JsonRpc.Message | JsonRpc.Invalid>): void {
    const refused = this.session?.revision !== "2025-03-26"
      ? "Only revision 2025-03-26 has batches"
      : members.length > this.#limits.maxBatch
      ? `A batch holds at most ${this.#limits.maxBatch} messages`
      : undefined
    if (refused !== undefined) {
      return this.#reply(
        JsonRpc.failure(undefined, { code: -32600, message: `Invalid Request: ${refused}` }),
        undefined
      )
    }
    // About the first that it answers, so that a transport with several streams can choose one.
    const batch = new BatchReply((replies) =>
      this.#connection.send({ _tag: "Batch", members: replies }, replies[0]?.id)
    )
    this.#starting++
    for (const member of members) {
      if (member._tag === "Request") this.#onRequest(member, batch.expect())
      else if (member._tag === "Invalid" && !member.answer) this.#onInvalid(member, batch.expect())
      else this.#receive(member)
    }
    batch.seal()
    this.#starting--
    this.#settled()
  }

  // ---- what an exchange needs

  run(exchange: Exchange): Fiber.Fiber<Answer, McpError.McpError> {
    const effect = guard(() => this.#options.dispatch(exchange))
    return Effect.runForkWith(Context.add(this.#context, McpRequest, exchange))(effect)
  }

  answer(exchange: Exchange, message: JsonRpc.Success | JsonRpc.Failure): void {
    const batch = this.#batches?.get(exchange)
    this.#reply(message, batch)
    if (batch !== undefined) this.#batches!.delete(exchange)
  }

  say(exchange: Exchange, method: string, params: JsonRpc.JsonObject): boolean {
    return this.#connection.send(JsonRpc.notification(method, params), exchange.id)
  }

  ask(
    exchange: Exchange,
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions | undefined
  ): ReturnType<Peer["request"]> {
    if (Revision.era(exchange.caller.revision) === "session") return this.#call(exchange.id, method, params, options)
    const message =
      `${method} is not a request of ${exchange.caller.revision}: there the client is asked through the result`
    return Effect.fail(new RequestError({ reason: "Unsupported", method, message }))
  }

  drop(exchange: Exchange): void {
    const batch = this.#batches?.get(exchange)
    if (batch === undefined) return
    this.#batches!.delete(exchange)
    batch.drop()
  }

  suspended(exchange: Exchange): void {
    exchange.startedAt = this.clock.currentTimeMillisUnsafe()
    const exchanges = (this.#exchanges ??= new Map())
    exchanges.set(exchange.id, exchange)
    if (exchanges.size >= this.#limits.maxInFlight) this.#flow()
    // Its handler has ended the session before it suspended.
    if (this.#over) exchange.cancel()
  }

  resumed(exchange: Exchange): void {
    this.#exchanges!.delete(exchange.id)
    this.counted()
  }

  defect(exchange: Exchange, cause: Cause.Cause<unknown>, reference: string): void {
    this.fork(Effect.logError(`${exchange.method} failed, reference ${reference}`, cause))
  }

  #internal(method: string, defect: unknown): McpError.McpError {
    const reference = globalThis.crypto.randomUUID()
    this.fork(Effect.logError(`${method} failed, reference ${reference}`, Cause.die(defect)))
    return McpError.internal(reference)
  }

  // ---- what the calls and the notices need

  quiet(): void {
    this.#flow()
  }

  counted(): void {
    this.#flow()
    this.#settled()
  }

  send(message: JsonRpc.Message, about: JsonRpc.Id | undefined): void {
    this.#connection.send(message, about)
  }

  toError(error: JsonRpc.ErrorObject): McpError.McpError {
    return McpError.fromErrorObject(error, this.session?.revision ?? "2026-07-28")
  }

  // ---- flow and end

  #reply(message: JsonRpc.Success | JsonRpc.Failure, batch: BatchReply | undefined): void {
    if (batch === undefined) return void this.#connection.send(message, message.id)
    // Encoded here, so that one answer that has no JSON form does not cost the others theirs.
    JsonRpc.encode(message)
    batch.add(message)
  }

  /** Reads on, or stops reading, as the bounds say. Whoever waits for an answer has to go on reading. */
  #flow(): void {
    const stop = this.#end === undefined && (this.#calls?.size ?? 0) === 0 &&
      ((this.#exchanges?.size ?? 0) >= this.#limits.maxInFlight || this.#notices?.full === true)
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
    return this.#starting + (this.#exchanges?.size ?? 0) + (this.#notices?.size ?? 0)
  }

  /** Whether nothing may go on any more. */
  get #over(): boolean {
    return this.#end !== undefined && !this.#draining
  }

  get #awaitIdle(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.#running === 0) return resume(Effect.void)
      this.#idle = resume
    })
  }

  /** Requests in flight may end by themselves when the other side merely stopped asking; then they are interrupted. */
  #windDown(end: SessionEnd): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      if (end._tag === "Ended" && this.#running > 0) {
        this.#draining = true
        yield* Effect.timeoutOption(this.#awaitIdle, this.#limits.drainGrace)
        this.#draining = false
      }
      for (const exchange of this.exchanges) exchange.cancel()
      this.#notices?.interrupt()
      const closing = this.#scope === undefined ? undefined : this.fork(Scope.close(this.#scope, Exit.void))
      if (closing !== undefined || this.#running > 0) {
        const scopeClosed = closing === undefined ? Effect.void : Fiber.await(closing)
        yield* Effect.timeoutOption(Effect.andThen(scopeClosed, this.#awaitIdle), this.#limits.interruptGrace)
      }
      const left = [...Array.from(this.exchanges, (exchange) => exchange.method), ...this.#notices?.methods ?? []]
      if (closing !== undefined && closing.pollUnsafe() === undefined) left.push("a finalizer of the session")
      for (const what of left) yield* Effect.logWarning(`${what} ignores its interruption and was left behind`)
      yield* this.#connection.close
    })
  }
}

// What the other side gives as its reason is logged up to this many characters.
const maxReason = 256

/** User code may throw before there is an effect. */
const guard = <A, E, R, X>(f: () => Effect.Effect<A, E, R> | X): Effect.Effect<A, E, R> | X => {
  try {
    return f()
  } catch (defect) {
    return Effect.die(defect)
  }
}

/**
 * Starts a peer on a connection. Its handlers get the services that are in the context here. When the scope closes, the
 * session is closed and everything that runs in it is interrupted; that waits for `interruptGrace` at most.
 */
export const make = <R = never>(options: Options<R>): Effect.Effect<Peer, never, R | Scope.Scope> =>
  Effect.acquireRelease(
    Effect.map(Effect.context<R>(), (context): Peer => new PeerImpl(options, context, Limits.resolve(options.limits))),
    (peer) =>
      Effect.suspend(() => {
        peer.close({ _tag: "Closed" })
        return peer.ended
      })
  )
