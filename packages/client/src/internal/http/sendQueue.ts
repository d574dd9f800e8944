/**
 * What is sent and not answered: notifications, and answers to the server. "If the server accepts the input, the server MUST return
 * HTTP status code 202 Accepted with no body" (2025-11-25, transports); any 2xx is taken.
 */
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type { HttpChannel } from "./protocol.ts"
import { errorText, refusal } from "./refusal.ts"
import type { Resolved } from "./settings.ts"
import { backoff } from "./eventStream.ts"
import type { HttpRequest, HttpResponse } from "./httpClient.ts"

/** How something is sent. */
export interface SendOptions {
  /** Whether it is sent again when the network fails (`maxAnswerTries`), so that it may arrive twice. */
  readonly retry: boolean
  /** Whether it waits until what was sent so before has arrived, or has not: what a server is told stays in order. */
  readonly ordered: boolean
  /** Hears what became of it. */
  readonly onDone: (error: TransportError | undefined) => void
}

/** See the module's text. */
export class SendQueue {
  readonly #channel: HttpChannel
  readonly #settings: Resolved
  #count = 0
  // The last of those that stay in order, while it is on its way.
  #last: Fiber.Fiber<void> | undefined
  // Each goes on when the count is at most its own.
  #waiting: Array<{ readonly count: number; readonly resume: (effect: Effect.Effect<void>) => void }> | undefined

  constructor(channel: HttpChannel, settings: Resolved) {
    this.#channel = channel
    this.#settings = settings
  }

  get full(): boolean {
    return this.#count >= this.#settings.maxConcurrentPosts
  }

  /** Waits until one more may be sent. */
  get drained(): Effect.Effect<void> {
    return this.#atMost(this.#settings.maxConcurrentPosts - 1)
  }

  /** Waits until nothing is on its way. */
  get idle(): Effect.Effect<void> {
    return this.#atMost(0)
  }

  /** Ends the connection where that many messages, those that `waiting` counts among them, are not taken by the server. */
  overflows(waiting = 0): boolean {
    const { maxUndeliveredMessages } = this.#settings
    if (this.#count + waiting < maxUndeliveredMessages) return false
    const message =
      `The server has not taken ${maxUndeliveredMessages} messages that it was sent (maxUndeliveredMessages)`
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
    // What is read to its end leaves the connection for the next request.
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
