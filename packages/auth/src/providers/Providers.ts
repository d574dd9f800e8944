/**
 * Presets for identity providers: what each of them needs that the specification does not say, as plain values.
 *
 * A preset has a part for each place. Spread it there, and write your own options after it:
 *
 * - `oauth` into `OAuth.make`, and `grant` into `Grant.authorizationCode`, in a client;
 * - `jwt` into `TokenVerifier.jwt`, or the result of `verifier` into `TokenVerifier.make`, and `protect` into
 *   `Protect.make`, in a server;
 * - `upstream` into the `upstream` of `Proxy.make`, in a server whose provider registers no clients.
 *
 * The module loads neither the client nor the server. The presets follow the documentation of the providers and are
 * tested with scripts that behave in the same way, and not with the providers themselves.
 *
 * @example
 * const entra = Providers.entra({ tenant, clientId, scopes: ["tea.read"] })
 * const protection = Protect.make({ resource, verify: TokenVerifier.jwt(entra.jwt), ...entra.protect })
 *
 * @example
 * const oauth = yield* OAuth.make({
 *   ...entra.oauth,
 *   grant: Grant.authorizationCode({ clientName: "Tea", ...entra.grant, client: { clientId, issuer: entra.issuer } })
 * })
 */
import type { Principal } from "@skein/server/Principal"
import type { AuthorizationCodeOptions } from "../client/grants/Grant.ts"
import * as opaque from "./opaqueTokens.ts"
import type { Options as OAuthOptions } from "../client/OAuth.ts"
import type { UpstreamOptions } from "../proxy/Proxy.ts"
import type { JwtOptions, OwnOptions, VerifiedToken } from "../server/tokens/TokenVerifier.ts"

export type { GithubVerifierOptions, GoogleVerifierOptions } from "./opaqueTokens.ts"

/** The parts of a preset that every provider has. */
export interface Provider {
  /** The name that people know. */
  readonly name: string
  /** The issuer of the authorization server, as text: `issuer` of a client that you registered there by hand. */
  readonly issuer: string
  /** Options of `OAuth.make`. */
  readonly oauth: Pick<OAuthOptions, "assumePkce" | "resource" | "scopes">
  /** Options of `Grant.authorizationCode`. */
  readonly grant: Pick<AuthorizationCodeOptions, "authorizationParameters">
  /** Options of the upstream of a proxy. The client that you registered is missing. */
  readonly upstream: Omit<UpstreamOptions, "clientId" | "clientSecret">
}

/** A provider whose access tokens are signed JWTs. */
export interface JwtProvider extends Provider {
  /** Options of `TokenVerifier.jwt`. */
  readonly jwt: JwtOptions
  /** Options of `Protect.make`. */
  readonly protect: {
    /** Makes the principal, where the token has its user or its scopes in other claims than those of RFC 9068. */
    readonly principal?: (token: VerifiedToken) => Principal
  }
}

/** A provider whose access tokens only it can read. `Options` are those of its verifier. */
export interface OpaqueProvider<Options> extends Provider {
  /** Makes the options of `TokenVerifier.make`. Each token that is not known costs a request to the provider. */
  readonly verifier: (options: Options) => OwnOptions
}

/** Options of all presets. */
export interface ScopeOptions {
  /** The scopes that a client requests. By default those that the MCP server names. */
  readonly scopes?: ReadonlyArray<string> | undefined
}

const fault = (preset: string, message: string): Error => new Error(`Providers.${preset}: ${message}`)

/** Checks the name of a host: an address in its place would make an issuer that no token has. */
const checkHost = (preset: string, host: string, example: string): string => {
  if (/^[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:\d+)?$/.test(host)) return host
  throw fault(preset, `domain must be a host name such as ${example}, in lower case: ${JSON.stringify(host)}`)
}

const checkSegment = (preset: string, option: string, value: string): string => {
  if (/^[\w.~-]+$/.test(value)) return value
  throw fault(preset, `${option} must be one segment of a path: ${JSON.stringify(value)}`)
}

/** The `id` of a principal as `Protect.idOf` makes it, with a claim that does not change in the place of `sub`. */
const idOf = ({ claims, clientId, issuer, subject }: VerifiedToken, claim: string): string => {
  const value = claims[claim]
  const person = typeof value === "string" && value !== "" ? value : subject
  return person !== undefined ? `${issuer} ${person}` : clientId === undefined ? "" : `client ${issuer} ${clientId}`
}

