/**
 * The retries of a step, and the pauses between its attempts.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import type { TaskError } from "../../TaskError.ts"
import { resolveRetry, type Retry } from "../base/retry.ts"
import { invalidOption } from "../store/database.ts"
import { maxMemoryPauseMs } from "./engineContext.ts"
import type { Run } from "./run.ts"
import { hasFired, sleepUntil } from "./sleep.ts"

/** The decoded end of an attempt; a defect dies instead. */
export type AttemptResult<A, E> =
  | { readonly _tag: "Value"; readonly value: A }
  /** `at`: in milliseconds of Unix time. `isFinal`: it is not retried. */
  | { readonly _tag: "Failure"; readonly error: E; readonly at: number; readonly isFinal: boolean }

/** The retries of a step. */
interface Retries<E> {
  /** `undefined`: there are none. */
  readonly schedule: Schedule.Schedule<unknown, E> | undefined
  readonly isRetried: (error: E) => boolean
}

const always = () => true

/** The retries that an option describes. Fails with `InvalidOption`. */
export const retriesOf = <E>(
  step: string,
  retry: Schedule.Schedule<unknown, E> | Retry<E> | undefined
): Result.Result<Retries<E>, TaskError> => {
  if (retry === undefined) return Result.succeed({ schedule: undefined, isRetried: always })
  if (Schedule.isSchedule(retry)) return Result.succeed({ schedule: retry, isRetried: always })
  const resolved = resolveRetry(retry)
  if (typeof resolved === "string") return Result.fail(invalidOption(`retry of step "${step}": ${resolved}`))
  const { factor, initialDelay, maxDelay, times, while: isRetried } = resolved
  const schedule = Schedule.exponential(initialDelay, factor).pipe(
    Schedule.modifyDelay(({ duration }) => Effect.succeed(Duration.min(duration, maxDelay))),
    Schedule.upTo({ times })
  )
  return Result.succeed({ schedule, isRetried })
}

/**
 * Retries by a schedule. The schedule receives the recorded time of each failure, so that it continues where it was
 * after a restart.
 */
export const withRetries = <A, E, R>(
  run: Run,
  name: string,
  schedule: Schedule.Schedule<unknown, E>,
  attempt: (number: number) => Effect.Effect<AttemptResult<A, E>, never, R>
): Effect.Effect<A, E, R> =>
  Effect.flatMap(Schedule.toStep(schedule), (next) => {
    const from = (number: number): Effect.Effect<A, E, R> =>
      Effect.flatMap(attempt(number), (result) => {
        if (result._tag === "Value") return Effect.succeed(result.value)
        if (result.isFinal) return Effect.fail(result.error)
        return Effect.matchCauseEffect(next(result.at, result.error), {
          onFailure: () => Effect.fail(result.error),
          onSuccess: ([, pause]) => {
            const at = result.at + Math.ceil(Duration.toMillis(pause))
            return Effect.andThen(pauseUntil(run, `retry/${name}/${number}/${at}`, at), from(number + 1))
          }
        })
      })
    return from(1)
  })

const pauseUntil = (run: Run, name: string, at: number): Effect.Effect<void> =>
  Effect.flatMap(run.now, (now) => {
    const remaining = at - now
    if (hasFired(run, name)) return sleepUntil(run, name, 0)
    if (remaining <= 0) return Effect.void
    return remaining <= maxMemoryPauseMs || run.undoReason !== undefined
      ? run.preventSuspension(Effect.sleep(remaining))
      : sleepUntil(run, name, at)
  })
