/**
 * The bounds of a connection, their defaults, and what happens at each.
 *
 * Where a transport stops reading, it stops for everything: until a request or a notification ends, the peer hears neither of
 * cancellations nor of pings, nor that the other side has ended. A handler that may wait for long wants a timeout of its own.
 *
 * Bounded elsewhere: what waits for a reader that is slow or gone, and the size of a message, by the transport; what handlers
 * and callers fork, by their own scopes. What is answered at once, or refused, leaves nothing behind that could add up; a
 * request whose handler ignores its cancellation counts for as long as it runs.
 */
import * as Duration from "effect/Duration"

/** What may be bounded. Every member is optional; the defaults stand beside it. */
export interface Limits {
  /**
   * Requests of the other side that are handled at the same time: 1,024 by default. At the bound the next ones wait, in order,
   * and can be cancelled meanwhile; a ping does not wait. Requests that end without suspending are not counted. With 1 they are
   * handled one by one.
   */
  readonly maxInFlightRequests?: number | undefined
  /**
   * Requests of the other side that wait because `maxInFlightRequests` are being handled: 256 by default. At the bound a transport that
   * can stop reading (stdio) stops until one ends; one that cannot, or a peer that itself waits for an answer of the other side
   * and so has to go on reading, refuses the request with `-32603`.
   */
  readonly maxQueuedRequests?: number | undefined
  /** Own requests that wait for an answer: 1,024 by default. At the bound a call fails with `RequestError` `LimitExceeded`. */
  readonly maxPendingRequests?: number | undefined
  /**
   * Notifications of the other side whose handlers are still running: 256 by default. At the bound a transport that can stop
   * reading does; with one that cannot, or while the peer itself waits for an answer, the notification is dropped. The log
   * hears of the first, and of how many there were when there is room again. Progress and cancellations are not counted and
   * never dropped.
   */
  readonly maxRunningNotifications?: number | undefined
  /**
   * Messages in one batch (2025-03-26 only): 100 by default. A longer one is refused whole with `-32600`, and one of more than
   * 10,000 before it is read, whatever is asked for here.
   */
  readonly maxBatchMessages?: number | undefined
  /** How long a call waits for its answer: 60 seconds by default. Progress starts it anew. Then `RequestError` `Timeout`. */
  readonly timeout?: Duration.Input | undefined
  /** How long a call waits in all, whatever progress says: 1 hour by default. */
  readonly maxTimeout?: Duration.Input | undefined
  /** How long requests in flight may go on after the other side has ended: 5 seconds by default. Then they are interrupted. */
  readonly drainTimeout?: Duration.Input | undefined
  /**
   * How long the end of a session waits for what was interrupted, handlers and the finalizers of the session's scope
   * together: 5 seconds by default. What still runs then is left behind, and the log says which.
   */
  readonly interruptTimeout?: Duration.Input | undefined
}

/** The bounds with their defaults filled in; durations in milliseconds. */
export interface Resolved {
  readonly maxInFlightRequests: number
  readonly maxQueuedRequests: number
  readonly maxPendingRequests: number
  readonly maxRunningNotifications: number
  readonly maxBatchMessages: number
  readonly timeout: number
  readonly maxTimeout: number
  readonly drainTimeout: number
  readonly interruptTimeout: number
}

const fill = (limits: Limits): Resolved => ({
  maxInFlightRequests: limits.maxInFlightRequests ?? 1024,
  maxQueuedRequests: limits.maxQueuedRequests ?? 256,
  maxPendingRequests: limits.maxPendingRequests ?? 1024,
  maxRunningNotifications: limits.maxRunningNotifications ?? 256,
  maxBatchMessages: limits.maxBatchMessages ?? 100,
  timeout: Duration.toMillis(limits.timeout ?? 60_000),
  maxTimeout: Duration.toMillis(limits.maxTimeout ?? 3_600_000),
  drainTimeout: Duration.toMillis(limits.drainTimeout ?? 5_000),
  interruptTimeout: Duration.toMillis(limits.interruptTimeout ?? 5_000)
})

const defaults = fill({})

/** Fills the defaults in. */
export const resolve = (limits?: Limits): Resolved => limits === undefined ? defaults : fill(limits)