const withoutSlash = (url: string): string => url.endsWith("/") ? url.slice(0, -1) : url

const checkUrl = (preset: string, option: string, url: string): string => {
  const parsed = URL.parse(url)
  if (parsed !== null && /^https?:$/.test(parsed.protocol) && parsed.search === "" && parsed.hash === "") {
    return withoutSlash(url)
  }
  throw fault(preset, `${option} must be an https address without query and fragment: ${JSON.stringify(url)}`)
}

/** A provider of JWTs with parts that differ from those of most. */
const jwtProvider = (
  name: string,
  issuer: string,
  { scopes }: ScopeOptions,
  jwt: Omit<JwtOptions, "issuer">,
  parts: Partial<Omit<JwtProvider, "jwt">> = {}
): JwtProvider => ({
  name,
  issuer,
  oauth: { scopes },
  grant: {},
  jwt: { issuer, ...jwt },
  protect: {},
  upstream: { name, issuer, scope: "openid profile offline_access" },
  ...parts
})

/** Options of `github`. */
export interface GithubOptions extends ScopeOptions {
  /** The address of an Enterprise Server: `https://github.example`. GitHub's own by default. */
  readonly url?: string | undefined
}

/**
 * GitHub, with an OAuth app or a GitHub App that you registered.
 *
 * - It registers no clients. In front of clients that you do not know, use `Proxy`.
 * - Its tokens are opaque and name no resource. `verifier` asks GitHub whether a token was issued to your application.
 * - It has no userinfo endpoint. `upstream` finds the person with GitHub's API, by the number of the account.
 * - Its token endpoint answers errors with status 200, and separates scopes by commas. Both are understood.
 * - Tokens of OAuth apps do not expire. Those of GitHub Apps do after 8 hours, and can be renewed; they have no scopes.
 *
 * @example
 * const verify = TokenVerifier.make(Providers.github().verifier({ clientId, clientSecret }))
 */
export const github = (options: GithubOptions = {}): OpaqueProvider<opaque.GithubVerifierOptions> => {
  const own = options.url !== undefined
  const url = own ? checkUrl("github", "url", options.url) : "https://github.com"
  const api = own ? `${url}/api/v3` : "https://api.github.com"
  const issuer = `${url}/login/oauth`
  return {
    name: "GitHub",
    issuer,
    // It supports PKCE with S256 since 2025.
    oauth: { assumePkce: [issuer], scopes: options.scopes },
    grant: {},
    upstream: {
      name: "GitHub",
      issuer,
      authorizationEndpoint: `${issuer}/authorize`,
      tokenEndpoint: `${issuer}/access_token`,
      ...(options.scopes === undefined ? {} : { scope: options.scopes.join(" ") }),
      user: opaque.githubUser(api)
    },
    verifier: (client) => opaque.github(issuer, api, client)
  }
}

/**
 * Google, with a client that you registered in its console.
 *
 * - It registers no clients, and its tokens are opaque. In front of clients that you do not know, use `Proxy`.
 * - `verifier` asks Google for the client of a token. The token needs the scope `openid`, or it names no user.
 * - It gives refresh tokens only for `access_type=offline`, and again only for `prompt=consent`.
 * - A desktop client needs its secret as well, although it cannot keep it.
 * - Its tokens name no resource, so the `resource` parameter is left out.
 *
 * @example
 * const verify = TokenVerifier.make(Providers.google().verifier({ clientIds: [clientId] }))
 */
export const google = (options: ScopeOptions = {}): OpaqueProvider<opaque.GoogleVerifierOptions> => {
  const issuer = "https://accounts.google.com"
  const authorizationParameters = { access_type: "offline", prompt: "consent" }
  const scopes = options.scopes === undefined ? ["openid", "profile"] : [...new Set(["openid", ...options.scopes])]
  return {
    name: "Google",
    issuer,
    oauth: { resource: "omit", ...(options.scopes === undefined ? {} : { scopes }) },
    grant: { authorizationParameters },
    upstream: { name: "Google", issuer, scope: scopes.join(" "), authorizationParameters },
    verifier: (client) => opaque.google(issuer, client)
  }
}

