/**
 * The tokens that were verified, by their hash.
 */
import * as Options from "@skein/runtime/Options"
import { sha256Base64Url } from "@skein/runtime/Digest"
import type * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { sha256Function } from "./sha256.ts"
import { SharedEffects } from "./sharedEffects.ts"
import { maxTokenChars, tooLong } from "./parseToken.ts"
import {
  type CachedTokenVerifier,
  effectOf,
  errorOf,
  type InvalidToken,
  type TokenVerifier,
  type Verification,
  type VerifiedToken,
  type VerifierUnavailable,
  type VerifyContext
} from "./verifiedToken.ts"

/** Options of `TokenVerifier.cached`. */
export interface CacheOptions {
  /**
   * How long a token that was verified is accepted without a verification: 60 seconds by default, and at most until it
   * expires. A token that its issuer revokes is accepted for this long: lower it for issuers that revoke. 0 verifies each
   * token each time.
   */
  readonly verifiedLifetime?: Duration.Input | undefined
}

/** Bounds of the known tokens. At a bound the oldest token is forgotten, and verified again. */
export interface CacheBounds {
  /** Tokens that are known at the same time. */
  readonly maxTokens: number
  /** Characters of all known tokens together, a measure of the memory for their claims. */
  readonly maxTotalChars: number
}

/** The bounds of the caches that an effect makes. Tests lower them. */
export const CacheBounds: Context.Reference<CacheBounds> = Context.Reference("@skein/auth/CacheBounds", {
  defaultValue: () => ({ maxTokens: 10_000, maxTotalChars: 16 * 1024 * 1024 })
})

interface Entry {
  readonly verified: VerifiedToken
  readonly resource: string
  readonly chars: number
  /** When the token must be verified again, in milliseconds since 1970. */
  readonly until: number
}

class TokenCache implements CachedTokenVerifier {
  readonly issuers: ReadonlyArray<string>
  readonly acceptsOpaque: boolean
  readonly #verifier: TokenVerifier
  readonly #clock: Clock.Clock
  readonly #lifetime: number
  readonly #bounds: CacheBounds
  readonly #hash = sha256Function()
  // In the order of their verifications.
  readonly #entries = new Map<string, Entry>()
  #totalChars = 0
  readonly #pending = new SharedEffects<VerifiedToken, InvalidToken | VerifierUnavailable>()

  constructor(verifier: TokenVerifier, clock: Clock.Clock, bounds: CacheBounds, options: CacheOptions) {
    this.issuers = verifier.issuers
    this.acceptsOpaque = verifier.acceptsOpaque
    this.#verifier = verifier
    this.#clock = clock
    this.#bounds = bounds
    this.#lifetime = Options.resolve<CacheOptions>(options, {}, { verifiedLifetime: "60 seconds" }).verifiedLifetime
  }

  known(token: string, context: VerifyContext): VerifiedToken | undefined {
    const hash = this.#hash
    if (hash === undefined || token.length > maxTokenChars) return undefined
    return this.#find(hash(token), context)
  }

  verify(token: string, context: VerifyContext): Verification {
    if (token.length > maxTokenChars) return Effect.fail(tooLong)
    const hash = this.#hash
    if (hash === undefined) {
      return Effect.flatMap(sha256Base64Url(token), (key) => effectOf(this.#verify(key, token, context)))
    }
    return this.#verify(hash(token), token, context)
  }

  #verify(key: string, token: string, context: VerifyContext): Verification {
    const known = this.#find(key, context)
    if (known !== undefined) return known
    const { address, resource } = context
    const shared = `${key} ${resource}`
    const pending = this.#pending.join(shared)
    if (pending !== undefined) return pending
    const verification = this.#verifier.verify(token, { resource, address, now: this.#clock.currentTimeMillisUnsafe() })
    // A failure is not stored: a flood of bad tokens would displace the good ones, and each is cheap to refuse.
    if (errorOf(verification) !== undefined) return verification
    return this.#pending.run(
      shared,
      Effect.map(effectOf(verification), (verified) => {
        this.#store(key, verified, resource, token.length)
        return verified
      })
    )
  }

  #find(key: string, context: VerifyContext): VerifiedToken | undefined {
    const entry = this.#entries.get(key)
    if (entry === undefined || entry.resource !== context.resource) return undefined
    if (entry.until > this.#clock.currentTimeMillisUnsafe()) return entry.verified
    this.#delete(key, entry)
    return undefined
  }

  #store(key: string, verified: VerifiedToken, resource: string, chars: number): void {
    const now = this.#clock.currentTimeMillisUnsafe()
    const until = Math.min(now + this.#lifetime, (verified.expiresAt ?? Infinity) * 1000)
    if (until <= now) return
    const before = this.#entries.get(key)
    if (before !== undefined) this.#delete(key, before)
    this.#entries.set(key, { verified, resource, chars, until })
    this.#totalChars += chars
    const { maxTokens, maxTotalChars } = this.#bounds
    for (const [oldest, entry] of this.#entries) {
      if (this.#entries.size <= maxTokens && this.#totalChars <= maxTotalChars && entry.until > now) return
      this.#delete(oldest, entry)
    }
  }

  #delete(key: string, entry: Entry): void {
    this.#entries.delete(key)
    this.#totalChars -= entry.chars
  }
}

export const cached = (verifier: TokenVerifier, options: CacheOptions): Effect.Effect<CachedTokenVerifier> =>
  Effect.flatMap(
    CacheBounds,
    (bounds) => Effect.clockWith((clock) => Effect.sync(() => new TokenCache(verifier, clock, bounds, options)))
  )
