/**
 * Logs that the store cannot be reached: once when it begins, and once when it is over.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import type { TaskMetrics } from "../telemetry/taskMetrics.ts"

/** The outages that the checks of a process notice. */
export type StoreOutage = ReturnType<typeof makeStoreOutage>

/** Makes the outages of a process. */
export const makeStoreOutage = (metrics?: TaskMetrics) => {
  let since: number | undefined
  let over = -Infinity
  return {
    /** Milliseconds since the last outage; 0 during one. */
    sinceLast: (): number => since === undefined ? performance.now() - over : 0,
    /** Runs a check; `undefined` if the store cannot be reached. The next check comes anyway. */
    guard: <A>(check: Effect.Effect<A, TaskError>): Effect.Effect<A | undefined> =>
      Effect.matchCauseEffect(check, {
        onSuccess: (value) => {
          if (since === undefined) return Effect.succeed(value)
          const seconds = ((performance.now() - since) / 1000).toFixed(1)
          since = undefined
          over = performance.now()
          return Effect.as(Effect.logInfo(`the task store can be reached again, after ${seconds} s`), value)
        },
        onFailure: (cause) => {
          if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
          if (since !== undefined) return Effect.undefined
          since = performance.now()
          metrics?.outageBegan()
          return Effect.as(
            Effect.logWarning("the task store cannot be reached; tasks wait until it can", cause),
            undefined
          )
        }
      })
  }
}
