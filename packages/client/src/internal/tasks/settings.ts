/**
 * How a client goes about tasks, with the defaults filled in.
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

/** Fills the defaults in. */
export const resolve = (settings: Options): Resolved => ({
  pollInterval: millis(settings.pollInterval, 1_000),
  minPollInterval: millis(settings.minPollInterval, 100),
  maxPollInterval: millis(settings.maxPollInterval, 300_000),
  maxFailures: settings.maxFailures ?? 10,
  maxTaskInputRequests: settings.maxTaskInputRequests ?? 1_000,
  maxSubscriptions: settings.maxSubscriptions ?? 100,
  cancelTimeout: millis(settings.cancelTimeout, 5_000)
})

/** How long to wait between two looks at a task, given what the server suggests. */
export const intervalOf = (
  { maxPollInterval, minPollInterval, pollInterval }: Resolved,
  suggested: number | undefined
): number => Math.min(Math.max(suggested ?? pollInterval, minPollInterval), Math.max(minPollInterval, maxPollInterval))

// A task of which changes are told is looked at so many times less often.
const backstopFactor = 10

/** The same, where the server tells of changes. */
export const backstopOf = (settings: Resolved, interval: number): number =>
  Math.max(interval, Math.min(interval * backstopFactor, settings.maxPollInterval))

// How long is waited for a look after those before have failed, at most.
const maxDelay = 30_000

/** The same, after looks have failed. */
export const delayOf = (interval: number, failures: number): number =>
  Math.max(interval, Math.min(interval * 2 ** (failures - 1), maxDelay))