/** Options of `entra`. */
export interface EntraOptions extends ScopeOptions {
  /**
   * The directory (tenant) ID, whose tokens are accepted. Or `organizations` or `common`, for accounts of several
   * directories: then `tenants` is needed.
   */
  readonly tenant: string
  /** The IDs of several directories whose tokens are accepted, or `"any"`. */
  readonly tenants?: ReadonlyArray<string> | "any" | undefined
  /** The application (client) ID of the registration that stands for your MCP server. */
  readonly clientId: string
  /** Its Application ID URI: `api://<clientId>` by default. */
  readonly applicationIdUri?: string | undefined
  /** The scopes that a client requests, with or without the URI: `tea.read`. By default those that the server names. */
  readonly scopes?: ReadonlyArray<string> | undefined
  /**
   * The version of the access tokens: both by default. New registrations issue version 1 until
   * `requestedAccessTokenVersion` in their manifest is 2. Tokens of version 1 have another issuer.
   */
  readonly tokenVersion?: 1 | 2 | undefined
}

/** The preset of Entra. */
export interface EntraProvider extends JwtProvider {
  /** For `Protect.make`: the principal with an `id` that does not change, and with the scopes that have the URI. */
  readonly protect: { readonly principal: (token: VerifiedToken) => Principal }
  /** A scope as clients must request it: `api://<clientId>/tea.read` for `tea.read`. */
  readonly scope: (name: string) => string
}

/** The issuer of a directory in tokens of version 2. */
const entraIssuer = (tenant: string): string => `https://login.microsoftonline.com/${tenant}/v2.0`

const isGuid = (text: string): boolean => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text)

/**
 * Microsoft Entra ID, with one registration for the MCP server and one for each client.
 *
 * - It registers no clients. Register them by hand, or use `Proxy`.
 * - It refuses a `resource` parameter that does not match the scopes (AADSTS9010010), so the parameter is left out.
 * - Scopes need the URI of the application before them: others are those of Microsoft Graph (AADSTS650053). Tokens have
 *   the short names. `protect` puts the URI before them, so that your scopes and challenges have one form: use `scope`.
 * - Its metadata does not announce PKCE, which it supports.
 * - `prompt=consent` would ask an administrator where users may not consent, so it is replaced.
 * - The audience is the client ID of the server (version 2) or its URI (version 1).
 * - `scp` has the scopes of users, `roles` the permissions of applications. Roles of users are not scopes.
 * - `sub` is another one for each application. The person is `oid` within its tenant, which becomes the principal's `id`:
 *   the same in both versions of tokens.
 * - Its userinfo endpoint is that of Microsoft Graph, and refuses tokens of your API. A proxy takes the person from the ID
 *   token.
 * - The metadata for several directories has `{tenantid}` in its issuer. Clients that compare issuers, as the
 *   specification demands, refuse it: use a proxy.
 *
 * @example
 * const entra = Providers.entra({ tenant, clientId })
 * const protection = Protect.make({
 *   resource,
 *   verify: TokenVerifier.jwt(entra.jwt),
 *   scopes: [entra.scope("tea.read")],
 *   ...entra.protect
 * })
 */
