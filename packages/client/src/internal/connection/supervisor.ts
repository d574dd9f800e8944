/**
 * Supervises the connection of a client for as long as its scope: opens it, waits for its end, and opens the next one
 * under a policy.
 *
 * A fiber opens the next connection when all fibers of the previous one have ended. While a connection is open there is
 * no such fiber.
 */
import type { Transport } from "@skein/runtime/Connection"
import * as Limits from "@skein/runtime/Limits"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Scope from "effect/Scope"
import type * as Stream from "effect/Stream"
import { ClientError, Closed } from "../../ClientError.ts"
import * as Reconnect from "../../Reconnect.ts"
import type { Status } from "../../Status.ts"
import { connectionLost, delayAfter } from "../base/errors.ts"
import { Broadcast } from "../base/broadcast.ts"
import { type CallClock, monotonicMillis } from "../base/callClock.ts"
import { limitOf, type Options } from "./clientOptions.ts"
import { type ConnectionOwner, type NegotiatedConnection, serverOf } from "./connection.ts"

/** The bounds of calls that wait for a connection and are retried on it. Times in milliseconds. */
export interface Timeouts {
  readonly timeout: number
  readonly maxTimeout: number
  readonly maxRetries: number
  /** The delays before a call is retried on the same connection. */
  readonly backoff: Reconnect.Resolved
}

/** Receives the scope of a connection that is being opened. Of several that are opened in turn, the last one counts. */
export type ScopeListener = (scope: Scope.Closeable) => void

/** Opens the connections that a supervisor keeps open. */
export interface ConnectionSource {
  /** The services of the supervisor's fibers. */
  readonly context: Context.Context<never>
  /** The clock of the timeouts of calls. */
  readonly callClock: CallClock
  /**
   * Opens the connection after `last`; with `fresh`, without the stored server profile, which has turned out to be
   * wrong.
   */
  readonly open: (
    last: NegotiatedConnection | undefined,
    fresh: boolean,
    owned: ScopeListener
  ) => Effect.Effect<NegotiatedConnection, ClientError>
}

/** Is notified of the changes of connection of a client. */
export interface SupervisorListener {
  /**
   * Runs for each connection but the first, in a scope that closes with it: before the calls that wait for it are sent,
   * but without delaying them. A defect is logged.
   */
  readonly reopened: (connection: NegotiatedConnection) => Effect.Effect<void, never, Scope.Scope>
  /** Called when no connection follows. */
  readonly ended: () => void
}

/** The options of a supervisor. */
export interface SupervisorOptions {
  /** How a lost connection is reopened. Without it, a lost connection ends the client. */
  readonly policy: Reconnect.Resolved | undefined
  readonly timeouts: Timeouts
}

const patienceOf = (options: Options, backoff: Reconnect.Resolved): Timeouts => {
  const { maxTimeout, timeout } = Limits.resolve(options.limits)
  return { timeout, maxTimeout, maxRetries: limitOf(options, "maxRetries"), backoff }
}

// The defaults, which most clients share: an idle client needs no objects for them.
const usual = patienceOf({}, Reconnect.resolve())
const usuallyReopened: SupervisorOptions = { policy: usual.backoff, timeouts: usual }

/** Applies the defaults: the transport decides whether its connections are reopened by default. */
export const resolveReconnect = (options: Options, transport: Transport): SupervisorOptions => {
  const asked = options.reconnect ?? transport.reconnects ?? false
  const backoff = Reconnect.resolve(typeof asked === "object" ? asked : undefined)
  const isUsual = backoff === usual.backoff && options.limits === undefined
  if (isUsual && asked !== false) return usuallyReopened
  return {
    policy: asked === false ? undefined : backoff,
    timeouts: isUsual ? usual : patienceOf(options, backoff)
  }
}

// Statuses that wait for a slow reader. Older ones are dropped, since the latest one matters.
const maxBufferedStatuses = 16

type Unsettled = Exclude<Status, { readonly _tag: "Connected" }>

/** The end of the client after a failure to open a connection. */
const lost = (message: string, cause: unknown): SessionEnd => ({
  _tag: "Lost",
  cause: connectionLost(message, cause)
})

const messageOf = (cause: SessionEnd | ClientError): string => {
  switch (cause._tag) {
    case "ClientError":
    case "Refused":
      return cause.message
    case "Lost":
      return cause.cause.message
    case "ClosedByPeer":
      return "the server ended the connection"
    case "ClosedByUs":
      return "this side closed the connection"
    case "Expired":
      return "the session has expired"
  }
}

