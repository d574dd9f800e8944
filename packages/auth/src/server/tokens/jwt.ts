/**
 * The verifier of signed JWTs (RFC 7519, RFC 9068), by the rules of RFC 8725.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type { CryptoKey } from "jose"
import { compactVerify } from "jose/jws/compact/verify"
import { asymmetric, checkAlgorithms } from "./algorithms.ts"
import { discover } from "./discovery.ts"
import { type AudienceOptions, audienceProblem } from "./audience.ts"
import { checkAddress } from "./fetchDocument.ts"
import { type IssuerRules, issuerRules, type TokenIssuerOptions } from "./issuers.ts"
import { type KeyOptions, KeySet } from "./keySet.ts"
import {
  invalid,
  isAccessTokenType,
  isOtherKind,
  otherIssuer,
  readJwt,
  timeProblem,
  tokenOf,
  toleranceOf,
  verifyWith
} from "./parseToken.ts"
import type {
  Claims,
  InvalidToken,
  TokenVerifier,
  VerifiedToken,
  VerifierUnavailable,
  VerifyContext
} from "./verifiedToken.ts"

/** Options of `TokenVerifier.jwt`. */
export interface JwtOptions extends KeyOptions, AudienceOptions, TokenIssuerOptions {
  /**
   * The authorization server, as in its metadata, and as in `iss` of its tokens unless there are `tokenIssuers`. It is
   * compared as text.
   */
  readonly issuer: string
  /** The address of the keys: `jwks_uri` of the issuer's metadata by default. */
  readonly jwksUri?: string | undefined
  /** The accepted algorithms, all asymmetric: ES256, ES384, ES512, EdDSA, Ed25519, PS256 to PS512, RS256 to RS512. */
  readonly algorithms?: ReadonlyArray<string> | undefined
  /**
   * How much the clock of the issuer may differ, for `exp` and `nbf`: 5 seconds by default. Raise it for a clock that is
   * not synchronized.
   */
  readonly clockTolerance?: Duration.Input | undefined
  /**
   * Demands the type `at+jwt` (RFC 9068, 4). Off by default, since many issuers write `JWT` or nothing. Tokens of other
   * types, such as ID tokens and logout tokens, are always refused.
   */
  readonly requireType?: boolean | undefined
}

type Verifying = Effect.Effect<VerifiedToken, InvalidToken | VerifierUnavailable>

type SignatureKeys = ReadonlyArray<CryptoKey | Uint8Array>

/** The requirements for the tokens of one issuer. */
export interface JwtRules {
  readonly issuer: string
  /** The accepted `iss` of tokens: `issuer` by default. */
  readonly issuers?: IssuerRules | undefined
  readonly algorithms: ReadonlyArray<string>
  /** Undefined if the audiences of the token are accepted. */
  readonly audienceProblem: (claims: Claims, context: VerifyContext) => InvalidToken | undefined
  /** Whether the token is of the expected kind. */
  readonly isKind: (header: Claims, claims: Claims) => boolean
  /** Whether the parts of a token may have the padding of base64. */
  readonly isPadded?: boolean | undefined
  /** The claims, if some of them are elsewhere. */
  readonly claimsOf?: ((header: Claims, claims: Claims) => Claims) | undefined
  /** The keys that may have signed a token with this header: none if the issuer has no such key. */
  readonly findKeys: (
    header: Claims,
    now: number,
    claims: Claims,
    context: VerifyContext
  ) => SignatureKeys | Effect.Effect<SignatureKeys, VerifierUnavailable>
  readonly clockTolerance?: Duration.Input | undefined
}

const isSignedBy = (
  token: string,
  keys: ReadonlyArray<CryptoKey | Uint8Array>,
  algorithms: ReadonlyArray<string>
): Effect.Effect<boolean> =>
  Effect.promise(async () => {
    for (const key of keys) {
      try {
        await compactVerify(token, key, { algorithms: [...algorithms] })
        return true
      } catch {
        // The next key may be the right one.
      }
    }
    return false
  })

