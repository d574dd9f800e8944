/** Who is handled now, and who waits for it. */
import * as McpError from "@skein/protocol/McpError"
import type { Answer, Dispatcher, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { describeRequest, formatMillis } from "./failRequest.ts"

type Handler = Dispatcher<McpRequest>

/** The requests of one key. It is there for as long as there are any. */
interface KeyQueue {
  readonly key: string
  handled: number
  readonly waiting: Set<Ticket>
}

/** One request, and whether it is being handled. */
class Ticket {
  readonly queue: KeyQueue
  admitted = false
  wake: (() => void) | undefined = undefined

  constructor(desk: KeyQueue) {
    this.queue = desk
  }
}

/** Where requests are handled, up to a limit for each key, and wait. */
export class ConcurrencyLimiter {
  readonly #desks = new Map<string, KeyQueue>()
  readonly #code: number
  readonly #limit: number
  readonly #maxWaiting: number
  readonly #maxWait: Duration.Duration

  constructor(code: number, limit: number, maxWaiting: number, maxWait: Duration.Duration) {
    this.#code = code
    this.#limit = limit
    this.#maxWaiting = maxWaiting
    this.#maxWait = maxWait
  }

  /** For how many keys there are requests now. */
  get size(): number {
    return this.#desks.size
  }

  /** Nothing is taken before there is a finalizer that gives it back, since a fiber may be interrupted between any two steps. */
  enter(key: string, exchange: RequestContext, next: Handler): ReturnType<Handler> {
    return Effect.suspend(() => {
      let ticket: Ticket | undefined
      return Effect.onExitPrimitive(
        Effect.suspend(() => {
          ticket = new Ticket(this.#desk(key))
          return this.#admit(ticket, exchange, next)
        }),
        () => ticket === undefined ? undefined : this.#leave(ticket)
      )
    })
  }

  #desk(key: string): KeyQueue {
    const known = this.#desks.get(key)
    if (known !== undefined) return known
    const desk: KeyQueue = { key, handled: 0, waiting: new Set() }
    this.#desks.set(key, desk)
    return desk
  }

  #admit(ticket: Ticket, exchange: RequestContext, next: Handler): ReturnType<Handler> {
    const { queue: desk } = ticket
    if (desk.handled < this.#limit) {
      desk.handled++
      ticket.admitted = true
      return next(exchange)
    }
    if (desk.waiting.size >= this.#maxWaiting) {
      return this.#refuse(exchange, `at most ${this.#limit} at the same time and ${this.#maxWaiting} that wait`)
    }
    const admitted = Effect.callback<void>((resume) => {
      // In a turn of its own: what ends would otherwise run all that waits for it, one inside of the other.
      ticket.wake = () => resume(Effect.yieldNow)
      desk.waiting.add(ticket)
    })
    return Effect.flatMap(Effect.timeoutOption(admitted, this.#maxWait), () =>
      ticket.admitted
        ? next(exchange)
        : this.#refuse(
          exchange,
          `at most ${this.#limit} at the same time, and none ended within ${
            formatMillis(Duration.toMillis(this.#maxWait))
          }`
        ))
  }

  #refuse(exchange: RequestContext, why: string): Effect.Effect<Answer, McpError.McpError> {
    return Effect.fail(McpError.other(this.#code, `Too busy for ${describeRequest(exchange)}: ${why}. Try again later`))
  }

  #leave(ticket: Ticket): undefined {
    const { queue: desk } = ticket
    if (ticket.admitted) {
      const [first] = desk.waiting
      if (first === undefined) desk.handled--
      else {
        desk.waiting.delete(first)
        first.admitted = true
        first.wake!()
      }
    } else desk.waiting.delete(ticket)
    // One that was refused may leave when there is another desk for its key already.
    if (desk.handled === 0 && this.#desks.get(desk.key) === desk) this.#desks.delete(desk.key)
    return undefined
  }
}

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
