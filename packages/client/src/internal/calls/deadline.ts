/**
 * What a call has left of its time, where it takes more than one request.
 */
import type { CallOptions } from "@skein/runtime/RequestContext"
import * as Duration from "effect/Duration"
import type { Patience } from "../connection/supervisor.ts"

/** In milliseconds; not above 0 where nothing is left. */
export interface CallTime {
  readonly timeout: number
  readonly maxTimeout: number
}

/** The time of a call after so many milliseconds. */
export const timeLeft = (
  patience: Patience,
  options: Pick<CallOptions, "timeout" | "maxTimeout">,
  spent: number
): CallTime => ({
  timeout: (options.timeout === undefined ? patience.timeout : Duration.toMillis(options.timeout)) - spent,
  maxTimeout: (options.maxTimeout === undefined ? patience.maxTimeout : Duration.toMillis(options.maxTimeout)) - spent
})
