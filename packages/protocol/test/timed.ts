/** What tells linear time from worse, on a busy machine too. */
import { assert } from "@effect/vitest"

/**
 * Runs it, and fails where this thread computed for more than two seconds: waiting for a processor does not count. Give it
 * inputs of 100,000 characters and more: linear time is then some milliseconds, and quadratic time more than ten seconds.
 */
export const linear = <A>(f: () => A): A => {
  const before = process.threadCpuUsage()
  const value = f()
  const after = process.threadCpuUsage()
  assert.isBelow((after.user + after.system - before.user - before.system) / 1e6, 2)
  return value
}
