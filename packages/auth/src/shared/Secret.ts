/**
 * The secrets in options of this package: of clients that sign in (`Grant`), and of servers that are clients of an
 * authorization server (`TokenVerifier`).
 *
 * A secret is a `Redacted`, which no log prints, or an effect or an async function that returns one. It runs each time
 * the secret is needed, so that a rotated secret is used at once. A `Config` is such an effect. Its failure is not the
 * cause of an error, because it may quote the secret.
 *
 * @example
 * const fixed = Redacted.make(session.clientSecret)
 * const rotated = Config.Redacted("MCP_CLIENT_SECRET")
 */
import * as Awaitable from "@skein/runtime/Awaitable"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

/** A secret, or a function that returns the current one, or an effect that does, and needs the services `R`. */
export type Secret<R = never> =
  | Redacted.Redacted
  | Effect.Effect<Redacted.Redacted, unknown, R>
  | (() => Redacted.Redacted | PromiseLike<Redacted.Redacted>)

/** A private key that signs client assertions (`private_key_jwt`, OpenID Connect Core 1.0, 9). */
export interface PrivateKey<R = never> {
  /** The key in the format PKCS #8, as PEM. */
  readonly pem: Secret<R>
  /** Its signature algorithm: `ES256`, `RS256`, `PS256` or `EdDSA`, for example. */
  readonly algorithm: string
  /** The `kid` that the authorization server knows the key by. Left out by default. */
  readonly keyId?: string | undefined
}

/**
 * Returns the current value of a secret. The failure of an effect or a function may quote it: do not make it a cause.
 *
 * @example
 * const value = yield* Secret.read(Config.Redacted("MCP_CLIENT_SECRET"))
 */
export const read = <R>(secret: Secret<R>): Effect.Effect<string, unknown, R> => {
  if (Redacted.isRedacted(secret)) return Effect.succeed(Redacted.value(secret))
  // An error that the function throws must not be a defect, which is logged with all its text.
  const current = Effect.isEffect(secret) ? secret : Awaitable.call(async () => secret())
  return Effect.map(current, Redacted.value)
}
