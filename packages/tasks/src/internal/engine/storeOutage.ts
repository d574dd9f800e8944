/**
 * Logs that the store cannot be reached: once when it begins, and once when it is over.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import type { TaskMetrics } from "../telemetry/taskMetrics.ts"

/** The outages that the checks of a process notice. */
export class StoreOutage {
  readonly #metrics: TaskMetrics | undefined
  #since: number | undefined = undefined
  #over = -Infinity

  constructor(metrics?: TaskMetrics) {
    this.#metrics = metrics
  }

  /** Milliseconds since the last outage; 0 during one. */
  get sinceLast(): number {
    return this.#since === undefined ? performance.now() - this.#over : 0
  }

  /** Runs a check; `undefined` if the store cannot be reached. The next check comes anyway. */
  guard<A>(check: Effect.Effect<A, TaskError>): Effect.Effect<A | undefined> {
    return Effect.matchCauseEffect(check, {
      onSuccess: (value) => {
        if (this.#since === undefined) return Effect.succeed(value)
        const seconds = ((performance.now() - this.#since) / 1000).toFixed(1)
        this.#since = undefined
        this.#over = performance.now()
        return Effect.as(Effect.logInfo(`the task store can be reached again, after ${seconds} s`), value)
      },
      onFailure: (cause) => {
        if (Cause.hasInterruptsOnly(cause)) return Effect.interrupt
        if (this.#since !== undefined) return Effect.undefined
        this.#since = performance.now()
        this.#metrics?.outageBegan()
        return Effect.as(
          Effect.logWarning("the task store cannot be reached; tasks wait until it can", cause),
          undefined
        )
      }
    })
  }
}
