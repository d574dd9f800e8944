/**
 * Assertions about the sender of a request: JWTs that a proxy writes into a header.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { CryptoKey } from "jose"
import { importSPKI } from "jose/key/import"
import { Failures } from "@skein/server/AuthenticationFailures"
import { asymmetric, checkAlgorithms } from "./tokens/algorithms.ts"
import { isFor, otherAudience } from "./tokens/audience.ts"
import { checkAddress, type FetchOptions, fetchText, unavailable } from "./tokens/fetchDocument.ts"
import { type JwtRules, keysOf, verifierOf } from "./tokens/jwt.ts"
import type { KeyOptions } from "./tokens/keySet.ts"
import { invalid, textsOf } from "./tokens/parseToken.ts"
import { SharedEffects } from "./tokens/sharedEffects.ts"
import type { Claims, InvalidToken, TokenVerifier, VerifierUnavailable } from "./tokens/verifiedToken.ts"

/** Options of `RequestVerifier.signedHeader`, without those of the principal. */
export interface AssertionOptions extends KeyOptions {
  /** The name of the header. */
  readonly header: string
  /** The proxy, as in `iss` of its assertions. It is compared as text. */
  readonly issuer: string
  /** The accepted audiences: how the proxy names this application. At least one. */
  readonly audiences: ReadonlyArray<string>
  /** The address of the public keys of the proxy: `jwks_uri` of the issuer's metadata by default. */
  readonly jwksUri?: string | undefined
  /** The secret that this server shares with the proxy, of at least 32 bytes of UTF-8, in place of public keys. */
  readonly secret?: Redacted.Redacted | undefined
  /**
   * The accepted algorithms: all asymmetric ones by default; HS256, HS384 and HS512 with `secret`. A list cannot have
   * both kinds.
   */
  readonly algorithms?: ReadonlyArray<string> | undefined
  /**
   * How much the clock of the proxy may differ, for `exp` and `nbf`: 5 seconds by default. Raise it for a clock that is
   * not synchronized.
   */
  readonly clockTolerance?: Duration.Input | undefined
}

/** Options of `RequestVerifier.awsAlb`, without those of the principal. */
export interface AlbOptions extends FetchOptions {
  /** The region of the load balancer: `eu-west-1`, for example. */
  readonly region: string
  /** The ARN of the load balancer, which is `signer` of its assertions. Any other load balancer is refused. */
  readonly loadBalancerArn: string
  /** The identity provider, as the load balancer is configured. */
  readonly issuer: string
  /** The client id that the load balancer has there. */
  readonly clientId: string
  /** How much the clock of the load balancer may differ: 5 seconds by default. Raise it for your own clock. */
  readonly clockTolerance?: Duration.Input | undefined
  /** The address of the keys: that of the region by default. */
  readonly keysUri?: string | undefined
}

const hmac = ["HS256", "HS384", "HS512"]
const minSecretBytes = 32

const assertionAudience = (accepted: ReadonlyArray<string>): JwtRules["audienceProblem"] => {
  if (accepted.length === 0) throw new Error("RequestVerifier: audiences is empty")
  return ({ aud }): InvalidToken | undefined => {
    const received = textsOf(aud)
    if (received === undefined) return invalid("Malformed", "aud of the assertion is missing, or has another type")
    return isFor(received, accepted) ? undefined : otherAudience(accepted, aud)
  }
}

// The header is not a place for access tokens of the same issuer, and such a token has another audience.
const isKind = ({ typ }: Claims): boolean => typ === undefined || (typeof typ === "string" && /^jwt$/i.test(typ))

const secretKeys = (secret: Redacted.Redacted, algorithms: ReadonlyArray<string> | undefined) => {
  const key = new TextEncoder().encode(Redacted.value(secret))
  if (key.length < minSecretBytes) {
    throw new Error(`RequestVerifier: secret has ${key.length} bytes, and needs at least ${minSecretBytes}`)
  }
  const wrong = (algorithms ?? hmac).find((algorithm) => !hmac.includes(algorithm))
  if (wrong !== undefined) throw new Error(`RequestVerifier: the algorithm ${wrong} is not allowed with a secret`)
  return { algorithms: algorithms ?? hmac, findKeys: () => Effect.succeed([key]) }
}

