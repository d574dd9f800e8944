/**
 * How a step is retried, without a schedule: `StepOptions.retry`, in functions of effects and of promises.
 */
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"

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

/** Retries with their defaults. */
export interface ResolvedRetry<Failure> {
  readonly times: number
  readonly initialDelay: Duration.Duration
  readonly factor: number
  readonly maxDelay: Duration.Duration
  readonly while: (error: Failure) => boolean
}

const always = () => true

const isDuration = (input: Duration.Input): boolean =>
  Option.match(Duration.fromInput(input), {
    onNone: () => false,
    onSome: (duration) => Duration.toMillis(duration) >= 0
  })

/** Applies the defaults. Returns the problem of the first value out of bounds as a text. */
export const resolveRetry = <Failure>(
  { factor = 2, initialDelay = "1 second", maxDelay = "1 hour", times, while: isRetried = always }: Retry<Failure>
): ResolvedRetry<Failure> | string =>
  !(times >= 0 && (Number.isInteger(times) || times === Infinity))
    ? `times is ${String(times)}: it must be a whole number, or Infinity`
    : !(factor > 0 && factor < Infinity)
    ? `factor is ${String(factor)}: it must be finite, and more than 0`
    : !isDuration(initialDelay)
    ? `initialDelay is ${String(initialDelay)}: it must be a duration`
    : !isDuration(maxDelay)
    ? `maxDelay is ${String(maxDelay)}: it must be a duration`
    : {
      times,
      factor,
      initialDelay: Duration.fromInputUnsafe(initialDelay),
      maxDelay: Duration.fromInputUnsafe(maxDelay),
      while: isRetried
    }

/** Milliseconds of the pause after an attempt, of which the first one is 1. */
export const pauseAfter = ({ factor, initialDelay, maxDelay }: ResolvedRetry<never>, attempt: number): number =>
  Math.ceil(Math.min(Duration.toMillis(initialDelay) * factor ** (attempt - 1), Duration.toMillis(maxDelay)))
