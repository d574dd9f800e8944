/** Limits on CPU time, which hold on a busy machine too and distinguish linear time from quadratic time. */
import { assert } from "@effect/vitest"

/**
 * Runs a function, and fails where it takes more CPU time of this thread than the limit. Waiting for a CPU does not
 * count.
 */
export const within = <A>(seconds: number, f: () => A): A => {
  const before = process.threadCpuUsage()
  const value = f()
  const after = process.threadCpuUsage()
  assert.isBelow((after.user + after.system - before.user - before.system) / 1e6, seconds)
  return value
}

/**
 * The limit for inputs of 100,000 characters or more: linear time takes some milliseconds, quadratic time ten seconds.
 */
export const linear = <A>(f: () => A): A => within(2, f)
