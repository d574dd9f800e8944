/**
 * The bounds of a connection, their defaults, and the behavior at each.
 *
 * A connection is read at every bound: pings, cancellations, responses and the end of the peer are never held up by
 * requests, however long their handlers run. A request or notification beyond a bound is refused or dropped.
 *
 * The transport bounds the messages for a slow reader and the size of a message. The scopes of handlers and callers
 * bound their fibers. A request that is answered synchronously, or refused, leaves nothing behind; a request
 * whose handler ignores its cancellation counts for as long as it runs.
 */
import type * as Duration from "effect/Duration"
import * as Options from "./Options.ts"

/** Messages in one batch (2025-03-26 only). A longer batch is refused with `-32600`. */
export const maxBatchMessages = 100

/** The bounds. Every member is optional and has a default. */
export interface Limits {
  /**
   * Inbound requests that are handled at the same time: 1,024 by default. At the bound the next ones are queued, in
   * order, and can be cancelled meanwhile; a ping is never queued. Requests that end without suspending are not
   * counted. With 1, requests are handled one by one.
   */
  readonly maxInFlightRequests?: number | undefined
  /**
   * Inbound requests that are queued because `maxInFlightRequests` are being handled: 256 by default. At the bound the
   * next request is refused with `-32603`, over every transport.
   */
  readonly maxQueuedRequests?: number | undefined
  /**
   * Bytes of the inbound requests that are being handled or queued: 64 Mi by default. At the bound the next request is
   * refused with `-32603`, unless it is the only large one. Requests of less than 16 KiB are not counted, and neither
   * are those over an in-memory transport.
   */
  readonly maxInFlightBytes?: number | undefined
  /**
   * How long a call waits for its response: 60 seconds by default. Progress restarts it. Then `RequestError`
   * `Timeout`.
   */
  readonly timeout?: Duration.Input | undefined
  /** How long a call waits in total, regardless of progress: 1 hour by default. */
  readonly maxTimeout?: Duration.Input | undefined
  /**
   * How long requests in flight may continue after the peer has ended: 5 seconds by default. Then they are interrupted.
   * Raise it for handlers that must finish what they have begun.
   */
  readonly shutdownTimeout?: Duration.Input | undefined
}

/** The bounds with their defaults; durations in milliseconds. */
export type Resolved = Options.Resolved<Limits>

const fill = (limits: Limits): Resolved =>
  Options.resolve(limits, {
    maxInFlightRequests: 1024,
    maxQueuedRequests: 256,
    maxInFlightBytes: 64 * 1024 * 1024
  }, { timeout: 60_000, maxTimeout: 3_600_000, shutdownTimeout: 5_000 })

const defaults = fill({})

/** Adds the defaults. */
export const resolve = (limits?: Limits): Resolved => limits === undefined ? defaults : fill(limits)