/** The connection of a client, through all reconnects. */
export class ConnectionSupervisor implements ConnectionOwner {
  /**
   * The connection that is open or, between two, the last one. Its negotiated values apply until the next one is open.
   */
  last: NegotiatedConnection = undefined!
  /** The connection, if it is open now. It may still be set for a moment after its end: a call on it fails unsent. */
  current: NegotiatedConnection | undefined = undefined
  /** The last connection that `refute` has ended. */
  refuted: NegotiatedConnection | undefined = undefined
  /** The failure of every call after the client was closed, including calls that the cache could answer. */
  closed: ClientError | undefined = undefined
  readonly #source: ConnectionSource
  readonly #listener: SupervisorListener
  readonly #options: SupervisorOptions
  readonly #clock: Clock.Clock
  // The scope of the connection that is open or being opened, and since when it is open.
  #scope: Scope.Closeable | undefined = undefined
  #since = 0
  // How many attempts in a row were made to open the next one, and the fiber that makes them.
  #attempts = 0
  #reconnecting: Fiber.Fiber<void> | undefined = undefined
  #end: SessionEnd | undefined = undefined
  // The next connection, and the end, while something waits for them.
  #next: Deferred.Deferred<NegotiatedConnection, ClientError> | undefined = undefined
  #ended: Deferred.Deferred<SessionEnd> | undefined = undefined
  #statuses: Broadcast<Status> | undefined = undefined
  // Undefined while a connection is open: that status is derived from it.
  #status: Unsettled | undefined = undefined
  #gone: ClientError | undefined = undefined
  #fresh = false

  constructor(source: ConnectionSource, listener: SupervisorListener, options: SupervisorOptions) {
    this.#source = source
    this.#listener = listener
    this.#options = options
    this.#clock = Context.get(source.context, Clock.Clock)
  }

  // ---- for the calls

  get timeouts(): Timeouts {
    return this.#options.timeouts
  }

  /** The connection. Waits while it is being reopened, and fails after it was given up or closed. */
  readonly connection: Effect.Effect<NegotiatedConnection, ClientError> = Effect.suspend(() => {
    if (this.current !== undefined) return Effect.succeed(this.current)
    return this.#gone === undefined ? this.#awaitNext : Effect.fail(this.#gone)
  })