const publicKeys = (options: AssertionOptions) => ({
  algorithms: checkAlgorithms("RequestVerifier", options.algorithms ?? asymmetric),
  findKeys: keysOf(options).find
})

/** The verifier of the assertions in a header. */
export const assertionVerifier = (options: AssertionOptions, claimsOf?: JwtRules["claimsOf"]): TokenVerifier => {
  const { algorithms, audiences, clockTolerance, issuer, secret } = options
  return verifierOf({
    issuer,
    clockTolerance,
    claimsOf,
    isKind,
    audienceProblem: assertionAudience(audiences),
    ...(secret === undefined ? publicKeys(options) : secretKeys(secret, algorithms))
  })
}

// The id of a key becomes a part of an address.
const keyId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const maxKeys = 20
const maxFetches = 10
const maxSenders = 1_000

/**
 * Makes the function that finds the key of a token. Unknown keys are fetched, ten in 30 seconds for each network address:
 * whether a key exists is known after its fetch only. With one count for all addresses, a sender of invented keys would
 * keep out the tokens of all other senders after a change of the key.
 */
const albKeys = (
  address: string,
  options: FetchOptions
): (
  header: { readonly [name: string]: unknown },
  sender: string | undefined
) => Effect.Effect<ReadonlyArray<CryptoKey>, VerifierUnavailable> => {
  const keys = new Map<string, CryptoKey>()
  const fetching = new SharedEffects<CryptoKey | undefined, VerifierUnavailable>()
  let counts: Failures | undefined
  const fetchKey = (id: string): Effect.Effect<CryptoKey | undefined, VerifierUnavailable> =>
    Effect.flatMap(fetchText(`${address}/${id}`, {}, options), ({ status, text }) => {
      if (status === 403 || status === 404) return Effect.undefined
      if (status !== 200) {
        return Effect.fail(
          unavailable(`the request for the key of the load balancer was answered with status ${status}`)
        )
      }
      return Effect.tryPromise({
        try: async () => {
          const key = await importSPKI(text, "ES256")
          keys.set(id, key)
          if (keys.size > maxKeys) keys.delete(keys.keys().next().value!)
          return key
        },
        catch: () => unavailable("the key of the load balancer is not a public key in PEM form")
      })
    })
  return ({ kid }, sender = "unknown") => {
    if (typeof kid !== "string" || !keyId.test(kid)) return Effect.succeed([])
    const known = keys.get(kid)
    if (known !== undefined) return Effect.succeed([known])
    return Effect.clockWith((clock) => {
      const pending = fetching.join(kid)
      if (pending === undefined) {
        counts ??= new Failures(clock, maxFetches, { failureInterval: 30_000, maxFailureAddresses: maxSenders })
        const seconds = counts.retryAfter(sender)
        if (seconds !== undefined) {
          return Effect.fail(unavailable("the key of the load balancer is not known yet", seconds))
        }
        counts.add(sender)
      }
      return Effect.map(pending ?? fetching.run(kid, fetchKey(kid)), (key) => key === undefined ? [] : [key])
    })
  }
}

/** The verifier of the assertions of an AWS load balancer. Their `iss`, `client`, `signer` and `exp` are in the header. */
export const albVerifier = (options: AlbOptions): TokenVerifier => {
  const { clientId, clockTolerance, issuer, loadBalancerArn, region } = options
  const keysUri = options.keysUri ?? `https://public-keys.auth.elb.${region}.amazonaws.com`
  checkAddress("keysUri", keysUri, options)
  const findKeys = albKeys(keysUri, options)
  return verifierOf({
    issuer,
    clockTolerance,
    algorithms: ["ES256"],
    // "Standard libraries are not compatible with the padding that is included in the Application Load Balancer
    // authentication token in JWT format" (AWS, Authenticate users using an Application Load Balancer).
    isPadded: true,
    audienceProblem: assertionAudience([`${loadBalancerArn} ${clientId}`]),
    isKind,
    claimsOf: ({ client, exp, iss, signer }, claims) => ({
      ...claims,
      iss,
      exp,
      aud: `${String(signer)} ${String(client)}`
    }),
    findKeys: (header, _now, _claims, { address }) => findKeys(header, address)
  })
}
