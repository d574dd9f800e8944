/**
 * The issuers in the tokens of an authorization server, where they differ from the one that it publishes.
 */
import type { Claims } from "./verifiedToken.ts"

/** The accepted issuers of tokens. */
export interface TokenIssuerOptions {
  /**
   * The accepted `iss` of tokens: `[issuer]` by default. For an authorization server whose tokens have another one than its
   * metadata, such as `https://sts.windows.net/<tenant>/` of Entra. They are compared as text. `{tenantid}` stands for the
   * claim `tid`, for a server of several tenants: it needs `tenants` and `jwksUri`, since its metadata has no issuer of
   * its own.
   */
  readonly tokenIssuers?: ReadonlyArray<string> | undefined
  /**
   * The tenants that `{tenantid}` may stand for, or `"any"`: then all people with an account of any directory have a token
   * for this server.
   */
  readonly tenants?: ReadonlyArray<string> | "any" | undefined
}

/** The placeholder of the tenant in an issuer, as in Entra's metadata. */
const placeholder = "{tenantid}"

const hasPlaceholder = (issuer: string): boolean => issuer.includes(placeholder)

/** An issuer for the tenant of a token. Undefined if the token has no tenant that an issuer can contain. */
export const issuerOfTenant = (issuer: string, { tid }: Claims): string | undefined =>
  typeof tid === "string" && /^[\w-]+$/.test(tid) ? issuer.replaceAll(placeholder, tid) : undefined

/** Whether `iss` of a token is one of these issuers. */
export const isIssuedBy = (issuers: ReadonlyArray<string>, claims: Claims): boolean =>
  issuers.some((issuer) => claims["iss"] === (hasPlaceholder(issuer) ? issuerOfTenant(issuer, claims) : issuer))

/** The rules about the issuers of tokens. */
export interface IssuerRules {
  readonly issuers: ReadonlyArray<string>
  readonly accepts: (claims: Claims) => boolean
  /**
   * Whether a key may have signed a token. Each key of Entra's common key set names its issuer: a token that claims to be
   * of one tenant must not be signed by the key of another.
   */
  readonly acceptsKeyOf: (keyIssuer: string | undefined, claims: Claims) => boolean
}

const fault = (message: string): Error => new Error(`TokenVerifier.jwt: ${message}`)

/** Makes the rules. Throws if the options are not valid. */
export const issuerRules = (
  { issuer, jwksUri, tenants, tokenIssuers = [issuer] }: TokenIssuerOptions & {
    readonly issuer: string
    readonly jwksUri?: string | undefined
  }
): IssuerRules => {
  if (tokenIssuers.length === 0) throw fault("tokenIssuers is empty")
  if (!tokenIssuers.some(hasPlaceholder)) {
    if (tenants !== undefined) throw fault(`tenants needs ${placeholder} in tokenIssuers`)
    return {
      issuers: tokenIssuers,
      accepts: ({ iss }) => tokenIssuers.includes(iss as string),
      acceptsKeyOf: () => true
    }
  }
  if (tenants === undefined) throw fault(`${placeholder} needs tenants: a list of them, or "any"`)
  if (jwksUri === undefined) throw fault(`${placeholder} needs jwksUri: the metadata of several tenants has no issuer`)
  return {
    issuers: tokenIssuers,
    accepts: (claims) =>
      isIssuedBy(tokenIssuers, claims) && (tenants === "any" || tenants.includes(claims["tid"] as string)),
    acceptsKeyOf: (keyIssuer, claims) => {
      const owner = keyIssuer === undefined ? undefined : issuerOfTenant(keyIssuer, claims)
      return keyIssuer === undefined || tokenIssuers.some((one) => issuerOfTenant(one, claims) === owner)
    }
  }
}
