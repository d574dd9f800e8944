/**
 * A clock whose time stands still until a test lets it skip to the end of a sleep.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { CurrentRun } from "../engine/engineContext.ts"

/** A fiber that sleeps. */
interface Sleeper {
  /** In milliseconds of Unix time. */
  readonly end: number
  /** The run that the fiber belongs to; `undefined` for the loops of the engine. */
  readonly run: string | undefined
  readonly wake: () => void
}

export class SkippingClock implements Clock.Clock {
  readonly #begin: number
  #now: number
  readonly #sleepers = new Set<Sleeper>()
  /** How many sleeps have begun or ended. */
  changes = 0

  /** `now` in milliseconds of Unix time. */
  constructor(now: number) {
    this.#begin = now
    this.#now = now
  }

  currentTimeMillisUnsafe(): number {
    return this.#now
  }

  currentTimeNanosUnsafe(): bigint {
    return BigInt(this.#now) * 1_000_000n
  }

  monotonicTimeNanosUnsafe(): bigint {
    return BigInt(this.#now - this.#begin) * 1_000_000n
  }

  readonly currentTimeMillis: Effect.Effect<number> = Effect.sync(() => this.currentTimeMillisUnsafe())
  readonly currentTimeNanos: Effect.Effect<bigint> = Effect.sync(() => this.currentTimeNanosUnsafe())
  readonly monotonicTimeNanos: Effect.Effect<bigint> = Effect.sync(() => this.monotonicTimeNanosUnsafe())

  sleep(duration: Duration.Duration): Effect.Effect<void> {
    const milliseconds = Math.ceil(Duration.toMillis(duration))
    if (milliseconds <= 0) return Effect.yieldNow
    return Effect.flatMap(CurrentRun, (run) =>
      Effect.callback<void>((resume) => {
        const sleeper: Sleeper = { end: this.#now + milliseconds, run, wake: () => resume(Effect.void) }
        this.#sleepers.add(sleeper)
        this.changes++
        return Effect.sync(() => this.#remove(sleeper))
      }))
  }

  #remove(sleeper: Sleeper): void {
    if (this.#sleepers.delete(sleeper)) this.changes++
  }

  /** Whether a fiber of a run sleeps. */
  isSleeping(run: string): boolean {
    for (const sleeper of this.#sleepers) if (sleeper.run === run) return true
    return false
  }

  /** When the next sleep of a fiber ends; `Infinity` if none sleeps. */
  nextEnd(isMeant: (run: string | undefined) => boolean): number {
    let next = Infinity
    for (const { end, run } of this.#sleepers) if (isMeant(run)) next = Math.min(next, end)
    return next
  }

  /** Lets the time be `end`, and wakes the fibers whose sleep has ended, in the order of their ends. */
  skipTo(end: number): void {
    this.#now = Math.max(this.#now, end)
    const due = [...this.#sleepers].filter((sleeper) => sleeper.end <= this.#now)
    for (const sleeper of due.toSorted((one, other) => one.end - other.end)) {
      this.#remove(sleeper)
      sleeper.wake()
    }
  }
}
