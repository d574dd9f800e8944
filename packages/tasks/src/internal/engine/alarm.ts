/**
 * A sleep that ends early when something is due before its end.
 */
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"

/** The sleep of a loop between two checks. `now` is the current time, in milliseconds of Unix time. */
export class Alarm extends Data.Class<{ readonly now: Effect.Effect<number> }> {
  #wakeAt = Infinity
  readonly #latch = Latch.makeUnsafe()

  /** Sleeps for some milliseconds, or until something is due earlier. */
  sleep(milliseconds: number): Effect.Effect<void> {
    return Effect.flatMap(this.now, (now) => {
      this.#wakeAt = now + milliseconds
      const awake = Effect.sync(() => {
        // A call of `wakeBefore` while nothing sleeps ends the next sleep.
        this.#wakeAt = Infinity
        this.#latch.closeUnsafe()
      })
      return Effect.ensuring(Effect.raceFirst(Effect.sleep(milliseconds), this.#latch.await), awake)
    })
  }

  /** Ends the sleep if it would last beyond this time, in milliseconds of Unix time. */
  wakeBefore(time: number): void {
    if (time < this.#wakeAt) this.#latch.openUnsafe()
  }
}
