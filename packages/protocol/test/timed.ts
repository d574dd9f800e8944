/** Bounds on what is computed that hold on a busy machine too, and tell linear time from worse. */
import { assert } from "@effect/vitest"

/** Runs it, and fails where this thread computed for more than so many seconds: waiting for a processor does not count. */
export const within = <A>(seconds: number, f: () => A): A => {
  const before = process.threadCpuUsage()
  const value = f()
  const after = process.threadCpuUsage()
  assert.isBelow((after.user + after.system - before.user - before.system) / 1e6, seconds)
  return value
}

/** The same for inputs of 100,000 characters and more: linear time is some milliseconds then, and quadratic time ten seconds. */
export const linear = <A>(f: () => A): A => within(2, f)
