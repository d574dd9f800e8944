/**
 * Verifiers of access tokens: whether a token is genuine, was issued for this server, and is not expired
 * (OAuth 2.1, 5.2; RFC 6750; RFC 9068).
 *
 * Use `jwt` for an authorization server that issues JWTs, `introspection` for one with an introspection endpoint, `make`
 * for any other, and `anyOf` for several. `Protect.make` takes the verifier and calls it through `cached`.
 *
 * @example
 * const protection = yield* Protect.make({
 *   resource: "https://tea.example/mcp",
 *   verify: TokenVerifier.jwt({ issuer: "https://login.example" })
 * })
 */
import type * as Effect from "effect/Effect"
import * as introspectionVerifier from "./introspection.ts"
import * as jwtVerifier from "./jwt.ts"
import * as own from "./ownVerifier.ts"
import * as tokenCache from "./tokenCache.ts"
import type { CachedTokenVerifier, TokenVerifier } from "./verifiedToken.ts"

export type { AudienceOptions } from "./audience.ts"
export type { ClientOptions } from "./clientAuthentication.ts"
export type { PrivateKey, Secret } from "../../shared/Secret.ts"
export type { FetchOptions } from "./fetchDocument.ts"
export type { IntrospectionOptions } from "./introspection.ts"
export type { KeyOptions } from "./keySet.ts"
export type { TokenIssuerOptions } from "./issuers.ts"
export type { JwtOptions } from "./jwt.ts"
export type { OwnOptions, OwnToken } from "./ownVerifier.ts"
export type { CacheOptions } from "./tokenCache.ts"
export {
  type CachedTokenVerifier,
  type Confirmation,
  InvalidToken,
  type TokenProblem,
  type TokenVerifier,
  type Verification,
  type VerifiedToken,
  VerifierUnavailable,
  type VerifyContext
} from "./verifiedToken.ts"

/**
 * A verifier for an authorization server that issues signed JWTs. It finds the keys in the metadata of the issuer, and
 * fetches them again when they are old or a token has an unknown key. While the issuer is unavailable, it uses the last
 * keys; a token that it cannot judge fails with `VerifierUnavailable`. Throws if an option is not valid.
 *
 * @example
 * const verify = TokenVerifier.jwt({ issuer: "https://login.example" })
 *
 * @example
 * const entra = TokenVerifier.jwt({
 *   issuer: `https://login.microsoftonline.com/${tenant}/v2.0`,
 *   tokenIssuers: [`https://login.microsoftonline.com/${tenant}/v2.0`, `https://sts.windows.net/${tenant}/`],
 *   audiences: [`api://${clientId}`, clientId]
 * })
 */
export const jwt = (options: jwtVerifier.JwtOptions): TokenVerifier => jwtVerifier.jwt(options)

/**
 * A verifier that asks the authorization server about each token (RFC 7662), for tokens that are not JWTs or may be
 * revoked at any time. The response must name an audience of this resource. While the server is unavailable, tokens fail
 * with `VerifierUnavailable`. Throws if an option is not valid.
 *
 * @example
 * const verify = TokenVerifier.introspection({
 *   issuer: "https://login.example",
 *   clientId: "tea",
 *   clientSecret: Config.Redacted("TEA_SECRET")
 * })
 */
export const introspection = (options: introspectionVerifier.IntrospectionOptions): TokenVerifier =>
  introspectionVerifier.introspection(options)

/**
 * A verifier of your own, for tokens that only their issuer can read. `verify` must say in `audiences` for whom the
 * token was issued, so that a token of another application is refused: a check that a token belongs to some user is not
 * enough. The token is accepted if one of its audiences is in `audiences` of the options, or is the resource.
 *
 * @example
 * const github = TokenVerifier.make({
 *   issuer: "https://github.com/login/oauth",
 *   audiences: [clientId],
 *   verify: (token) => Effect.map(checkToken(clientId, token), ({ app, expires_at, scopes, user }) => ({
 *     subject: String(user.id), audiences: [app.client_id], scopes, expiresAt: Date.parse(expires_at) / 1000
 *   }))
 * })
 */
export const make = (options: own.OwnOptions): TokenVerifier => own.make(options)

/**
 * A verifier for the tokens of several issuers. It reads the issuer in the token and asks the verifier of this issuer
 * only. A token that is not a JWT goes to the verifier that accepts those; there must be at most one. Throws if two
 * verifiers have the same issuer.
 *
 * @example
 * const verify = TokenVerifier.anyOf(
 *   TokenVerifier.jwt({ issuer: "https://login.example" }),
 *   TokenVerifier.jwt({ issuer: "https://partner.example" })
 * )
 */
export const anyOf = (...verifiers: ReadonlyArray<TokenVerifier>): TokenVerifier => own.anyOf(verifiers)

/**
 * A verifier that accepts a token for a minute after its verification. `Protect` applies it to its verifier.
 *
 * A token is stored as its SHA-256 hash, and never as text, so that a dump of the memory has no usable token. A token
 * that is known costs one hash: no fiber and no promise. Node, Bun, Deno and workers with Node's modules can hash
 * synchronously; on other platforms each token costs a promise of WebCrypto. Requests with the same unknown token share
 * one verification. Failures are not stored.
 *
 * @example
 * const verifier = yield* TokenVerifier.cached(TokenVerifier.jwt({ issuer }), { verifiedLifetime: "10 seconds" })
 * const known = verifier.known(token, { resource })
 */
export const cached = (
  verifier: TokenVerifier,
  options: tokenCache.CacheOptions = {}
): Effect.Effect<CachedTokenVerifier> => tokenCache.cached(verifier, options)
