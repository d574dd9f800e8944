/**
 * The secrets in options of this package: of clients that sign in (`Grant`), and of servers that are clients of an
 * authorization server (`TokenVerifier`).
 *
 * A secret is a `Redacted`, which no log prints, or an effect that returns one. The effect runs each time the secret is
 * needed, so that a rotated secret is used at once. A `Config` is such an effect. Its failure is not the cause of an
 * error, because it may quote the secret.
 *
 * @example
 * const fixed = Redacted.make(session.clientSecret)
 * const rotated = Config.Redacted("MCP_CLIENT_SECRET")
 */
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"

/** A secret, or an effect that returns the current one, and needs the services `R`. */
export type Secret<R = never> = Redacted.Redacted | Effect.Effect<Redacted.Redacted, unknown, R>

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
 * Returns the current value of a secret. The failure of an effect may quote it: do not make it a cause.
 *
 * @example
 * const value = yield* Secret.read(Config.Redacted("MCP_CLIENT_SECRET"))
 */
export const read = <R>(secret: Secret<R>): Effect.Effect<string, unknown, R> =>
  Redacted.isRedacted(secret) ? Effect.succeed(Redacted.value(secret)) : Effect.map(secret, Redacted.value)