  /** The connection after that one, which is about to end or has ended. Otherwise as `connection`. */
  after(connection: NegotiatedConnection): Effect.Effect<NegotiatedConnection, ClientError> {
    return Effect.suspend(() => this.current === connection ? this.#awaitNext : this.connection)
  }

  /** Whether no connection is open now, and the next one is awaited. */
  get isReconnecting(): boolean {
    return this.current === undefined && this.#gone === undefined
  }

  /** Whether the policy allows another connection after that one is lost. */
  willReconnect(connection: NegotiatedConnection): boolean {
    return this.#options.policy !== undefined || this.refuted === connection
  }

  get callClock(): CallClock {
    return this.#source.callClock
  }

  /** Milliseconds of the clock of the timeouts of calls. */
  now(): number {
    return this.#source.callClock.at(monotonicMillis(this.#clock))
  }

  /**
   * Ends a connection whose assumed server profile is wrong, and opens the next one without assumptions, once and
   * without delay.
   */
  refute(connection: NegotiatedConnection): void {
    if (this.current !== connection || this.#fresh) return
    this.refuted = connection
    connection.peer.close(lost("The server does not match its stored profile", undefined))
  }

  /** The present status first, then each change. It ends with the last one. */
  get status(): Stream.Stream<Status> {
    return (this.#statuses ??= new Broadcast(maxBufferedStatuses, () => this.#present, this.#end !== undefined)).stream
  }

  /** Waits until no connection follows. */
  readonly ended: Effect.Effect<SessionEnd> = Effect.suspend(() =>
    this.#end === undefined ? Deferred.await(this.#ended ??= Deferred.makeUnsafe()) : Effect.succeed(this.#end)
  )

  // ---- opening and ending connections

  /** Opens a connection in a scope of its own. */
  readonly open: Effect.Effect<NegotiatedConnection, ClientError> = Effect.gen({ self: this }, function*() {
    const connection = yield* this.#source.open(this.last, this.#fresh, (scope) => {
      this.#scope = scope
    })
    this.#since = this.now()
    return connection
  })

  /** Makes a connection the present one. */
  use(connection: NegotiatedConnection): void {
    this.last = connection
    this.current = connection
    this.#become(undefined)
    this.#resume(Effect.succeed(connection))
  }

  /** Handles the end of a connection. */
  connectionEnded(connection: NegotiatedConnection, end: SessionEnd): void {
    if (this.#gone !== undefined) return
    const following = Effect.map(this.#after(connection, end), (next) => next?.onEnd(this))
    this.#reconnecting = Effect.runForkWith(this.#source.context)(
      Effect.catchCauseIf(following, (cause) => !Cause.hasInterruptsOnly(cause), (cause) =>
        Effect.andThen(
          Effect.logError("defect while reconnecting", cause),
          Effect.sync(() => this.finish(lost("defect while reconnecting", cause)))
        ))
    )
  }

  /** Opens the connection after one that has ended, if the policy allows another one. */
  #after(connection: NegotiatedConnection, end: SessionEnd): Effect.Effect<NegotiatedConnection | undefined> {
    return Effect.gen({ self: this }, function*() {
      this.current = undefined
      const { policy } = this.#options
      const isRefuted = this.refuted === connection
      if (connection.isAssumed === true) this.#fresh = true
      if (policy !== undefined && this.now() - this.#since >= Reconnect.stableAfter) this.#attempts = 0
      yield* Effect.uninterruptible(Scope.close(this.#scope!, Exit.void))
      if (!isRefuted && (policy === undefined || end._tag === "ClosedByUs" || end._tag === "Refused")) {
        this.finish(end, closedError(messageOf(end), end))
        return undefined
      }
      return yield* this.#reconnect(end, isRefuted)
    })
  }

  /** Opens the next connection, or gives up. */
  #reconnect(end: SessionEnd, isRefuted: boolean): Effect.Effect<NegotiatedConnection | undefined> {
    return Effect.gen({ self: this }, function*() {
      const { policy } = this.#options
      let cause: SessionEnd | ClientError = end
      let isFree = isRefuted
      while (true) {
        if (!isFree && (policy === undefined || this.#attempts >= policy.maxAttempts || isPermanent(cause))) {
          this.#giveUp(this.#attempts, cause)
          return undefined
        }
        const delay: number = isFree
          ? 0
          : yield* delayAfter(cause, policy!, ++this.#attempts)
        this.#become({ _tag: "Reconnecting", attempt: Math.max(this.#attempts, 1), delay, cause })
        if (delay > 0) yield* Effect.sleep(delay)
        isFree = false
        const opened: Result.Result<NegotiatedConnection, ClientError> = yield* Effect.result(this.open)
        if (Result.isSuccess(opened)) {
          yield* this.#reopened(opened.success)
          return opened.success
        }
        cause = opened.failure
      }
    })
  }

  #reopened(connection: NegotiatedConnection): Effect.Effect<void> {
    const scope = this.#scope!
    return Effect.suspend(() => this.#listener.reopened(connection)).pipe(
      Scope.provide(scope),
      Effect.catchCause((cause) => Effect.logError("defect after a connection was reopened", cause)),
      Effect.forkIn(scope, { startImmediately: true }),
      Effect.andThen(Effect.sync(() => this.use(connection)))
    )
  }

  #giveUp(attempts: number, cause: SessionEnd | ClientError): void {
    const message = `Gave up after ${attempts} ${attempts === 1 ? "attempt" : "attempts"} to reconnect: ${
      messageOf(cause)
    }`
    const gaveUp = new Reconnect.ReconnectExhausted({ attempts, message, cause })
    const end = lost(message, gaveUp)
    this.finish(end, closedError(message, end, gaveUp))
  }

  /** Fails all calls from now on: no connection will follow. */
  retire(error: ClientError): void {
    this.current = undefined
    this.#gone ??= error
    this.#resume(Effect.fail(this.#gone))
  }

  /** Closes the connection that is open, and ends the client. */
  close(exit: Exit.Exit<unknown, unknown>): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      this.closed = closedError(messageOf(closed), closed)
      this.retire(this.closed)
      if (this.#reconnecting !== undefined) yield* Fiber.interrupt(this.#reconnecting)
      if (this.#scope !== undefined) yield* Scope.close(this.#scope, exit)
      this.finish(closed)
    })
  }

  /** Ends the client. */
  finish(end: SessionEnd, error = closedError(messageOf(end), end)): void {
    this.retire(error)
    if (this.#end !== undefined) return
    this.#end = end
    if (this.#ended !== undefined) Deferred.doneUnsafe(this.#ended, Effect.succeed(end))
    this.#become({ _tag: "Ended", end })
    this.#statuses?.end()
    this.#listener.ended()
  }

  readonly #awaitNext: Effect.Effect<NegotiatedConnection, ClientError> = Effect.suspend(() =>
    Deferred.await(this.#next ??= Deferred.makeUnsafe())
  )

  #resume(connection: Effect.Effect<NegotiatedConnection, ClientError>): void {
    const next = this.#next
    this.#next = undefined
    if (next !== undefined) Deferred.doneUnsafe(next, connection)
  }

  get #present(): Status {
    return this.#status ?? { _tag: "Connected", revision: this.last.revision, info: serverOf(this.last) }
  }

  #become(status: Unsettled | undefined): void {
    this.#status = status
    if (this.#statuses?.hasListeners === true) this.#statuses.publish(this.#present)
  }
}

const closedError = (message: string, end: SessionEnd, cause?: unknown): ClientError =>
  new ClientError({
    reason: new Closed({ message, end, cause: cause ?? (end._tag === "Lost" ? end.cause : undefined) }),
    undelivered: true
  })

/** Whether further attempts would fail as well: the server requires other credentials. */
const isPermanent = (cause: SessionEnd | ClientError): boolean =>
  cause._tag === "ClientError" && cause.reason._tag === "Unauthorized"

const closed: SessionEnd = { _tag: "ClosedByUs" }

/** Opens the first connection. */
export const make = Effect.fnUntraced(function*(
  source: ConnectionSource,
  listener: SupervisorListener,
  options: SupervisorOptions
): Effect.fn.Return<ConnectionSupervisor, ClientError, Scope.Scope> {
  const scope = yield* Effect.scope
  const supervisor = new ConnectionSupervisor(source, listener, options)
  yield* Scope.addFinalizerExit(scope, (exit) => supervisor.close(exit))
  const first = yield* supervisor.open
  supervisor.use(first)
  first.onEnd(supervisor)
  return supervisor
})
