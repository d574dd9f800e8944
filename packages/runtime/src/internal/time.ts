/**
 * Ages and deadlines are measured on the monotonic clock, as timers are: nobody can set it.
 */

/** Whole milliseconds of the monotonic clock's nanoseconds. */
export const millisOf = (nanos: bigint): number => Number(nanos / 1_000_000n)
