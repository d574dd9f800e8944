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
const fixedBounds = {
  /** Tokens that are known at the same time. */
  maxTokens: 10_000,
  /** Characters of all known tokens together, a measure of the memory for their claims. */
  maxTotalChars: 16 * 1024 * 1024
}

export type CacheBounds = Readonly<typeof fixedBounds>

/** The bounds of the caches that an effect makes. Tests lower them. */
export const CacheBounds: Context.Reference<CacheBounds> = Context.Reference("@skein/auth/CacheBounds", {
  defaultValue: () => fixedBounds
})

interface Entry {
  readonly verified: VerifiedToken
  readonly resource: string
  readonly chars: number
  /** When the token must be verified again, in milliseconds since 1970. */
  readonly until: number
}

const makeCache = (
  verifier: TokenVerifier,
  clock: Clock.Clock,
  bounds: CacheBounds,
  options: CacheOptions
): CachedTokenVerifier => {
  const { acceptsOpaque, issuers } = verifier
  const lifetime = Options.resolve<CacheOptions>(options, {}, { verifiedLifetime: "60 seconds" }).verifiedLifetime
  const hash = sha256Function()
  // In the order of their verifications.
  const entries = new Map<string, Entry>()
  let totalChars = 0
  const pending = new SharedEffects<VerifiedToken, InvalidToken | VerifierUnavailable>()

  const known = (token: string, context: VerifyContext): VerifiedToken | undefined => {
    if (hash === undefined || token.length > maxTokenChars) return undefined
    return find(hash(token), context)
  }

  const verify = (token: string, context: VerifyContext): Verification => {
    if (token.length > maxTokenChars) return Effect.fail(tooLong)
    return hash === undefined
      ? Effect.flatMap(sha256Base64Url(token), (key) => effectOf(verifyHashed(key, token, context)))
      : verifyHashed(hash(token), token, context)
  }

  const verifyHashed = (key: string, token: string, context: VerifyContext): Verification => {
    const known = find(key, context)
    if (known !== undefined) return known
    const { address, resource } = context
    const shared = `${key} ${resource}`
    const joined = pending.join(shared)
    if (joined !== undefined) return joined
    const verification = verifier.verify(token, { resource, address, now: clock.currentTimeMillisUnsafe() })
    // A failure is not stored: a flood of bad tokens would displace the good ones, and each is cheap to refuse.
    if (errorOf(verification) !== undefined) return verification
    return pending.run(
      shared,
      Effect.map(effectOf(verification), (verified) => {
        store(key, verified, resource, token.length)
        return verified
      })
    )
  }

  const find = (key: string, context: VerifyContext): VerifiedToken | undefined => {
    const entry = entries.get(key)
    if (entry === undefined || entry.resource !== context.resource) return undefined
    if (entry.until > clock.currentTimeMillisUnsafe()) return entry.verified
    remove(key, entry)
    return undefined
  }

  const store = (key: string, verified: VerifiedToken, resource: string, chars: number): void => {
    const now = clock.currentTimeMillisUnsafe()
    const until = Math.min(now + lifetime, (verified.expiresAt ?? Infinity) * 1000)
    if (until <= now) return
    const before = entries.get(key)
    if (before !== undefined) remove(key, before)
    entries.set(key, { verified, resource, chars, until })
    totalChars += chars
    const { maxTokens, maxTotalChars } = bounds
    for (const [oldest, entry] of entries) {
      if (entries.size <= maxTokens && totalChars <= maxTotalChars && entry.until > now) return
      remove(oldest, entry)
    }
  }

  const remove = (key: string, entry: Entry): void => {
    entries.delete(key)
    totalChars -= entry.chars
  }

  return { issuers, acceptsOpaque, known, verify }
}

export const cached = (verifier: TokenVerifier, options: CacheOptions): Effect.Effect<CachedTokenVerifier> =>
  Effect.flatMap(
    CacheBounds,
    (bounds) => Effect.clockWith((clock) => Effect.sync(() => makeCache(verifier, clock, bounds, options)))
  )
