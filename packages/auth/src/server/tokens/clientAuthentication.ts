/**
 * How a verifier authenticates at an authorization server (RFC 6749, 2.3; OpenID Connect Core, 9).
 */
import * as Effect from "effect/Effect"
import { SignJWT } from "jose/jwt/sign"
import { importPKCS8 } from "jose/key/import"
import * as Secret from "../../shared/Secret.ts"
import { basicAuthorization } from "../../shared/web.ts"
import { unavailable } from "./fetchDocument.ts"
import type { VerifierUnavailable } from "./verifiedToken.ts"

/** The client that a verifier is at an authorization server. */
export interface ClientOptions {
  readonly clientId: string
  /** The secret of the client. */
  readonly clientSecret?: Secret.Secret | undefined
  /** How the secret is sent: in the `Authorization` header by default (`client_secret_basic`). */
  readonly authenticationMethod?: "client_secret_basic" | "client_secret_post" | undefined
  /** The key that signs assertions of the client, in place of a secret (`private_key_jwt`). */
  readonly privateKey?: Secret.PrivateKey | undefined
}

const assertionSeconds = 60

const read = (secret: Secret.Secret, name: string): Effect.Effect<string, VerifierUnavailable> =>
  Effect.mapError(Secret.read(secret), () => unavailable(`${name} is not available`))

const assertion = (
  { clientId, privateKey }: ClientOptions,
  audience: string,
  now: number
): Effect.Effect<string, VerifierUnavailable> => {
  const { algorithm, keyId, pem } = privateKey!
  const name = `the private key of the client ${clientId}`
  return Effect.flatMap(read(pem, name), (text) =>
    Effect.tryPromise({
      try: async () => {
        const seconds = Math.floor(now / 1000)
        const key = await importPKCS8(text, algorithm)
        return await new SignJWT({ jti: crypto.randomUUID() })
          .setProtectedHeader({ alg: algorithm, ...(keyId === undefined ? {} : { kid: keyId }) })
          .setIssuer(clientId).setSubject(clientId).setAudience(audience)
          .setIssuedAt(seconds).setExpirationTime(seconds + assertionSeconds)
          .sign(key)
      },
      // The error of the parser may quote the key.
      catch: () => unavailable(`${name} is not a PKCS #8 key for ${algorithm} in the format PEM`)
    }))
}

/** Adds the credentials of a client to a request. */
export const authenticate = (
  options: ClientOptions,
  issuer: string,
  now: number,
  headers: Headers,
  body: URLSearchParams
): Effect.Effect<void, VerifierUnavailable> => {
  const { authenticationMethod, clientId, clientSecret, privateKey } = options
  if (privateKey !== undefined) {
    return Effect.map(assertion(options, issuer, now), (signed) => {
      body.set("client_id", clientId)
      body.set("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer")
      body.set("client_assertion", signed)
    })
  }
  if (clientSecret === undefined) return Effect.sync(() => body.set("client_id", clientId))
  return Effect.map(read(clientSecret, `the secret of the client ${clientId}`), (secret) => {
    if (authenticationMethod === "client_secret_post") {
      body.set("client_id", clientId)
      body.set("client_secret", secret)
    } else {
      headers.set("authorization", basicAuthorization(clientId, secret))
    }
  })
}
