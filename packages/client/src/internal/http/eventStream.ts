/**
 * One event stream, over the HTTP responses that it takes to read it: a broken stream of a session is requested again
 * (2025-11-25, transports, resumability and redelivery).
 */
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Random from "effect/Random"
import type { HttpChannel } from "./protocol.ts"
import { mediaType } from "./refusal.ts"
import type { Resolved, ResolvedResumption } from "./settings.ts"
import { Reader } from "./sse.ts"
import type { HttpRequest, HttpResponse } from "./httpClient.ts"

// The event ids that fit in a header field: at most 4,096 characters, as for a session id. There is no option, since
// servers accept little more than that. A stream with longer ids is not resumed.
const sendable = /^[\x21-\x7e](?:[\x20-\x7e]{0,4094}[\x21-\x7e])?$/

// The longest `Retry-After` that is respected, in milliseconds, as between connections.
const maxRetryAfter = 600_000

const lost = (message: string, cause?: unknown): TransportError =>
  new TransportError({ reason: new ConnectionLost({ message, cause }) })

/** An error after which a stream is not requested again. */
export class PermanentFailure {
  readonly error: TransportError
  constructor(error: TransportError) {
    this.error = error
  }
}

/**
 * The outcome of one request for a stream: `undefined` if it ended, an error if it broke or failed, or a permanent
 * failure.
 */
export type Outcome = undefined | TransportError | PermanentFailure

/** The state of a stream across its requests: the last id, the known ids, and the counts of attempts. */
export class EventStream {
  readonly #settings: ResolvedResumption
  readonly #maxMessageBytes: number
  readonly #onData: (data: string) => void
  #lastId = ""
  #retryDelay: number | undefined
  // The event ids of earlier responses, and of the present one, in order.
  #previousIds: Set<string> | undefined
  #ids: Set<string> | undefined
  // Attempts in a row without an event, and without a message.
  #attemptsWithoutEvent = 0
  #attemptsWithoutMessage = 0
  #wasOpened = false
  // Whether the last attempt opened the stream.
  #wasOpen = false
  /** Whether the last attempt got a response. */
  reached = false

  constructor({ maxMessageBytes, resumption }: Resolved, onData: (data: string) => void) {
    this.#settings = resumption
    this.#maxMessageBytes = maxMessageBytes
    this.#onData = onData
  }

