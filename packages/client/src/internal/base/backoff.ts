/**
 * The delays between attempts: to reconnect, to resume a stream, to subscribe, and to send a message again.
 */
import { TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

/** How the delays grow. Times in milliseconds. */
export interface Backoff {
  readonly initialDelay: number
  readonly factor: number
  readonly maxDelay: number
  /** Which part of each delay is random: all of it, the second half, or nothing. */
  readonly jitter: "full" | "half" | "none"
  /** The longest delay that the server may request. */
  readonly maxRetryAfter: number
}

/**
 * The delay before an attempt, in milliseconds. Attempts count from 1. `random` is at least 0 and below 1. `retryAfter`
 * is the delay that the server requested, in milliseconds.
 */
export const delay = (backoff: Backoff, attempt: number, random: number, retryAfter = 0): number => {
  const most = Math.min(backoff.maxDelay, backoff.initialDelay * backoff.factor ** (attempt - 1))
  const wait = backoff.jitter === "none" ? most : backoff.jitter === "full" ? most * random : most * (1 + random) / 2
  return Math.max(wait, Math.min(retryAfter, backoff.maxRetryAfter))
}

/** The delay that the server requested with a failure, in milliseconds; undefined if it requested none. */
export const retryAfter = (failure: unknown): number | undefined => {
  let at = failure
  // The depth is bounded because an error may be its own cause.
  for (let depth = 0; depth < 4; depth++) {
    if (at instanceof TransportError && at.retryAfter !== undefined) return at.retryAfter
    if (typeof at !== "object" || at === null || !("cause" in at)) return undefined
    at = at.cause
  }
  return undefined
}

/** The delay before an attempt that follows on a failure, in milliseconds. */
export const delayAfter = (failure: unknown, backoff: Backoff, attempt: number): Effect.Effect<number> =>
  Effect.map(Random.next, (random) => delay(backoff, attempt, random, retryAfter(failure)))
