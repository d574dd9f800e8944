/**
 * What a call has left of its time, where it takes more than one request.
 */
import type { CallOptions } from "@skein/runtime/RequestContext"
import * as Duration from "effect/Duration"
import type { Timeouts } from "../connection/supervisor.ts"

/** In milliseconds; not above 0 where nothing is left. */
export interface RemainingTime {
  readonly timeout: number
  readonly maxTimeout: number
}

/** The time of a call after so many milliseconds. */
export const remainingTime = (
  timeouts: Timeouts,
  options: Pick<CallOptions, "timeout" | "maxTimeout">,
  spent: number
): RemainingTime => ({
  timeout: (options.timeout === undefined ? timeouts.timeout : Duration.toMillis(options.timeout)) - spent,
  maxTimeout: (options.maxTimeout === undefined ? timeouts.maxTimeout : Duration.toMillis(options.maxTimeout)) - spent
})
