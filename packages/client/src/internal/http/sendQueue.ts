/**
 * Sends messages without a response: notifications, and responses to the server. "If the server accepts the input, the
 * server MUST return HTTP status code 202 Accepted with no body" (2025-11-25, transports); any 2xx counts as accepted.
 */
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { HttpChannel } from "./protocol.ts"
import { errorText, refusal } from "./refusal.ts"
import type { Resolved } from "./settings.ts"
import { backoff } from "./eventStream.ts"
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

/** Counts and bounds the messages in flight. */
export class SendQueue {
  readonly #channel: HttpChannel
  readonly #settings: Resolved
  #count = 0
  // The last ordered message, while it is in flight.
  #last: Fiber.Fiber<void> | undefined
  // Each waiter continues when at most `count` messages are in flight.
  #waiting: Array<{ readonly count: number; readonly resume: (effect: Effect.Effect<void>) => void }> | undefined

  constructor(channel: HttpChannel, settings: Resolved) {
    this.#channel = channel
    this.#settings = settings
  }

  get full(): boolean {
    return this.#count >= this.#settings.maxConcurrentPosts
  }

  /** Waits until another message may be sent. */
  get drained(): Effect.Effect<void> {
    return this.#atMost(this.#settings.maxConcurrentPosts - 1)
  }

  /** Waits until no message is in flight. */
  get idle(): Effect.Effect<void> {
    return this.#atMost(0)
  }

  /**
   * Ends the connection if the server has not accepted `maxUndeliveredMessages`, including the `waiting` ones. Returns
   * whether it did.
   */
  overflows(waiting = 0): boolean {
    const { maxUndeliveredMessages } = this.#settings
    if (this.#count + waiting < maxUndeliveredMessages) return false
    const message = `The server has not accepted ${maxUndeliveredMessages} messages (maxUndeliveredMessages)`
    this.#channel.end({ _tag: "Lost", cause: new TransportError({ reason: new ConnectionLost({ message }) }) })
    return true
  }

  send(request: HttpRequest, { onDone, ordered, retry }: SendOptions): void {
    if (this.overflows()) return
    this.#count++
    const told = Effect.match(this.#deliver(request, retry ? this.#settings.maxAnswerTries : 1, 0), {
      onFailure: (error) => onDone(error),
      onSuccess: () => onDone(undefined)
    })
    const sending = Effect.onExitPrimitive(told, () => {
      this.#onSent()
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

  #deliver(request: HttpRequest, tries: number, tried: number): Effect.Effect<void, TransportError> {
    const once = Effect.flatMap(
      Effect.timeoutOption(
        this.#channel.exchange(request, (reply) => this.#accepted(reply)),
        this.#settings.postTimeout
      ),
      (inTime) =>
        inTime._tag === "Some" ? Effect.void : Effect.fail(
          new TransportError({
            reason: new ConnectionLost({
              message: `The server did not accept a message within ${this.#settings.postTimeout} ms (postTimeout)`
            })
          })
        )
    )
    if (tried + 1 >= tries) return once
    return Effect.catchIf(once, (error) => error.reason._tag !== "MessageRejected", () =>
      Effect.flatMap(
        backoff(this.#settings.resumption, tried),
        (delay) => Effect.andThen(Effect.sleep(delay), this.#deliver(request, tries, tried + 1))
      ))
  }

  #accepted(reply: HttpResponse): Effect.Effect<void, TransportError> {
    // A body that is read to its end leaves the HTTP connection usable for the next request.
    return Effect.flatMap(
      errorText(reply, this.#settings),
      (text) =>
        reply.status >= 200 && reply.status < 300
          ? Effect.void
          : Effect.flatMap(refusal(reply, text), (error) => Effect.fail(error))
    )
  }

  #onSent(): void {
    this.#count--
    const waiting = this.#waiting
    if (waiting === undefined) return
    this.#waiting = waiting.filter(({ count }) => this.#count > count)
    for (const { count, resume } of waiting) if (this.#count <= count) resume(Effect.void)
  }

  #atMost(count: number): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.#count <= count) return resume(Effect.void)
      const waiter = { count, resume }
      ;(this.#waiting ??= []).push(waiter)
      return Effect.sync(() => {
        this.#waiting = this.#waiting?.filter((other) => other !== waiter)
      })
    })
  }
}
