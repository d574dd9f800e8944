/**
 * The one timer of an endpoint's sessions.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

// However close the deadlines are to each other, the sessions are gone through no more often than that, in milliseconds.
const leastPause = 1_000

// What a timer can wait for. It looks again then.
const longest = 0x7fffffff

/**
 * Sleeps until the earliest deadline that it was told of, does what is due, and is told the next one; `Infinity` where there is
 * none. A deadline that has moved on meanwhile costs one look.
 */
export class Sweeper {
  readonly #now: () => number
  readonly #run: <A>(effect: Effect.Effect<A>) => Fiber.Fiber<A>
  readonly #sweep: (now: number) => number
  #timer: Fiber.Fiber<void> | undefined = undefined
  #wakeAt = Infinity

  constructor(
    now: () => number,
    run: <A>(effect: Effect.Effect<A>) => Fiber.Fiber<A>,
    sweep: (now: number) => number
  ) {
    this.#now = now
    this.#run = run
    this.#sweep = sweep
  }

  /** When something may be due. */
  get wakeAt(): number {
    return this.#wakeAt
  }

  /** Makes sure that it wakes at the deadline or before. */
  arm(deadline: number): void {
    if (deadline >= this.#wakeAt) return
    this.#timer?.interruptUnsafe()
    this.#wakeAt = deadline
    const wait = Math.min(Math.max(0, deadline - this.#now()), longest)
    this.#timer = this.#run(Effect.andThen(Effect.sleep(wait), Effect.sync(() => this.sweep())))
  }

  /** Does what is due. */
  sweep(): void {
    const now = this.#now()
    this.disarm()
    const next = this.#sweep(now)
    if (next !== Infinity) this.arm(Math.max(next, now + leastPause))
  }

  disarm(): void {
    this.#timer?.interruptUnsafe()
    this.#timer = undefined
    this.#wakeAt = Infinity
  }
}
