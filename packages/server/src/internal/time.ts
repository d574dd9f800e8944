/**
 * Times in milliseconds. Ages and deadlines are measured on the monotonic clock, as timers are: nobody can set it.
 */
import type * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"

/** Whole milliseconds of the monotonic clock. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)

/** A duration that was given, or else the fallback. */
export const millis = (input: Duration.Input | undefined, fallback: number): number =>
  input === undefined ? fallback : Duration.toMillis(Duration.fromInputUnsafe(input))
