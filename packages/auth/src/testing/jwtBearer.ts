/**
 * The assertions that the development server accepts (RFC 7523): a workload shows the assertion of its platform, and an
 * enterprise client an ID-JAG.
 */
import { createLocalJWKSet, decodeJwt, jwtVerify } from "jose"
import type { VerifiedAssertion } from "../proxy/engine.ts"
import type { Library } from "../proxy/library.ts"
import { textOf } from "../shared/web.ts"
import type { AssertionIssuer } from "./devServerOptions.ts"

/** Makes the function that verifies an assertion: issuer, signature, audience, expiry, and for an ID-JAG its client. */
export const makeAssertionVerifier = (
  issuer: string,
  issuers: ReadonlyArray<AssertionIssuer>,
  scopes: ReadonlyArray<string>,
  { errors }: Library
) =>
async (assertion: string, { clientId }: { readonly clientId: string }): Promise<VerifiedAssertion> => {
  let named: string | undefined
  try {
    named = decodeJwt(assertion).iss
  } catch {
    throw new errors.InvalidGrant("the assertion is not a JWT")
  }
  const known = issuers.find((one) => one.issuer === named)
  if (known === undefined) throw new errors.InvalidGrant("the issuer of the assertion is unknown")
  const { payload: claims, protectedHeader: { typ } } = await jwtVerify(assertion, createLocalJWKSet(known.jwks), {
    issuer: known.issuer,
    audience: [issuer, `${issuer}/token`],
    requiredClaims: ["exp", "sub"],
    clockTolerance: 5
  }).catch((error: unknown) => {
    throw new errors.InvalidGrant(`the assertion is not valid: ${error instanceof Error ? error.message : error}`)
  })
  if (typ === "oauth-id-jag+jwt" && claims["client_id"] !== clientId) {
    throw new errors.InvalidGrant("the assertion was issued for another client")
  }
  return {
    accountId: claims.sub!,
    resource: textOf(claims["resource"]),
    scopes: textOf(claims["scope"])?.split(" ") ?? scopes
  }
}
