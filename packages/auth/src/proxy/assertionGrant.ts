/**
 * The JWT bearer grant (RFC 7523, 2.1), which `oidc-provider` does not have: an assertion of another issuer becomes an
 * access token. The proxy accepts ID-JAGs with it, and the development server assertions of workloads too.
 */
import type { Client, KoaContextWithOIDC, Provider } from "oidc-provider"
import { textOf } from "../shared/web.ts"
import type { Library } from "./library.ts"

/** The name of the grant. */
export const jwtBearer = "urn:ietf:params:oauth:grant-type:jwt-bearer"

/** The rights that a verified assertion gives. */
export interface VerifiedAssertion {
  readonly accountId: string
  /** The resource that the assertion names. */
  readonly resource: string | undefined
  /** The scopes that the token may have. */
  readonly scopes: ReadonlyArray<string>
}

export interface AssertionGrantOptions {
  readonly library: Library
  /** Verifies an assertion for a client that is authenticated. Fails with an error of the engine. */
  readonly verify: (assertion: string, client: Client) => Promise<VerifiedAssertion>
  readonly scopes: ReadonlyArray<string>
  readonly isResource: (resource: string) => boolean
  readonly defaultResource: string | undefined
  /** Returns the configuration of the engine for a resource. */
  readonly resourceServer: (resource: string) => ConstructorParameters<Provider["ResourceServer"]>[1]
}

/** Adds the grant to an engine. Its tokens have no grant, and no refresh token: the client presents another assertion. */
export const addAssertionGrant = (provider: Provider, options: AssertionGrantOptions): void => {
  const { errors } = options.library
  const handler = async (ctx: KoaContextWithOIDC) => {
    const { client, params } = ctx.oidc
    if (client === undefined) throw new errors.InvalidClient("client authentication is required")
    const assertion = textOf(params?.["assertion"])
    if (assertion === undefined) throw new errors.InvalidRequest("missing required parameter(s): assertion")
    const allowed = await options.verify(assertion, client)
    const asked = textOf(params?.["resource"])
    const resource = asked ?? allowed.resource ?? options.defaultResource
    if (
      resource === undefined || !options.isResource(resource) ||
      (allowed.resource !== undefined && allowed.resource !== resource)
    ) {
      throw new errors.InvalidTarget("the resource is missing or unknown, or is not that of the assertion")
    }
    const wanted = textOf(params?.["scope"])?.split(" ") ?? allowed.scopes
    const scopes = options.scopes.filter((one) => wanted.includes(one) && allowed.scopes.includes(one))
    if (scopes.length === 0) {
      throw new errors.InvalidScope("the assertion allows none of the requested scopes", wanted.join(" "))
    }
    const scope = scopes.join(" ")
    const token = new provider.AccessToken({ accountId: allowed.accountId, client, gty: jwtBearer, scope } as never)
    token.resourceServer = new provider.ResourceServer(resource, options.resourceServer(resource))
    const value = await token.save()
    ctx.body = { access_token: value, expires_in: token.expiration, scope, token_type: "Bearer" }
  }
  provider.registerGrantType(jwtBearer, handler, ["assertion", "scope", "resource"], [])
}
