/**
 * The nonces that a resource asks for in DPoP proofs (RFC 9449, 9): a proof with one was not made long before its use.
 */
import type * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { SignJWT } from "jose/jwt/sign"
import { jwtVerify } from "jose/jwt/verify"

/** How nonces are made. */
export interface NonceOptions {
  /**
   * The key of the nonces, of at least 32 bytes of UTF-8. Instances that serve one resource must share it. By default
   * each process has a random one.
   */
  readonly secret?: Redacted.Redacted | undefined
}

/** How long a nonce is accepted, in milliseconds. Clients get a new one after half of this time. */
const nonceLifetime = 300_000

const typ = "dpop-nonce"
const minSecretBytes = 32

const keyOf = (secret: Redacted.Redacted | undefined): Uint8Array => {
  if (secret === undefined) return crypto.getRandomValues(new Uint8Array(minSecretBytes))
  const key = new TextEncoder().encode(Redacted.value(secret))
  if (key.length < minSecretBytes) {
    throw new Error(`the secret of DPoP nonces has ${key.length} bytes, and needs at least ${minSecretBytes}`)
  }
  return key
}

/** Makes and verifies nonces. They are signed, so that none is stored, and any instance with the key verifies them. */
export const makeNonces = (clock: Clock.Clock, options: NonceOptions) => {
  const key = keyOf(options.secret)
  let latest: { readonly nonce: string; readonly renewAt: number } | undefined

  /** The nonce that clients should use now. */
  const current: Effect.Effect<string> = Effect.suspend(() => {
    const now = clock.currentTimeMillisUnsafe()
    if (latest !== undefined && now < latest.renewAt) return Effect.succeed(latest.nonce)
    const expiresAt = Math.ceil((now + nonceLifetime) / 1000)
    const signed = new SignJWT().setProtectedHeader({ alg: "HS256", typ }).setExpirationTime(expiresAt)
    return Effect.map(Effect.promise(() => signed.sign(key)), (nonce) => {
      latest = { nonce, renewAt: now + nonceLifetime / 2 }
      return nonce
    })
  })

  /** Whether a nonce is one of these, and not too old. */
  const isValid = (nonce: unknown): Effect.Effect<boolean> => {
    if (typeof nonce !== "string" || nonce.length > 512) return Effect.succeed(false)
    const currentDate = new Date(clock.currentTimeMillisUnsafe())
    return Effect.promise(() =>
      jwtVerify(nonce, key, { algorithms: ["HS256"], typ, requiredClaims: ["exp"], currentDate })
        .then(() => true, () => false)
    )
  }

  return { current, isValid }
}
