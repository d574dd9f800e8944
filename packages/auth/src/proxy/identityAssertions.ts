/**
 * Identity assertions (ID-JAG) at a proxy: the identity provider of an enterprise vouches for a person and a client, and
 * the person is not asked (extension `io.modelcontextprotocol/enterprise-managed-authorization`).
 */
import * as Effect from "effect/Effect"
import { asymmetric, checkAlgorithms } from "../server/tokens/algorithms.ts"
import { audienceProblem } from "../server/tokens/audience.ts"
import { keysOf, verifierOf } from "../server/tokens/jwt.ts"
import { readJwt } from "../server/tokens/parseToken.ts"
import { effectOf, type VerifiedToken } from "../server/tokens/verifiedToken.ts"
import type { Client } from "oidc-provider"
import { textOf } from "../shared/web.ts"
import type { VerifiedAssertion } from "./engine.ts"
import type { Library } from "./library.ts"
import type { IdentityProvider } from "./proxyOptions.ts"
import type { SealedStore } from "./sealedRecords.ts"

export interface IdentityAssertionOptions {
  readonly library: Library
  readonly store: SealedStore
  /** The issuer of the proxy: the audience of the assertions. */
  readonly issuer: string
  readonly scopes: ReadonlyArray<string>
  readonly providers: ReadonlyArray<IdentityProvider>
}

const idJagType = "oauth-id-jag+jwt"

/**
 * How long an assertion may be valid, from `iat` to `exp`, in milliseconds. The id of each assertion is stored until then,
 * so that it is used once.
 */
const maxAssertionLifetime = 3_600_000

const makeVerifier = (provider: IdentityProvider) =>
  verifierOf({
    issuer: provider.issuer,
    algorithms: checkAlgorithms("identityProviders", provider.algorithms ?? asymmetric),
    // "The `aud` claim of the assertion JWT MUST identify the Issuer URL of the MCP Server's authorization server" (5.1).
    audienceProblem: (claims, { resource }) => audienceProblem(claims, resource, {}),
    // "Validate the JWT `typ` is `oauth-id-jag+jwt`" (5.1): an ID token or an access token is not an assertion.
    isKind: ({ typ }) => typ === idJagType,
    findKeys: keysOf(provider).find,
    clockTolerance: provider.clockTolerance
  })

/** Makes the function that verifies the assertions of some identity providers. Throws if an option is wrong. */
export const makeIdentityAssertions = ({ issuer, library, providers, scopes, store }: IdentityAssertionOptions) => {
  const { errors } = library
  const known = new Map(providers.map((provider) => [provider.issuer, { provider, verifier: makeVerifier(provider) }]))
  const invalid = (description: string) => new errors.InvalidGrant(description)

  /** Records the use of an assertion. Returns whether it is the first one, among all instances. */
  const use = (id: string, expiresAt: number) =>
    store.withLock(
      `Assertion ${id}`,
      Effect.flatMap(store.get(`Assertion ${id}`), (entry) =>
        entry === undefined
          ? Effect.as(store.set(`Assertion ${id}`, true, { expiresAt }), true)
          : Effect.succeed(false))
    )

  const check = (provider: IdentityProvider, token: VerifiedToken, clientId: string) => {
    const { claims, expiresAt = 0 } = token
    const [jti, resource, subject] = [textOf(claims["jti"]), textOf(claims["resource"]), textOf(claims["sub"])]
    if (jti === undefined || resource === undefined || subject === undefined || typeof claims["iat"] !== "number") {
      throw invalid("the assertion lacks jti, iat, sub or resource")
    }
    // "The `client_id` claim of the assertion JWT MUST identify the same client as the client authentication" (5.1).
    if (claims["client_id"] !== clientId) throw invalid("the assertion was issued for another client")
    const lifetime = (expiresAt - claims["iat"]) * 1000
    if (lifetime > maxAssertionLifetime) throw invalid("the assertion is valid for longer than an hour")
    const named = textOf(claims["scope"])?.split(" ") ?? provider.defaultScopes ?? []
    const allowed = provider.scopes ?? scopes
    return { jti, resource, subject, expiresAt, scopes: named.filter((one) => allowed.includes(one)) }
  }

  return async (assertion: string, { clientAuthMethod, clientId }: Client): Promise<VerifiedAssertion> => {
    // A public client proves nothing: any sender of the assertion would be the client.
    if (clientAuthMethod === "none") throw new errors.InvalidClient("client authentication is required")
    const found = known.get(String(readJwt(assertion)?.claims["iss"]))
    if (found === undefined) throw invalid("the issuer of the assertion is unknown")
    const { provider, verifier } = found
    const verified = await Effect.runPromise(
      Effect.result(effectOf(verifier.verify(assertion, { resource: issuer, now: Date.now() })))
    )
    if (verified._tag === "Failure") {
      const { failure } = verified
      if (failure._tag === "InvalidToken") throw invalid(failure.message.replaceAll("the token", "the assertion"))
      throw new errors.CustomOIDCProviderError("temporarily_unavailable", "the keys of the issuer are not available")
    }
    const { expiresAt, jti, resource, scopes: granted, subject } = check(provider, verified.success, clientId)
    const until = (expiresAt + 60) * 1000
    if (!await Effect.runPromise(use(`${provider.issuer} ${jti}`, until))) {
      throw invalid("the assertion was used before")
    }
    return { accountId: `${provider.issuer} ${subject}`, resource, scopes: granted }
  }
}
