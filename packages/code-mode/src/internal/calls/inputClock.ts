/**
 * The time of a program, without the time in which its tools wait for a person.
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

export class InputClock {
  /** How many requests to the client wait for an answer, and since when there is one. */
  #waiting = 0
  #since = 0
  #waitedMillis = 0

  /** Stops the clock while an effect waits for the client. */
  readonly pause = <A, E, R>(input: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.flatMap(Clock.Clock, (clock) =>
      Effect.acquireUseRelease(
        Effect.sync(() => {
          if (this.#waiting++ === 0) this.#since = clock.currentTimeMillisUnsafe()
        }),
        () => input,
        () =>
          Effect.sync(() => {
            if (--this.#waiting === 0) this.#waitedMillis += clock.currentTimeMillisUnsafe() - this.#since
          })
      ))

  /** Sleeps for a time of this clock. */
  sleep(time: Duration.Duration): Effect.Effect<void> {
    return Effect.gen({ self: this }, function*() {
      let left = Duration.toMillis(time)
      while (left > 0) {
        const [start, waited] = [yield* Clock.currentTimeMillis, yield* this.#waited]
        yield* Effect.sleep(left)
        left -= (yield* Clock.currentTimeMillis) - start - ((yield* this.#waited) - waited)
      }
    })
  }

  /** The time that was spent waiting until now, in milliseconds. */
  get #waited(): Effect.Effect<number> {
    return Effect.map(
      Clock.currentTimeMillis,
      (now) => this.#waitedMillis + (this.#waiting === 0 ? 0 : now - this.#since)
    )
  }
}
