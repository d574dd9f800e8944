/**
 * The clock of a client's timeouts. It stands still while credentials are being obtained: a person may need minutes to
 * sign in, and the calls that wait for that must not time out.
 */
import type * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"

// How long a timer sleeps at least while the clock stands still, in milliseconds.
const minSleepWhilePaused = 100

/** Milliseconds of the monotonic clock. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)

/** The clock of one client, which its connections stop. */
export class CallClock {
  // How many wait for credentials, since when the first of them does, and the time of all earlier waits.
  #waits = 0
  #since = 0
  #stopped = 0

  /** A time of the monotonic clock without the time for which this clock has stood still. */
  at(now: number): number {
    return (this.#waits === 0 ? now : this.#since) - this.#stopped
  }

  /** Stops the clock while an effect runs. */
  stoppedDuring<A, E>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return Effect.clockWith((clock) =>
      Effect.uninterruptibleMask((restore) => {
        if (this.#waits++ === 0) this.#since = monotonicMillis(clock)
        return Effect.onExitPrimitive(restore(effect), () => {
          if (--this.#waits === 0) this.#stopped += monotonicMillis(clock) - this.#since
          return undefined
        })
      })
    )
  }

  /** Waits until so many milliseconds have passed on this clock. */
  sleep(millis: number): Effect.Effect<void> {
    if (!Number.isFinite(millis)) return Effect.never
    return Effect.clockWith((clock) => {
      let now = this.at(monotonicMillis(clock))
      const until = now + millis
      const wait = (least: number): Effect.Effect<void> =>
        Effect.flatMap(Effect.sleep(Math.max(until - now, least)), () => {
          const before = now
          now = this.at(monotonicMillis(clock))
          return now >= until ? Effect.void : wait(now === before ? minSleepWhilePaused : 0)
        })
      return wait(0)
    })
  }

  /** As `Effect.timeoutOption`, with the time of this clock. */
  timeoutOption<A, E, R>(
    effect: Effect.Effect<A, E, R>,
    duration: Duration.Input
  ): Effect.Effect<Option.Option<A>, E, R> {
    return Effect.raceFirst(Effect.asSome(effect), Effect.as(this.sleep(Duration.toMillis(duration)), Option.none<A>()))
  }

  /** As `Effect.timeoutOrElse`, with the time of this clock. */
  timeoutOrElse<A, E, R, B, E2>(
    effect: Effect.Effect<A, E, R>,
    duration: Duration.Input,
    orElse: () => Effect.Effect<B, E2>
  ): Effect.Effect<A | B, E | E2, R> {
    return Effect.flatMap(
      this.timeoutOption(effect, duration),
      (option): Effect.Effect<A | B, E2> => Option.isNone(option) ? orElse() : Effect.succeed(option.value)
    )
  }
}

/** The clock that a connection stops: the one of its client, or of the pool that opens the client. */
export const CurrentCallClock: Context.Service<CallClock, CallClock> = Context.Service<CallClock>(
  "@skein/client/CallClock"
)
