/**
 * Times in milliseconds. Ages and deadlines are measured on the monotonic clock, as timers are: nobody can set it.
 */
import * as Duration from "effect/Duration"

/** Whole milliseconds of the monotonic clock's nanoseconds. */
export const millisOf = (nanos: bigint): number => Number(nanos / 1_000_000n)

/** A duration that was given, or else the fallback. */
export const millis = (input: Duration.Input | undefined, fallback: number): number =>
  input === undefined ? fallback : Duration.toMillis(Duration.fromInputUnsafe(input))
