/**
 * Secrets in options, and how a client authenticates at an authorization server.
 */
import * as Redacted from "effect/Redacted"
import type { Awaitable } from "../base/types.ts"

/**
 * A secret, or a function that returns the current one. The function runs each time the secret is needed, so that a rotated
 * secret is used at once. Its error is never part of another error, because it may quote the secret.
 *
 * @example
 * const clientSecret = () => vault.read("mcp/client-secret")
 */
export type Secret = string | (() => Awaitable<string>)

/** A private key that signs assertions of a client (`private_key_jwt`, OpenID Connect Core 1.0, 9). */
export interface PrivateKey {
  /** The key in the format PKCS #8, as PEM. */
  readonly pem: Secret
  /** Its signature algorithm: `ES256`, `RS256`, `PS256` or `EdDSA`, for example. */
  readonly algorithm: string
  /** The `kid` that the authorization server knows the key by. Left out by default. */
  readonly keyId?: string | undefined
}

/** How a client that was registered by hand authenticates. Without a secret and a key it is a public client. */
export interface ClientAuthentication {
  /** The secret (`client_secret_basic` or `client_secret_post`, as the authorization server supports). */
  readonly clientSecret?: Secret | undefined
  /** The key that signs an assertion for each token request (`private_key_jwt`, RFC 7523, 2.2). */
  readonly privateKey?: PrivateKey | undefined
}

/** A secret that no log prints. */
export const redact = (secret: Secret) =>
  typeof secret === "string" ? Redacted.make(secret) : async () => Redacted.make(await secret())

/** The options of a client with secrets that no log prints. */
export const redactClient = <O extends ClientAuthentication>({ clientSecret, privateKey, ...rest }: O) => ({
  ...rest,
  ...(clientSecret === undefined ? undefined : { clientSecret: redact(clientSecret) }),
  ...(privateKey === undefined ? undefined : { privateKey: { ...privateKey, pem: redact(privateKey.pem) } })
})
