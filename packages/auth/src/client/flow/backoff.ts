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

/** The failures of one server. */
export class TokenBackoff {
  readonly #environment: Environment
  readonly #key: string
  #failures = 0
  #until = -Infinity
  #error: OAuthError | undefined
  /** The failure that was returned instead of a request. */
  #repeated: OAuthError | undefined

  /** `tokensKey` is the key of the tokens. */
  constructor(environment: Environment, tokensKey: string) {
    this.#environment = environment
    this.#key = failureMarkKey(tokensKey)
  }

  /** Whether nothing is to be requested now, as far as this process knows. */
  isActive(time: number): boolean {
    return time < this.#until
  }

  /** Fails with the last failure, of any process, while nothing is to be requested. */
  readonly check: Effect.Effect<void, OAuthError> = Effect.flatMap(now, (time) => {
    if (this.#error !== undefined && this.isActive(time)) {
      this.#repeated = this.#error
      return Effect.fail(this.#error)
    }
    return Effect.flatMap(read(this.#environment.store, FailureMark, this.#key), (mark) => {
      if (mark === undefined) return Effect.void
      const { maxRetryDelay } = this.#environment.settings
      this.#failures = mark.failures
      // The clocks of machines differ: a time that no delay leads to does not count.
      if (mark.until <= time || mark.until - time > Math.max(Backoff.maxRetryAfter, maxRetryDelay)) return Effect.void
      this.#until = mark.until
      this.#error = oauthError(new TokenRequestFailed({ ...mark.reason, retryable: true }))
      return Effect.fail(this.#error)
    })
  })

  /** Whether a failure is an earlier one, which was published then. */
  isRepeated(error: OAuthError): boolean {
    return error === this.#repeated
  }

  /** Counts a failure that the next request would have as well, unless time has passed. */
  readonly failed = (error: OAuthError): Effect.Effect<void> =>
    Effect.flatMap(now, (time) => {
      const { definition, settings, store } = this.#environment
      const { reason } = error
      const isToken = reason._tag === "TokenRequestFailed"
      // A person who signs in again brings another code, and a program would repeat its request.
      const isLasting = isToken && (reason.retryable || definition._tag !== "AuthorizationCode")
      if (!isLasting && reason._tag !== "RegistrationFailed") return Effect.void
      const { maxRetryDelay: maxDelay } = settings
      const requested = isToken ? reason.retryAfter : undefined
      this.#until = time + Backoff.delay({ initialDelay, maxDelay }, ++this.#failures, 0, requested)
      this.#error = error
      // Any other failure may be one of the configuration of this process.
      if (!isToken || !reason.retryable) return Effect.void
      const { error: code, message, retryAfter, status } = reason
      const mark = {
        failures: this.#failures,
        until: this.#until,
        reason: { message, error: code, status, retryAfter }
      }
      return Effect.ignore(write(store, this.#key, mark))
    })

  /** Lets a person who signs in ask the token endpoint at once. */
  readonly reset: Effect.Effect<void> = Effect.suspend(() =>
    Effect.map(Effect.ignore(this.check), () => {
      this.#until = -Infinity
      this.#error = undefined
    })
  )

  /** The token endpoint has answered, or there is no grant any longer. */
  readonly end: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#failures === 0) return Effect.void
    this.#failures = 0
    this.#until = -Infinity
    this.#error = undefined
    return Effect.ignore(remove(this.#environment.store, this.#key))
  })
}
