/**
 * Sends messages without a response: notifications, and responses to the server. "If the server accepts the input, the
 * server MUST return HTTP status code 202 Accepted with no body" (2025-11-25, transports); any 2xx counts as accepted.
 */
import type { TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import { connectionLost, delayAfter } from "../base/errors.ts"
import type { HttpChannel } from "./protocol.ts"
import { errorText, is2xx, readRefusal } from "./refusal.ts"
import type { HttpRequest, HttpResponse } from "./httpClient.ts"

/** How a message is sent. */
export interface SendOptions {
  /** Whether it is sent again when the network fails (`maxAnswerTries`). It may then arrive twice. */
  readonly retry: boolean
  /** Whether it waits until the previous ordered message was accepted or has failed. */
  readonly ordered: boolean
  /** Runs when it was accepted, or has failed. */
  readonly onDone: (error: TransportError | undefined) => void
}

/** Counts and bounds the messages in flight, and delays messages until the session is initialized. */
export class SendQueue {
  readonly #channel: HttpChannel
  #count = 0
  // The last ordered message, while it is in flight.
  #last: Fiber.Fiber<void> | undefined
  // Opens when the next message was accepted or has failed.
  #sent: Latch.Latch | undefined
  // The sends that wait until the server has accepted `notifications/initialized`, and how many are messages of this
  // queue.
  #delayed: Array<() => void> | undefined
  #delayedMessages = 0

  constructor(channel: HttpChannel) {
    this.#channel = channel
  }

  get full(): boolean {
    const { maxConcurrentPosts } = this.#channel.settings
    return this.#count >= maxConcurrentPosts ||
      (this.#delayed !== undefined && this.#delayed.length >= maxConcurrentPosts)
  }

  /** Waits until another message may be sent. */
  get drained(): Effect.Effect<void> {
    // Delayed messages are sent after `notifications/initialized`, which is in flight.
    return this.#delayed === undefined ? this.#atMost(this.#channel.settings.maxConcurrentPosts - 1) : this.idle
  }

  /** Waits until no message is in flight. */
  get idle(): Effect.Effect<void> {
    return this.#atMost(0)
  }

  /** Sends `notifications/initialized`. All that follows is delayed until `release`. */
  initialized(request: HttpRequest, onDone: SendOptions["onDone"]): void {
    this.#delayed ??= []
    this.#start(request, { retry: true, ordered: false, onDone })
  }

  /** Continues after `notifications/initialized`. */
  release(): void {
    const delayed = this.#delayed ?? []
    this.#delayed = undefined
    this.#delayedMessages = 0
    for (const go of delayed) go()
  }

  /** Runs a function, but not between `initialized` and `release`. */
  whenReleased(go: () => void): void {
    if (this.#delayed === undefined) go()
    else this.#delayed.push(go)
  }

  send(request: HttpRequest, options: SendOptions): void {
    if (this.#delayed === undefined) this.#start(request, options)
    else if (!this.#overflows(this.#delayedMessages++)) this.#delayed.push(() => this.#start(request, options))
  }

  /**
   * Ends the connection if the server has not accepted `maxUndeliveredMessages`, including the `delayed` ones. Returns
   * whether it did.
   */
  #overflows(delayed: number): boolean {
    const { maxUndeliveredMessages } = this.#channel.settings
    if (this.#count + delayed < maxUndeliveredMessages) return false
    const message = `The server has not accepted ${maxUndeliveredMessages} messages`
    this.#channel.end({ _tag: "Lost", cause: connectionLost(message) })
    return true
  }

  #start(request: HttpRequest, { onDone, ordered, retry }: SendOptions): void {
    if (this.#overflows(0)) return
    this.#count++
    const done = Effect.match(this.#deliver(request, retry ? this.#channel.settings.maxAnswerTries : 1, 1), {
      onFailure: onDone,
      onSuccess: () => onDone(undefined)
    })
    const sending = Effect.onExitPrimitive(done, () => {
      this.#count--
      this.#sent?.openUnsafe()
      this.#sent = undefined
      return undefined
    })
    const before = ordered ? this.#last : undefined
    const fiber = this.#channel.fork(before === undefined ? sending : Effect.andThen(Fiber.await(before), sending))
    if (!ordered || fiber.pollUnsafe() !== undefined) return
    this.#last = fiber
    fiber.addObserver(() => {
      if (this.#last === fiber) this.#last = undefined
    })
  }

  #deliver(request: HttpRequest, tries: number, attempt: number): Effect.Effect<void, TransportError> {
    const { postTimeout, resumption } = this.#channel.settings
    const once = this.#channel.callClock.timeoutOrElse(
      this.#channel.exchanger.exchange(request, (reply) => this.#accepted(reply)),
      postTimeout,
      () => Effect.fail(connectionLost(`The server did not accept a message within ${postTimeout} ms`))
    )
    if (attempt >= tries) return once
    return Effect.catchIf(once, ({ reason }) => reason._tag !== "MessageRejected", (error) =>
      Effect.flatMap(
        delayAfter(error, resumption, attempt),
        (delay) => Effect.andThen(Effect.sleep(delay), this.#deliver(request, tries, attempt + 1))
      ))
  }

  #accepted(reply: HttpResponse): Effect.Effect<void, TransportError> {
    if (!is2xx(reply)) return Effect.flip(readRefusal(reply, this.#channel))
    // A body that is read to its end leaves the HTTP connection usable for the next request.
    return Effect.asVoid(errorText(reply, this.#channel))
  }

  #atMost(count: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#count <= count) return Effect.void
      const sent = this.#sent ??= Latch.makeUnsafe()
      return Effect.andThen(sent.await, this.#atMost(count))
    })
  }
}