export const entra = (options: EntraOptions): EntraProvider => {
  const { applicationIdUri = `api://${options.clientId}`, clientId, scopes, tenant, tenants, tokenVersion } = options
  const isShared = tenant === "organizations" || tenant === "common"
  if (!isShared && !isGuid(tenant)) {
    throw fault("entra", `tenant must be the directory (tenant) ID, a GUID: ${JSON.stringify(tenant)}`)
  }
  if (isShared !== (tenants !== undefined)) {
    throw fault("entra", "tenants must be given for the tenants organizations and common, and for no other")
  }
  const login = `https://login.microsoftonline.com/${tenant}`
  const issuer = `${login}/v2.0`
  const scope = (name: string): string => name.includes("://") ? name : `${withoutSlash(applicationIdUri)}/${name}`
  const tokensOf = isShared ? "{tenantid}" : tenant
  return {
    name: "Microsoft",
    issuer,
    scope,
    oauth: {
      assumePkce: [issuer],
      resource: "omit",
      ...(scopes === undefined ? {} : { scopes: scopes.map(scope) })
    },
    grant: { authorizationParameters: { prompt: "select_account" } },
    jwt: {
      issuer,
      tokenIssuers: [
        ...(tokenVersion === 1 ? [] : [entraIssuer(tokensOf)]),
        ...(tokenVersion === 2 ? [] : [`https://sts.windows.net/${tokensOf}/`])
      ],
      ...(tenants === undefined ? {} : { tenants }),
      jwksUri: `${login}/discovery/v2.0/keys`,
      audiences: [clientId, applicationIdUri]
    },
    protect: {
      principal: (token) => {
        const { roles, scp, tid } = token.claims
        const names = scp === undefined && Array.isArray(roles)
          ? roles.filter((role) => typeof role === "string")
          : token.scopes
        const home = typeof tid === "string" && isGuid(tid) ? entraIssuer(tid) : token.issuer
        return { id: idOf({ ...token, issuer: home }, "oid"), scopes: names.map(scope) }
      }
    },
    upstream: {
      name: "Microsoft",
      issuer,
      // The metadata for several directories is not of this issuer.
      ...(isShared ?
        {
          authorizationEndpoint: `${login}/oauth2/v2.0/authorize`,
          tokenEndpoint: `${login}/oauth2/v2.0/token`,
          idTokenIssuer: entraIssuer("{tenantid}")
        } :
        {}),
      scope: "openid profile offline_access",
      user: opaque.entraUser(tenants)
    }
  }
}

/** Options of `okta`. */
export interface OktaOptions extends ScopeOptions {
  /** The domain of your organization: `acme.okta.com`, or a domain of your own. */
  readonly domain: string
  /** The ID of the custom authorization server: `default` by default. */
  readonly authorizationServer?: string | undefined
  /** The audiences of the authorization server, where they are not the resource: `api://default`. None by default. */
  readonly audiences?: ReadonlyArray<string> | undefined
}

/**
 * Okta, with a custom authorization server.
 *
 * - Only Okta can verify the tokens of the server of the organization (`https://acme.okta.com`), so it cannot be used.
 * - `aud` is the audience of the authorization server, whatever clients request: one server for each MCP server.
 * - `scp` is a list.
 * - `sub` is the login of the user, which can change and be given to another user. `uid` does not change, and becomes the
 *   principal's `id`.
 * - Registration needs a token of an administrator, so clients are registered by hand, or use `Proxy`.
 *
 * @example
 * const okta = Providers.okta({ domain: "acme.okta.com", audiences: ["api://default"] })
 * const protection = Protect.make({ resource, verify: TokenVerifier.jwt(okta.jwt), ...okta.protect })
 */
export const okta = (options: OktaOptions): JwtProvider => {
  const { audiences = [], authorizationServer = "default" } = options
  const host = checkHost("okta", options.domain, "acme.okta.com")
  const issuer = `https://${host}/oauth2/${checkSegment("okta", "authorizationServer", authorizationServer)}`
  return jwtProvider("Okta", issuer, options, { audiences }, {
    protect: { principal: (token) => ({ id: idOf(token, "uid") }) }
  })
}

/** Options of `auth0`. */
export interface Auth0Options extends ScopeOptions {
  /** The domain of your tenant: `acme.eu.auth0.com`, or a domain of your own. */
  readonly domain: string
  /**
   * The identifier of the API, which clients send as `audience`. Needed if the tenant has no Resource Parameter
   * Compatibility Profile, or if the identifier is not the resource. None by default.
   */
  readonly audience?: string | undefined
}

/**
 * Auth0, with an API for the MCP server.
 *
 * - Its issuer ends with a slash.
 * - It ignores `resource` unless the tenant has the Resource Parameter Compatibility Profile. Without it and without an
 *   `audience`, tokens are opaque, or for its userinfo endpoint only. Unknown clients send no `audience`: switch it on.
 * - Clients can register themselves if the tenant allows it. They see only connections that are promoted to the domain.
 *
 * @example
 * const auth0 = Providers.auth0({ domain: "acme.eu.auth0.com" })
 * const protection = Protect.make({ resource, verify: TokenVerifier.jwt(auth0.jwt) })
 */