/** The verifier of JWTs by these rules. */
export const verifierOf = (rules: JwtRules): TokenVerifier => {
  const { algorithms, issuer, issuers = issuerRules({ issuer }) } = rules
  const tolerance = toleranceOf(rules.clockTolerance)

  /** Looks at everything that needs no key. */
  const problemOf = (header: Claims, claims: Claims, context: VerifyContext, now: number): InvalidToken | undefined => {
    const { exp, iss } = claims
    if (!issuers.accepts(claims)) return otherIssuer(iss)
    const problem = rules.audienceProblem(claims, context) ?? timeProblem(claims, now, tolerance)
    if (problem !== undefined) return problem
    if (exp === undefined) return invalid("Malformed", "the token has no exp")
    const { alg, crit, typ } = header
    if (typeof alg !== "string" || !algorithms.includes(alg)) {
      return invalid("Algorithm", "the algorithm of the token is not allowed", alg)
    }
    // No extension is implemented, so none that is critical is understood (RFC 7515, 4.1.11).
    if (crit !== undefined) return invalid("Malformed", "the token has critical headers")
    return rules.isKind(header, claims) ? undefined : invalid("Type", "the token is not an access token", typ)
  }

  const notJwt = Effect.fail(invalid("Malformed", "the token is not a signed JWT"))

  const verify = (token: string, context: VerifyContext, now: number): Verifying => {
    const parts = readJwt(token, rules.isPadded)
    if (parts === undefined) return notJwt
    const { header } = parts
    // The signature is that of this text, so these are the claims that it signs.
    const claims = rules.claimsOf?.(header, parts.claims) ?? parts.claims
    const problem = problemOf(header, claims, context, now)
    if (problem !== undefined) return Effect.fail(problem)
    const keys = rules.findKeys(header, now, claims, context)
    return Effect.isEffect(keys)
      ? Effect.flatMap(keys, (keys) => verifySignature(token, header, claims, keys))
      : verifySignature(token, header, claims, keys)
  }

  const verifySignature = (token: string, header: Claims, claims: Claims, keys: SignatureKeys): Verifying =>
    keys.length === 0
      ? Effect.fail(invalid("Key", "the issuer has no key for the token", header["kid"]))
      : Effect.flatMap(isSignedBy(token, keys, algorithms), (isSigned): Verifying =>
        isSigned
          ? tokenOf(claims["iss"] as string, claims, tolerance)
          : Effect.fail(invalid("Signature", "the signature of the token is not valid")))

  return {
    issuers: [issuer],
    tokenIssuers: issuers.issuers,
    acceptsOpaque: false,
    verify: verifyWith(verify)
  }
}

/** The keys of the issuer of these options. */
export const keysOf = (
  options: KeyOptions & { readonly issuer: string; readonly jwksUri?: string | undefined }
): KeySet => {
  const { issuer, jwksUri } = options
  if (jwksUri === undefined) checkAddress("issuer", issuer, options)
  else checkAddress("jwksUri", jwksUri, options)
  return new KeySet(jwksUri === undefined ? discover(issuer, "jwks_uri", options) : Effect.succeed(jwksUri), options)
}

export const jwt = (options: JwtOptions): TokenVerifier => {
  const { clockTolerance, issuer, requireType = false } = options
  checkAddress("issuer", issuer, options)
  const issuers = issuerRules(options)
  const keys = keysOf(options)
  return verifierOf({
    issuer,
    issuers,
    algorithms: checkAlgorithms("TokenVerifier.jwt", options.algorithms ?? asymmetric),
    audienceProblem: (claims, { resource }) => audienceProblem(claims, resource, options),
    isKind: ({ typ }, claims) => isAccessTokenType(typ, requireType) && !isOtherKind(claims),
    findKeys: (header, now, claims) => {
      const accepted = (found: SignatureKeys): SignatureKeys =>
        issuers.acceptsKeyOf(keys.issuerOf(header["kid"]), claims) ? found : []
      const found = keys.find(header, now)
      return Effect.isEffect(found) ? Effect.map(found, accepted) : accepted(found)
    },
    clockTolerance
  })
}
