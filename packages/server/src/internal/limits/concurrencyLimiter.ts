/**
 * Limits the number of requests that are handled at the same time, and counts things by key.
 */
import * as McpError from "@skein/protocol/McpError"
import type { Answer, Dispatcher, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { describeRequest, formatMillis } from "./failureAnswer.ts"

type Handler = Dispatcher<McpRequest>

/** The requests of one key. It exists as long as the key has requests. */
interface KeyQueue {
  readonly key: string
  handled: number
  readonly waiting: Set<Ticket>
}

/** One request of a queue. */
interface Ticket {
  readonly queue: KeyQueue
  admitted: boolean
  wake: (() => void) | undefined
}

/**
 * Handles up to `limit` requests of each key at the same time. Up to `maxWaiting` more of each key wait in order, each
 * for `maxWait`.
 */
export class ConcurrencyLimiter {
  readonly #queues = new Map<string, KeyQueue>()
  readonly #code: number
  readonly #limit: number
  readonly #maxWaiting: number
  readonly #maxWait: Duration.Duration

  /** `code` is the code of the JSON-RPC error that refuses a request. */
  constructor(code: number, limit: number, maxWaiting: number, maxWait: Duration.Duration) {
    this.#code = code
    this.#limit = limit
    this.#maxWaiting = maxWaiting
    this.#maxWait = maxWait
  }

  /** The number of keys that have requests now. */
  get size(): number {
    return this.#queues.size
  }

  /** Handles a request as soon as the limit allows it. */
  run(key: string, request: RequestContext, next: Handler): ReturnType<Handler> {
    // The finalizer is added before a slot is taken, because a fiber may be interrupted between any two steps.
    return Effect.suspend(() => {
      let ticket: Ticket | undefined
      return Effect.onExitPrimitive(
        Effect.suspend(() => {
          ticket = { queue: this.#queueOf(key), admitted: false, wake: undefined }
          return this.#admit(ticket, request, next)
        }),
        () => ticket === undefined ? undefined : this.#leave(ticket)
      )
    })
  }

  #queueOf(key: string): KeyQueue {
    const known = this.#queues.get(key)
    if (known !== undefined) return known
    const queue: KeyQueue = { key, handled: 0, waiting: new Set() }
    this.#queues.set(key, queue)
    return queue
  }

  #admit(ticket: Ticket, request: RequestContext, next: Handler): ReturnType<Handler> {
    const { queue } = ticket
    if (queue.handled < this.#limit) {
      queue.handled++
      ticket.admitted = true
      return next(request)
    }
    if (queue.waiting.size >= this.#maxWaiting) {
      return this.#refuse(request, `at most ${this.#limit} are handled at the same time and ${this.#maxWaiting} wait`)
    }
    const admitted = Effect.callback<void>((resume) => {
      // Resumes in a turn of its own. Otherwise a request that ends would run all waiting requests inside of each
      // other.
      ticket.wake = () => resume(Effect.yieldNow)
      queue.waiting.add(ticket)
    })
    return Effect.flatMap(Effect.timeoutOption(admitted, this.#maxWait), () =>
      ticket.admitted
        ? next(request)
        : this.#refuse(
          request,
          `at most ${this.#limit} are handled at the same time, and none ended within ${
            formatMillis(Duration.toMillis(this.#maxWait))
          }`
        ))
  }

  #refuse(request: RequestContext, why: string): Effect.Effect<Answer, McpError.McpError> {
    return Effect.fail(
      McpError.other(this.#code, `Too many requests of ${describeRequest(request)}: ${why}. Try again later`)
    )
  }

  #leave(ticket: Ticket): undefined {
    const { queue } = ticket
    if (ticket.admitted) {
      const [first] = queue.waiting
      if (first === undefined) queue.handled--
      else {
        queue.waiting.delete(first)
        first.admitted = true
        first.wake!()
      }
    } else queue.waiting.delete(ticket)
    // A refused request may leave after its key has got another queue.
    if (queue.handled === 0 && this.#queues.get(queue.key) === queue) this.#queues.delete(queue.key)
    return undefined
  }
}

/** Counts by key. The key `undefined` is not counted, and a key whose count is 0 is not stored. */
export class KeyedCounter {
  readonly #counts = new Map<string, number>()

  of(key: string | undefined): number {
    return key === undefined ? 0 : this.#counts.get(key) ?? 0
  }

  add(key: string | undefined, more: number): void {
    if (key === undefined) return
    const count = this.of(key) + more
    if (count > 0) this.#counts.set(key, count)
    else this.#counts.delete(key)
  }
}
