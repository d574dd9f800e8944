/** Whole milliseconds of the monotonic clock's nanoseconds. Ages and deadlines are measured on it, as timers are: nobody can set it. */
export const millisOf = (nanos: bigint): number => Number(nanos / 1_000_000n)
