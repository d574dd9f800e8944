/**
 * The remaining time of a call that takes more than one request.
 */
import type { CallOptions } from "@skein/runtime/RequestContext"
import * as Duration from "effect/Duration"
import type { Timeouts } from "../connection/supervisor.ts"

/** In milliseconds; 0 or less if no time remains. */
export interface RemainingTime {
  readonly timeout: number
  readonly maxTimeout: number
}

/** The remaining time of a call after so many milliseconds. */
export const remainingTime = (
  timeouts: Timeouts,
  options: Pick<CallOptions, "timeout" | "maxTimeout">,
  spent: number
): RemainingTime => ({
  timeout: (options.timeout === undefined ? timeouts.timeout : Duration.toMillis(options.timeout)) - spent,
  maxTimeout: (options.maxTimeout === undefined ? timeouts.maxTimeout : Duration.toMillis(options.maxTimeout)) - spent
})
