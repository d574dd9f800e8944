/**
 * How long the token endpoint of one server is left alone after it failed. There is no timer and no jitter: the next
 * attempt is made by the first request after the delay. All processes that share the store share the delay, because they
 * share the refresh token. Jobs in the lock of the tokens use it.
 */
import * as Backoff from "@skein/runtime/Backoff"
import * as Effect from "effect/Effect"
import { type OAuthError, TokenRequestFailed } from "../protocol/OAuthError.ts"
import type { Environment } from "./environment.ts"
import { oauthError } from "../protocol/errors.ts"
import { FailureMark, failureMarkKey, now, read, remove, write } from "./records.ts"

/** The delay after the first failure, in milliseconds. */
const initialDelay = 1_000

/** The failures of one server. `tokensKey` is the key of its tokens. */
export const makeTokenBackoff = (environment: Environment, tokensKey: string) => {
  const key = failureMarkKey(tokensKey)
  let failures = 0
  let until = -Infinity
  let last: OAuthError | undefined
  /** The failure that was returned instead of a request. */
  let repeated: OAuthError | undefined

  /** Whether nothing is to be requested now, as far as this process knows. */
  const isActive = (time: number): boolean => time < until

  /** Fails with the last failure, of any process, while nothing is to be requested. */
  const check: Effect.Effect<void, OAuthError> = Effect.flatMap(now, (time) => {
    if (last !== undefined && isActive(time)) {
      repeated = last
      return Effect.fail(last)
    }
    return Effect.flatMap(read(environment.store, FailureMark, key), (mark) => {
      if (mark === undefined) return Effect.void
      const { maxRetryDelay } = environment.settings
      failures = mark.failures
      // The clocks of machines differ: a time that no delay leads to does not count.
      if (mark.until <= time || mark.until - time > Math.max(Backoff.maxRetryAfter, maxRetryDelay)) return Effect.void
      until = mark.until
      last = oauthError(new TokenRequestFailed({ ...mark.reason, retryable: true }))
      return Effect.fail(last)
    })
  })

  /** Whether a failure is an earlier one, which was published then. */
  const isRepeated = (error: OAuthError): boolean => error === repeated

  /** Counts a failure that the next request would have as well, unless time has passed. */
  const failed = (error: OAuthError): Effect.Effect<void> =>
    Effect.flatMap(now, (time) => {
      const { definition, settings, store } = environment
      const { reason } = error
      const isToken = reason._tag === "TokenRequestFailed"
      // A person who signs in again brings another code, and a program would repeat its request.
      const isLasting = isToken && (reason.retryable || definition._tag !== "AuthorizationCode")
      if (!isLasting && reason._tag !== "RegistrationFailed") return Effect.void
      const { maxRetryDelay: maxDelay } = settings
      const requested = isToken ? reason.retryAfter : undefined
      until = time + Backoff.delay({ initialDelay, maxDelay }, ++failures, 0, requested)
      last = error
      // Any other failure may be one of the configuration of this process.
      if (!isToken || !reason.retryable) return Effect.void
      const { error: code, message, retryAfter, status } = reason
      const mark = {
        failures,
        until,
        reason: { message, error: code, status, retryAfter }
      }
      return Effect.ignore(write(store, key, mark))
    })

  /** Lets a person who signs in ask the token endpoint at once. */
  const reset: Effect.Effect<void> = Effect.suspend(() =>
    Effect.map(Effect.ignore(check), () => {
      until = -Infinity
      last = undefined
    })
  )

  /** The token endpoint has answered, or there is no grant any longer. */
  const end: Effect.Effect<void> = Effect.suspend(() => {
    if (failures === 0) return Effect.void
    failures = 0
    until = -Infinity
    last = undefined
    return Effect.ignore(remove(environment.store, key))
  })

  return { isActive, check, isRepeated, failed, reset, end }
}
