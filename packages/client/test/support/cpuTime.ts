/** The CPU time of tests. It holds on a busy machine too, because a wait for a CPU does not count. */
import * as Effect from "effect/Effect"

/** Returns the CPU time that this thread has used, in milliseconds. */
export const cpuTime = (): number => {
  const { system, user } = process.threadCpuUsage()
  return (system + user) / 1_000
}

/** Runs an effect and returns its value with the CPU time of this thread, in milliseconds. */
export const withCpuTime = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<readonly [A, number], E, R> =>
  Effect.suspend(() => {
    const before = cpuTime()
    return Effect.map(effect, (value) => [value, cpuTime() - before] as const)
  })
