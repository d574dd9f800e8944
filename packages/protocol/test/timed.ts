/** Bounds on time that hold on a busy machine too. */
import { assert } from "@effect/vitest"

// The time that this thread has computed, in milliseconds: waiting for a processor does not count.
const computed = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1000
}

/** Runs it up to five times, until one run computes for less than `milliseconds`; fails where none does. */
export const within = <A>(milliseconds: number, f: () => A): A => {
  let quickest = Infinity
  for (let i = 0;; i++) {
    const start = computed()
    const value = f()
    quickest = Math.min(quickest, computed() - start)
    if (quickest < milliseconds) return value
    if (i === 4) assert.isBelow(quickest, milliseconds)
  }
}
