/**
 * The assertions that the development server accepts (RFC 7523): a workload shows the assertion of its platform, and an
 * enterprise client an ID-JAG.
 */
import { createLocalJWKSet, decodeJwt, type JSONWebKeySet, type JWTPayload, jwtVerify } from "jose"
import type { Provider } from "oidc-provider"
import { textOf } from "../shared/web.ts"
import { addAssertionGrant, type AssertionGrantOptions } from "../proxy/assertionGrant.ts"

export interface JwtBearerOptions extends Omit<AssertionGrantOptions, "verify"> {
  readonly issuers: ReadonlyArray<{ readonly issuer: string; readonly jwks: JSONWebKeySet }>
}

/** Verifies an assertion: issuer, signature, audience, expiry, and for an ID-JAG its client. */
const verify = async (provider: Provider, options: JwtBearerOptions, assertion: string, clientId: string) => {
  const { errors } = options.library
  let issuer: string | undefined
  try {
    issuer = decodeJwt(assertion).iss
  } catch {
    throw new errors.InvalidGrant("the assertion is not a JWT")
  }
  const known = options.issuers.find((one) => one.issuer === issuer)
  if (known === undefined) throw new errors.InvalidGrant("the issuer of the assertion is unknown")
  let verified: { readonly payload: JWTPayload; readonly protectedHeader: { readonly typ?: string | undefined } }
  try {
    verified = await jwtVerify(assertion, createLocalJWKSet(known.jwks), {
      issuer: known.issuer,
      audience: [provider.issuer, `${provider.issuer}/token`],
      requiredClaims: ["exp", "sub"],
      clockTolerance: 5
    })
  } catch (error) {
    throw new errors.InvalidGrant(`the assertion is not valid: ${error instanceof Error ? error.message : error}`)
  }
  if (verified.protectedHeader.typ === "oauth-id-jag+jwt" && verified.payload["client_id"] !== clientId) {
    throw new errors.InvalidGrant("the assertion was issued for another client")
  }
  return verified.payload
}

/** Adds the grant to a provider. */
export const addJwtBearer = (provider: Provider, options: JwtBearerOptions): void =>
  addAssertionGrant(provider, {
    ...options,
    verify: async (assertion, { clientId }) => {
      const claims = await verify(provider, options, assertion, clientId)
      return {
        accountId: claims.sub!,
        resource: textOf(claims["resource"]),
        scopes: textOf(claims["scope"])?.split(" ") ?? options.scopes
      }
    }
  })
