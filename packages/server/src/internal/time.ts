import type * as Clock from "effect/Clock"

/**
 * Returns the monotonic time in whole milliseconds. Ages and deadlines use it because changes of the system time do not
 * affect it.
 */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
