/**
 * How a client follows tasks, with the defaults.
 */
import * as Duration from "effect/Duration"
import type { Options } from "../../RemoteTask.ts"

/** Times in milliseconds. */
export interface Resolved {
  readonly pollInterval: number
  readonly minPollInterval: number
  readonly maxPollInterval: number
  readonly maxFailures: number
  readonly maxTaskInputRequests: number
  readonly maxSubscriptions: number
  readonly cancelTimeout: number
}

const millis = (given: Duration.Input | undefined, byDefault: number): number =>
  given === undefined ? byDefault : Duration.toMillis(given)

/** Applies the defaults. */
export const resolve = (settings: Options): Resolved => ({
  pollInterval: millis(settings.pollInterval, 1_000),
  minPollInterval: millis(settings.minPollInterval, 100),
  maxPollInterval: millis(settings.maxPollInterval, 300_000),
  maxFailures: settings.maxFailures ?? 10,
  maxTaskInputRequests: settings.maxTaskInputRequests ?? 1_000,
  maxSubscriptions: settings.maxSubscriptions ?? 100,
  cancelTimeout: millis(settings.cancelTimeout, 5_000)
})

/** The poll interval of a task, given the suggestion of the server. */
export const intervalOf = (
  { maxPollInterval, minPollInterval, pollInterval }: Resolved,
  suggested: number | undefined
): number => Math.min(Math.max(suggested ?? pollInterval, minPollInterval), Math.max(minPollInterval, maxPollInterval))

// A task whose changes are sent as notifications is polled so many times less often.
const backstopFactor = 10

/** The poll interval of a task whose changes are sent as notifications. */
export const backstopOf = (settings: Resolved, interval: number): number =>
  Math.max(interval, Math.min(interval * backstopFactor, settings.maxPollInterval))

// The longest delay after failed polls, in milliseconds.
const maxDelay = 30_000

/** The delay after failed polls. */
export const delayOf = (interval: number, failures: number): number =>
  Math.max(interval, Math.min(interval * 2 ** (failures - 1), maxDelay))
