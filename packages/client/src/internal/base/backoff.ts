/**
 * The delays before attempts that follow on a failure: to reconnect, to resume a stream, to subscribe, and to send a
 * message again.
 */
import * as Backoff from "@skein/runtime/Backoff"
import { TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"

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

/**
 * The delay before an attempt that follows on a failure, in milliseconds. It is not shorter than the delay that the
 * server requested.
 */
export const delayAfter = (failure: unknown, backoff: Backoff.Backoff, attempt: number): Effect.Effect<number> =>
  Effect.map(Random.next, (random) => Backoff.delay(backoff, attempt, random, retryAfter(failure)))