  /** The id of the last event, if it can be sent in a header. */
  get lastId(): string | undefined {
    return sendable.test(this.#lastId) ? this.#lastId : undefined
  }

  /** Whether the stream was ever open. */
  get opened(): boolean {
    return this.#wasOpened
  }

  /** Reads a response to its end. */
  read(reply: HttpResponse): Effect.Effect<Outcome> {
    return Effect.suspend(() => {
      this.#wasOpened = true
      this.#wasOpen = true
      this.#mergeIds()
      let tooLarge: TransportError | undefined
      const reader = new Reader(this, this.#maxMessageBytes)
      const pieces = reply.pieces((text) => {
        if (tooLarge === undefined && !reader.feed(text)) {
          tooLarge = lost(`An event of the stream exceeds maxMessageBytes (${this.#maxMessageBytes})`)
        }
        return tooLarge
      })
      return Effect.match(pieces, {
        onFailure: (error): Outcome => tooLarge === undefined ? error : new PermanentFailure(tooLarge),
        onSuccess: (): Outcome => tooLarge === undefined ? undefined : new PermanentFailure(tooLarge)
      })
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
   * Waits until the stream may be requested again. Fails after too many attempts. `last` is the error that broke it.
   */
  pause(last: TransportError | undefined): Effect.Effect<void, TransportError> {
    return Effect.suspend(() => {
      const { maxAttempts, maxReconnects } = this.#settings
      const given = this.#attemptsWithoutEvent >= maxAttempts
        ? `${this.#attemptsWithoutEvent} attempts to resume the stream brought no event (maxAttempts)`
        : this.#attemptsWithoutMessage >= maxReconnects
        ? `${this.#attemptsWithoutMessage} attempts to resume the stream brought no message (maxReconnects)`
        : undefined
      if (given !== undefined) {
        return Effect.fail(lost(last === undefined ? given : `${given}: ${last.message}`, last))
      }
      const attempt = this.#attemptsWithoutEvent++
      this.#attemptsWithoutMessage++
      const retry = this.#retryDelay
      const had = this.#wasOpen
      this.#wasOpen = false
      // "The client MUST respect the `retry` field, waiting the given number of milliseconds."
      if (had && retry !== undefined) return Effect.sleep(retry)
      const least = Math.max(retry ?? 0, Math.min(last?.retryAfter ?? 0, maxRetryAfter))
      return Effect.flatMap(backoff(this.#settings, attempt), (delay) => Effect.sleep(Math.max(least, delay)))
    })
  }

  // ---- for the reader

  event(type: string, data: string, id: string | undefined): void {
    this.#attemptsWithoutEvent = 0
    if (id !== undefined) {
      this.#lastId = id
      if (id !== "" && this.#isKnown(id)) return
    }
    if (data === "" || type !== "message") return
    this.#attemptsWithoutMessage = 0
    this.#onData(data)
  }

  retry(millis: number): void {
    this.#retryDelay = millis
  }

  /** Whether an earlier response has brought the event. */
  #isKnown(id: string): boolean {
    if (this.#previousIds?.has(id) === true) return true
    bounded(this.#ids ??= new Set(), id, this.#settings.maxEventIds)
    return false
  }

  #mergeIds(): void {
    if (this.#ids === undefined) return
    const before = this.#previousIds ??= new Set()
    for (const id of this.#ids) bounded(before, id, this.#settings.maxEventIds)
    this.#ids = undefined
  }
}

/** Adds to a set that drops its oldest member beyond `max`. */
const bounded = (set: Set<string>, id: string, max: number): void => {
  set.add(id)
  if (set.size > max) set.delete(set.values().next().value!)
}

/**
 * The delay before the next attempt, in milliseconds: it grows up to `maxDelay`, and a random part of up to one half is
 * subtracted.
 */
export const backoff = (settings: ResolvedResumption, attempt: number): Effect.Effect<number> =>
  Effect.map(Random.next, (random) => {
    const { factor, initialDelay, maxDelay } = settings
    return Math.min(maxDelay, initialDelay * factor ** attempt) * (1 - random / 2)
  })

/** How a stream is requested and resumed. */
export interface StreamRequest {
  readonly channel: HttpChannel
  readonly stream: EventStream
  readonly request: (lastId: string | undefined) => HttpRequest
  /** Runs when the stream is open again, and messages in between were lost. */
  readonly onReopened?: (() => void) | undefined
  /** Whether no further message is expected. */
  readonly isOver: () => boolean
  /** Handles a response that is not a stream: a transient error, or a permanent one. */
  readonly onResponse: (reply: HttpResponse) => Effect.Effect<Outcome>
}

/** Requests the stream once and reads it. */
export const readOnce = (
  { channel, onReopened, onResponse, request, stream }: StreamRequest
): Effect.Effect<Outcome> =>
  Effect.suspend(() => {
    stream.reached = false
    const { lastId, opened } = stream
    return Effect.catch(
      channel.exchange(request(lastId), (reply): Effect.Effect<Outcome> => {
        stream.reached = true
        const { status } = reply
        if (status < 200 || status >= 300 || mediaType(reply) !== "text/event-stream") return onResponse(reply)
        if (opened && lastId === undefined) onReopened?.()
        return stream.readTimed(reply)
      }),
      // A rejection by the transport itself, for example of a redirect to another origin, is permanent.
      (error) => Effect.succeed<Outcome>(error.reason._tag === "MessageRejected" ? new PermanentFailure(error) : error)
    )
  })

/** Requests a stream that ended or broke until it is over. Fails when it cannot be resumed. */
export const follow = (following: StreamRequest, outcome: Outcome): Effect.Effect<void, TransportError> => {
  if (following.isOver()) return Effect.void
  if (outcome instanceof PermanentFailure) return Effect.fail(outcome.error)
  return Effect.flatMap(
    following.stream.pause(outcome),
    () => Effect.flatMap(readOnce(following), (next) => follow(following, next))
  )
}

// How long an answered stream may stay open, in milliseconds. Sweeps are this far apart, so the actual time is up to
// twice this.
const lingerTimeout = 1_000

/**
 * Streams that have brought the response to their request and are still open. The server "SHOULD terminate the stream"
 * after the response. Waiting for that for a moment leaves the HTTP connection usable for the next request. A stream
 * that stays open is aborted. One fiber watches all streams, and runs only while there are any.
 */
export class AnsweredStreams {
  readonly #channel: HttpChannel
  #fresh: Set<Fiber.Fiber<void>> | undefined = undefined
  #stale: Set<Fiber.Fiber<void>> | undefined = undefined
  #watching = false

  constructor(channel: HttpChannel) {
    this.#channel = channel
  }

  add(fiber: Fiber.Fiber<void>): void {
    if (this.#stale?.has(fiber) === true) return
    ;(this.#fresh ??= new Set()).add(fiber)
    if (this.#watching) return
    this.#watching = true
    this.#channel.fork(this.#watch)
  }

  delete(fiber: Fiber.Fiber<void>): void {
    if (this.#fresh?.delete(fiber) !== true) this.#stale?.delete(fiber)
  }

  get #watch(): Effect.Effect<void> {
    return Effect.flatMap(Effect.sleep(lingerTimeout), () => this.#sweep())
  }

  #sweep(): Effect.Effect<void> {
    for (const fiber of this.#stale ?? []) fiber.interruptUnsafe()
    this.#stale = this.#fresh?.size === 0 ? undefined : this.#fresh
    this.#fresh = undefined
    this.#watching = this.#stale !== undefined
    return this.#watching ? this.#watch : Effect.void
  }
}
