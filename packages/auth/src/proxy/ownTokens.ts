/** The tokens that a proxy issues: what they say, and how its own server verifies them. */
import * as Effect from "effect/Effect"
import * as jose from "jose"
import type { JWK } from "oidc-provider"
import * as TokenVerifier from "../server/tokens/TokenVerifier.ts"
import type { NewGrant } from "./signIn.ts"
import type { ProxyStoreError } from "./store.ts"

/** A verifier of the proxy's own tokens: the signature, and whether the grant still has its upstream. */
export const verifierOf = (
  origin: string,
  key: JWK,
  exists: (grant: string) => Effect.Effect<boolean, ProxyStoreError>
): TokenVerifier.TokenVerifier => {
  const { d: _, ...publicKey } = key
  const keys = jose.createLocalJWKSet({ keys: [publicKey as jose.JWK] })
  const invalid = (message: string, problem: TokenVerifier.TokenProblem) =>
    new TokenVerifier.InvalidToken({ message, problem })
  return TokenVerifier.make({
    issuer: origin,
    acceptsOpaque: false,
    verify: (token) =>
      Effect.gen(function*() {
        const { payload } = yield* Effect.tryPromise({
          try: () => jose.jwtVerify(token, keys, { issuer: origin, typ: "at+jwt", algorithms: ["ES256"] }),
          catch: (cause) =>
            cause instanceof jose.errors.JWTExpired
              ? invalid("the token has expired", "Expired")
              : invalid("the token is not one of this server", "Signature")
        })
        const { aud, client_id: clientId, cnf, exp, grant, scope, sub } = payload as jose.JWTPayload & {
          readonly cnf?: { readonly jkt?: string }
        }
        // "validate third-party token status before honoring" (2025-03-26, third-party authorization flow).
        // A token of an identity assertion has no grant, and no upstream.
        const live = grant === undefined || (yield* exists(String(grant)).pipe(
          Effect.mapError((cause) =>
            new TokenVerifier.VerifierUnavailable({ message: cause.message, retryAfterSeconds: 5, cause })
          )
        ))
        if (!live) return yield* Effect.fail(invalid("the sign-in of this token has ended", "Inactive"))
        return {
          audiences: [aud ?? []].flat(),
          expiresAt: exp,
          subject: sub,
          clientId: String(clientId),
          scopes: String(scope ?? "").split(" ").filter((one) => one !== ""),
          claims: payload,
          ...cnf?.jkt !== undefined && { confirmation: { jkt: cnf.jkt } }
        }
      })
  })
}

/** A token with the claims that all tokens of a grant have, for the id of its principal. */
export const tokenOf = (
  issuer: string,
  resource: string,
  { accountId, clientId, id, scopes }: NewGrant
): TokenVerifier.VerifiedToken => ({
  issuer,
  clientId,
  scopes,
  subject: accountId,
  audiences: [resource],
  expiresAt: undefined,
  confirmation: undefined,
  claims: { iss: issuer, aud: resource, sub: accountId, client_id: clientId, scope: scopes.join(" "), grant: id }
})