export const auth0 = (options: Auth0Options): JwtProvider => {
  const { audience } = options
  const issuer = `https://${checkHost("auth0", options.domain, "acme.eu.auth0.com")}/`
  const grant = audience === undefined ? {} : { authorizationParameters: { audience } }
  return jwtProvider("Auth0", issuer, options, { audiences: audience === undefined ? [] : [audience] }, {
    grant,
    upstream: { name: "Auth0", issuer, scope: "openid profile offline_access", ...grant }
  })
}

/** Options of `cognito`. */
export interface CognitoOptions extends ScopeOptions {
  /** The region of the user pool: `eu-central-1`. */
  readonly region: string
  /** The ID of the user pool: `eu-central-1_AbCdEf123`. */
  readonly userPoolId: string
  /**
   * The app clients whose tokens are accepted without an audience. They must be for this MCP server only. None by default:
   * then a token needs the resource as its audience.
   */
  readonly clients?: ReadonlyArray<string> | undefined
}

/**
 * Amazon Cognito, with a user pool.
 *
 * - It registers no clients. Register them by hand, or use `Proxy`.
 * - Its metadata does not announce PKCE, which it supports.
 * - Access tokens have no `aud`, except on plans with resource binding. They have `client_id` and `token_use: access`.
 * - Scopes have the identifier of their resource server before them: `tea/read`.
 *
 * @example
 * const cognito = Providers.cognito({ region, userPoolId, clients: [clientId] })
 * const protection = Protect.make({ resource, verify: TokenVerifier.jwt(cognito.jwt), scopes: ["tea/read"] })
 */
export const cognito = (options: CognitoOptions): JwtProvider => {
  const { clients = [], scopes } = options
  const region = checkSegment("cognito", "region", options.region)
  const issuer = `https://cognito-idp.${region}.amazonaws.com/${
    checkSegment("cognito", "userPoolId", options.userPoolId)
  }`
  return jwtProvider("Cognito", issuer, options, { jwksUri: `${issuer}/.well-known/jwks.json`, clients }, {
    oauth: { assumePkce: [issuer], scopes },
    // It gives refresh tokens without `offline_access`, and refuses that scope.
    upstream: { name: "Cognito", issuer, scope: "openid profile" }
  })
}

/** Options of `keycloak`. */
export interface KeycloakOptions extends ScopeOptions {
  /** The address of Keycloak, with its path if it has one: `https://login.example`. */
  readonly url: string
  /** The name of the realm, as it is in the addresses of its pages. */
  readonly realm: string
  /** The audiences that your mapper adds, where they are not the resource. None by default. */
  readonly audiences?: ReadonlyArray<string> | undefined
}

/**
 * Keycloak, with a realm.
 *
 * - It does not implement resource indicators (RFC 8707) unless an experimental feature is on. A mapper in a client scope
 *   must add the resource to `aud`. Without it, tokens have no audience or `account`, and are refused.
 * - Anonymous registration is restricted by the policy of trusted hosts. Client ID metadata documents are experimental.
 *
 * @example
 * const keycloak = Providers.keycloak({ url: "https://login.example", realm: "tea" })
 * const protection = Protect.make({ resource, verify: TokenVerifier.jwt(keycloak.jwt) })
 */
export const keycloak = (options: KeycloakOptions): JwtProvider => {
  const { audiences = [], realm } = options
  const issuer = `${checkUrl("keycloak", "url", options.url)}/realms/${encodeURIComponent(realm)}`
  return jwtProvider("Keycloak", issuer, options, { audiences }, {
    upstream: { name: "Keycloak", issuer, scope: "openid profile" }
  })
}

/** Options of `workos`. */
export interface WorkosOptions extends ScopeOptions {
  /** The domain of AuthKit: `acme.authkit.app`, or a domain of your own. */
  readonly domain: string
}

/**
 * WorkOS AuthKit.
 *
 * - Client ID metadata documents and registration must be enabled in its dashboard.
 * - The resource must be a resource indicator in its dashboard, or it does not become the audience.
 *
 * @example
 * const workos = Providers.workos({ domain: "acme.authkit.app" })
 * const protection = Protect.make({ resource, verify: TokenVerifier.jwt(workos.jwt) })
 */
export const workos = (options: WorkosOptions): JwtProvider => {
  const issuer = `https://${checkHost("workos", options.domain, "acme.authkit.app")}`
  return jwtProvider("WorkOS", issuer, options, { jwksUri: `${issuer}/oauth2/jwks` })
}
