/**
 * How a step is retried, without a schedule: `StepOptions.retry`, in functions of effects and of promises.
 */
import type * as Duration from "effect/Duration"

/**
 * Retries with growing pauses. Those of more than 5 seconds are durable, and the number of attempts survives a restart. A
 * number out of bounds is a defect of the step, `InvalidOption`.
 *
 * The pauses are 1, 2, 4, … seconds by default, and bounded by `maxDelay`. For other ones, give an Effect step a schedule.
 *
 * @example
 * const retry: Retry<NoFlour | Refused> = { times: 5, while: (error) => error._tag === "NoFlour" }
 */
export interface Retry<Failure = unknown> {
  /** The number of retries: a whole number, or `Infinity`. */
  readonly times: number
  /** The pause before the first retry: 1 second by default. Raise it for services that limit calls. */
  readonly initialDelay?: Duration.Input | undefined
  /** The factor from one pause to the next: 2 by default. */
  readonly factor?: number | undefined
  /** The longest pause: 1 hour by default. Lower it where people wait for the task. */
  readonly maxDelay?: Duration.Input | undefined
  /**
   * Whether a failure is retried. Default: each one is. Otherwise the step fails at once. The decision is recorded with the
   * failure: later runs do not ask again.
   *
   * @example
   * const retry: Retry = { times: 3, while: (error) => error instanceof RateLimited }
   */
  readonly while?: ((error: Failure) => boolean) | undefined
}
