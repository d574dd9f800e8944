/**
 * One event stream, over the HTTP responses that it takes to read it: a broken stream of a session is requested again
 * (2025-11-25, transports, resumability and redelivery).
 */
import type { TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { connectionLost, delayAfter } from "../base/errors.ts"
import type { HttpChannel } from "./protocol.ts"
import type { Resolved } from "./settings.ts"
import { Reader } from "./sse.ts"
import type { HttpResponse } from "./httpClient.ts"

// The event ids that fit in a header field: at most 4,096 characters, as for a session id. There is no option, since
// servers accept little more than that. A stream with longer ids is not resumed.
const sendable = /^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/

/** The outcome of one request for a stream: `undefined` if it ended, an error if it broke or failed. */
export type Outcome = TransportError | undefined

/** The state of a stream across its requests: the last id, the known ids, and the counts of attempts. */
export class EventStream {
  readonly #settings: Resolved
  readonly #onData: (data: string) => void
  #lastId = ""
  #retryDelay: number | undefined
  // The event ids of earlier responses, and of the present one, in order.
  #previousIds: Set<string> | undefined
  #ids: Set<string> | undefined
  // Attempts in a row without an event, and without a message.
  #attemptsWithoutEvent = 0
  #attemptsWithoutMessage = 0
  // Whether the last attempt opened the stream.
  #wasOpen = false
  /** Whether the stream was ever open. */
  opened = false
  /** Whether the last attempt got a response. */
  reached = false
  /** The error after which the stream is not requested again. */
  failure: TransportError | undefined

  constructor(settings: Resolved, onData: (data: string) => void) {
    this.#settings = settings
    this.#onData = onData
  }

  /** The id of the last event, if it can be sent in a header. */
  get lastId(): string | undefined {
    return this.#lastId === "" ? undefined : this.#lastId
  }

  /** Reads a response to its end. */
  read(reply: HttpResponse): Effect.Effect<Outcome> {
    return Effect.suspend(() => {
      this.opened = true
      this.#wasOpen = true
      this.#mergeIds()
      const reader = new Reader(this, this.#settings.maxMessageBytes)
      const chunks = reply.chunks((chunk) => this.failure ??= reader.feed(chunk))
      return Effect.match(chunks, { onFailure: (error): Outcome => error, onSuccess: (): Outcome => undefined })
    })
  }

  /** Reads a response as `read` does. Resets the counts of attempts if the stream was open for `stableAfter`. */
  readTimed(reply: HttpResponse): Effect.Effect<Outcome> {
    return Effect.clockWith((clock) => {
      const begun = clock.currentTimeMillisUnsafe()
      return Effect.map(this.read(reply), (outcome) => {
        if (clock.currentTimeMillisUnsafe() - begun >= this.#settings.stableAfter) {
          this.#attemptsWithoutEvent = this.#attemptsWithoutMessage = 0
        }
        return outcome
      })
    })
  }

  /**
   * Waits until the stream may be requested again. Fails after too many attempts, or after an error that is permanent.
   * `last` is the error that broke it.
   */
  pause(last: Outcome): Effect.Effect<void, TransportError> {
    return Effect.suspend(() => {
      if (this.failure !== undefined) return Effect.fail(this.failure)
      const { maxReconnects, resumption } = this.#settings
      const exhausted = this.#attemptsWithoutEvent >= resumption.maxAttempts
        ? `${this.#attemptsWithoutEvent} attempts to resume the stream brought no event (maxAttempts)`
        : this.#attemptsWithoutMessage >= maxReconnects
        ? `${this.#attemptsWithoutMessage} attempts to resume the stream brought no message`
        : undefined
      if (exhausted !== undefined) {
        return Effect.fail(connectionLost(last === undefined ? exhausted : `${exhausted}: ${last.message}`, last))
      }
      this.#attemptsWithoutMessage++
      const attempt = ++this.#attemptsWithoutEvent
      const retry = this.#retryDelay
      const wasOpen = this.#wasOpen
      this.#wasOpen = false
      // "The client MUST respect the `retry` field, waiting the given number of milliseconds." Its bounds are applied.
      if (wasOpen && retry !== undefined) return Effect.sleep(retry)
      return Effect.flatMap(
        delayAfter(last, resumption, attempt),
        (delay) => Effect.sleep(Math.max(retry ?? 0, delay))
      )
    })
  }

  // ---- for the reader

  event(type: string, data: string, id: string | undefined): void {
    this.#attemptsWithoutEvent = 0
    if (id !== undefined) {
      // A longer id is not stored: it cannot be sent, so the stream is not resumed after it.
      this.#lastId = sendable.test(id) ? id : ""
      if (this.#lastId !== "" && this.#isKnown(id)) return
    }
    if (data === "" || type !== "message") return
    this.#attemptsWithoutMessage = 0
    this.#onData(data)
  }

  retry(millis: number): void {
    const { maxRetry, minRetry } = this.#settings
    this.#retryDelay = Math.min(Math.max(millis, minRetry), Math.max(minRetry, maxRetry))
  }

  /** Whether an earlier response has delivered the event. */
  #isKnown(id: string): boolean {
    if (this.#previousIds?.has(id) === true) return true
    this.#remember(this.#ids ??= new Set(), id)
    return false
  }

  #mergeIds(): void {
    if (this.#ids === undefined) return
    const previous = this.#previousIds ??= new Set()
    for (const id of this.#ids) this.#remember(previous, id)
    this.#ids = undefined
  }

  #remember(ids: Set<string>, id: string): void {
    ids.add(id)
    if (ids.size > this.#settings.maxEventIds) ids.delete(ids.values().next().value!)
  }
}

// How long an answered stream may stay open, in milliseconds. Sweeps are this far apart, so the actual time is up to
// twice this.
const lingerTimeout = 1_000

/**
 * Streams that have delivered the response to their request and are still open. The server "SHOULD terminate the
 * stream" after the response. Waiting for that for a moment leaves the HTTP connection usable for the next request. A
 * stream that stays open is aborted. One fiber watches all streams, and runs only while there are any.
 */
export class AnsweredStreams {
  readonly #channel: HttpChannel
  // The streams that were answered since the last sweep, and earlier ones.
  #fresh = new Set<Fiber.Fiber<void>>()
  #stale = new Set<Fiber.Fiber<void>>()
  #isWatching = false

  constructor(channel: HttpChannel) {
    this.#channel = channel
  }

  add(fiber: Fiber.Fiber<void>): void {
    if (this.#stale.has(fiber)) return
    this.#fresh.add(fiber)
    if (this.#isWatching) return
    this.#isWatching = true
    this.#channel.fork(this.#watch)
  }

  delete(fiber: Fiber.Fiber<void>): void {
    if (!this.#fresh.delete(fiber)) this.#stale.delete(fiber)
  }

  get #watch(): Effect.Effect<void> {
    return Effect.flatMap(Effect.sleep(lingerTimeout), () => this.#sweep())
  }

  #sweep(): Effect.Effect<void> {
    for (const fiber of this.#stale) fiber.interruptUnsafe()
    this.#stale = this.#fresh
    this.#fresh = new Set()
    this.#isWatching = this.#stale.size > 0
    return this.#isWatching ? this.#watch : Effect.void
  }
}
