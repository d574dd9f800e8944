import type * as Clock from "effect/Clock"

/** Now, in whole milliseconds of the clock that nobody can set: ages and deadlines are measured on it, as timers are. */
export const monotonicMillis = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
