/**
 * Proofs of possession of a key (DPoP, RFC 9449), for requests to the token endpoint and to the server.
 */
import { sha256Base64Url } from "@skein/runtime/Digest"
import * as Effect from "effect/Effect"
import * as jose from "jose"
import * as oauth from "oauth4webapi"
import { CredentialUnavailable, type OAuthError } from "./OAuthError.ts"
import { oauthError } from "./errors.ts"

/** The algorithms of proofs, the preferred one first. Each runtime has the first one. */
const algorithms = ["ES256", "Ed25519", "EdDSA", "ES384", "PS256", "RS256"]

const attempt = <A>(message: string, run: () => Promise<A>): Effect.Effect<A, OAuthError> =>
  Effect.tryPromise({ try: run, catch: () => oauthError(new CredentialUnavailable({ message })) })

/** A key pair for DPoP (RFC 9449), as JSON Web Keys. */
export interface DpopKey {
  readonly algorithm: string
  readonly privateJwk: { readonly [name: string]: unknown }
  readonly publicJwk: { readonly [name: string]: unknown }
}

/** Makes a key pair. It is stored with its token, because a refresh token of a public client is bound to it. */
const makeKey = (algorithm: string): Effect.Effect<DpopKey, OAuthError> =>
  attempt(`A key for DPoP proofs (${algorithm}) could not be made by this runtime`, async () => {
    const { privateKey, publicKey } = await jose.generateKeyPair(algorithm, { extractable: true })
    return {
      algorithm,
      privateJwk: { ...await jose.exportJWK(privateKey) },
      publicJwk: { ...await jose.exportJWK(publicKey) }
    }
  })

/** The key of tokens that are bound to one, where both sides support it or `dpop` demands it. */
export const keyFor = (
  dpop: "auto" | "always" | "never",
  supported: ReadonlyArray<string> | undefined,
  isAsked: boolean
): Effect.Effect<DpopKey | undefined, OAuthError> => {
  const algorithm = algorithms.find((one) => supported?.includes(one) === true)
  if (dpop === "always") return makeKey(algorithm ?? "ES256")
  return dpop === "never" || algorithm === undefined || !isAsked ? Effect.succeed(undefined) : makeKey(algorithm)
}

/** A key pair that proofs are made with. */
export interface Prover {
  readonly key: DpopKey
  readonly privateKey: jose.CryptoKey
  /** For the token endpoint: it holds the nonces of the authorization server. */
  readonly handle: oauth.DPoPHandle
  /** The last token that a proof was made for, and its hash (`ath`): tokens change less often than requests. */
  hashed?: { readonly accessToken: string; readonly hash: string }
}

const hashOf = (prover: Prover, accessToken: string): Effect.Effect<string> =>
  prover.hashed?.accessToken === accessToken
    ? Effect.succeed(prover.hashed.hash)
    : Effect.map(sha256Base64Url(accessToken), (hash) => {
      prover.hashed = { accessToken, hash }
      return hash
    })

/** Reads a stored key pair. */
export const makeProver = (key: DpopKey): Effect.Effect<Prover, OAuthError> =>
  attempt("The DPoP key of the stored tokens cannot be read. Sign in again", async () => {
    const privateKey = await jose.importJWK(key.privateJwk as jose.JWK, key.algorithm) as jose.CryptoKey
    const publicKey = await jose.importJWK(key.publicJwk as jose.JWK, key.algorithm, {
      extractable: true
    }) as jose.CryptoKey
    return { key, privateKey, handle: oauth.DPoP({}, { privateKey, publicKey }) }
  })

/** Makes the proof of one request to the server (RFC 9449, 4.2). Each request needs a fresh one. */
export const prove = (
  prover: Prover,
  method: string,
  url: URL,
  accessToken: string,
  nonce: string | undefined,
  now: number
): Effect.Effect<string, OAuthError> =>
  Effect.flatMap(hashOf(prover, accessToken), (ath) =>
    attempt("A DPoP proof could not be made", () => {
      const claims = {
        htm: method,
        htu: `${url.origin}${url.pathname}`,
        ath,
        jti: crypto.randomUUID(),
        iat: Math.floor(now / 1_000)
      }
      return new jose.SignJWT(nonce === undefined ? claims : { ...claims, nonce })
        .setProtectedHeader({
          typ: "dpop+jwt",
          alg: prover.key.algorithm,
          jwk: prover.key.publicJwk as jose.JWK
        })
        .sign(prover.privateKey)
    }))
