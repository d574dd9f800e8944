/**
 * One timer for many deadlines: those of sessions, of streams and of silent answers.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

// However close the deadlines are to each other, the sessions are checked at most this often, in milliseconds.
const minPause = 1_000

// The longest delay of a timer. A later deadline is checked again after this delay.
const maxDelay = 0x7fffffff

/**
 * Sleeps until the earliest known deadline, and then calls `expire`, which returns the next deadline, or
 * `Infinity`. A deadline that was postponed meanwhile costs one call.
 */
export class ExpiryTimer {
  readonly #now: () => number
  readonly #run: <A>(effect: Effect.Effect<A>) => Fiber.Fiber<A>
  readonly #expire: (now: number) => number
  #timer: Fiber.Fiber<void> | undefined = undefined
  #wakeAt = Infinity

  constructor(
    now: () => number,
    run: <A>(effect: Effect.Effect<A>) => Fiber.Fiber<A>,
    expire: (now: number) => number
  ) {
    this.#now = now
    this.#run = run
    this.#expire = expire
  }

  /** The time of the next check. */
  get wakeAt(): number {
    return this.#wakeAt
  }

  /** Checks at the deadline, or before. */
  arm(deadline: number): void {
    if (deadline >= this.#wakeAt) return
    this.#timer?.interruptUnsafe()
    this.#wakeAt = deadline
    const wait = Math.min(Math.max(0, deadline - this.#now()), maxDelay)
    this.#timer = this.#run(Effect.andThen(Effect.sleep(wait), Effect.sync(() => this.check())))
  }

  /** Checks now. */
  check(): void {
    const now = this.#now()
    this.disarm()
    const next = this.#expire(now)
    if (next !== Infinity) this.arm(Math.max(next, now + minPause))
  }

  disarm(): void {
    this.#timer?.interruptUnsafe()
    this.#timer = undefined
    this.#wakeAt = Infinity
  }
}
