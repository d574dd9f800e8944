/**
 * Presets for identity providers: what each of them needs that the specification does not say, as plain values.
 *
 * A preset has a part for each place. Spread it there, and write your own options after it:
 *
 * - `oauth` into the options of `OAuth.make`, and `grant` into those of `Grant.authorizationCode`, in a client;
 * - `jwt` into those of `TokenVerifier.jwt`, or the result of `verifier` into those of `TokenVerifier.make`, and `protect` into
 *   those of `protect`, in a server.
 *
 * The presets follow the documentation of the providers and are tested with scripts that behave in the same way, and not with the
 * providers themselves.
 */
import * as Core from "@skein/auth/Providers"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Principal } from "../base/http.ts"
import type { FetchOptions, JwtOptions, OwnOptions, VerifiedToken } from "./tokenVerifier.ts"

/** The parts of a preset that every provider has. */
export interface Provider {
  /** The name that people know. */
  readonly name: string
  /** The issuer of the authorization server, as text: `issuer` of a client that you registered there by hand. */
  readonly issuer: string
  /** Options of `OAuth.make`. */
  readonly oauth: {
    readonly assumePkce?: ReadonlyArray<string> | undefined
    readonly resource?: string | undefined
    readonly scopes?: ReadonlyArray<string> | undefined
  }
  /** Options of `Grant.authorizationCode`. */
  readonly grant: { readonly authorizationParameters?: { readonly [name: string]: string } | undefined }
}

/** A provider whose access tokens are signed JWTs. */
export interface JwtProvider extends Provider {
  /** Options of `TokenVerifier.jwt`. */
  readonly jwt: JwtOptions
  /** Options of `protect`. */
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

/** Options of `github`. */
export interface GithubOptions extends ScopeOptions {
  /** The address of an Enterprise Server: `https://github.example`. GitHub's own by default. */
  readonly url?: string | undefined
}

/** Options of the verifier of GitHub's tokens. */
export interface GithubVerifierOptions extends FetchOptions {
  /** The client ID of your OAuth app or GitHub App. Tokens of other applications are refused. */
  readonly clientId: string
  /** Its secret. It is sent to GitHub with each token. */
  readonly clientSecret: string
}

/** Options of the verifier of Google's tokens. */
export interface GoogleVerifierOptions extends FetchOptions {
  /** The client IDs of your applications. Tokens of other applications are refused. */
  readonly clientIds: ReadonlyArray<string>
}

/** Options of `entra`. */
export interface EntraOptions extends ScopeOptions {
  /**
   * The directory (tenant) ID, whose tokens are accepted. Or `organizations` or `common`, for accounts of several directories: then
   * `tenants` is needed.
   */
  readonly tenant: string
  /** The IDs of several directories whose tokens are accepted, or `"any"`. */
  readonly tenants?: ReadonlyArray<string> | "any" | undefined
  /** The application (client) ID of the registration that stands for your MCP server. */
  readonly clientId: string
  /** Its Application ID URI: `api://<clientId>` by default. */
  readonly applicationIdUri?: string | undefined
  /** The version of the access tokens: both by default. Tokens of version 1 have another issuer. */
  readonly tokenVersion?: 1 | 2 | undefined
}

/** The preset of Entra. */
export interface EntraProvider extends JwtProvider {
  /** For `protect`: the principal with an `id` that does not change, and with the scopes that have the URI. */
  readonly protect: { readonly principal: (token: VerifiedToken) => Principal }
  /** A scope as clients must request it: `api://<clientId>/tea.read` for `tea.read`. */
  readonly scope: (name: string) => string
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

/** Options of `auth0`. */
export interface Auth0Options extends ScopeOptions {
  /** The domain of your tenant: `acme.eu.auth0.com`, or a domain of your own. */
  readonly domain: string
  /**
   * The identifier of the API, which clients send as `audience`. Needed if the tenant has no Resource Parameter Compatibility
   * Profile, or if the identifier is not the resource. None by default.
   */
  readonly audience?: string | undefined
}

/** Options of `cognito`. */
export interface CognitoOptions extends ScopeOptions {
  /** The region of the user pool: `eu-central-1`. */
  readonly region: string
  /** The ID of the user pool: `eu-central-1_AbCdEf123`. */
  readonly userPoolId: string
  /**
   * The app clients whose tokens are accepted without an audience. They must be for this MCP server only. None by default: then a
   * token needs the resource as its audience.
   */
  readonly clients?: ReadonlyArray<string> | undefined
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

/** Options of `workos`. */
export interface WorkosOptions extends ScopeOptions {
  /** The domain of AuthKit: `acme.authkit.app`, or a domain of your own. */
  readonly domain: string
}

/** A preset whose verifier has an async function. */
const withVerifier = <CoreOptions, Options>(
  preset: Core.OpaqueProvider<CoreOptions>,
  optionsOf: (options: Options) => CoreOptions
): OpaqueProvider<Options> => ({
  ...preset,
  verifier: (options) => {
    const { verify, ...own } = preset.verifier(optionsOf(options))
    return {
      ...own,
      verify: async (token, context) => {
        const verified = verify(token, context)
        return Effect.isEffect(verified) ? Effect.runPromise(verified) : verified
      }
    }
  }
})

/**
 * GitHub, with an OAuth app or a GitHub App that you registered. It registers no clients, and its tokens are opaque and name no
 * resource: `verifier` asks GitHub whether a token was issued to your application.
 *
 * @example
 * const verify = TokenVerifier.make(Providers.github().verifier({ clientId, clientSecret }))
 */
export const github = (options?: GithubOptions): OpaqueProvider<GithubVerifierOptions> =>
  withVerifier(Core.github(options), (own) => ({ ...own, clientSecret: Redacted.make(own.clientSecret) }))

/**
 * Google, with a client that you registered in its console. It registers no clients, and its tokens are opaque: `verifier` asks
 * Google for the client of a token, which needs the scope `openid`.
 *
 * @example
 * const verify = TokenVerifier.make(Providers.google().verifier({ clientIds: [clientId] }))
 */
export const google = (options?: ScopeOptions): OpaqueProvider<GoogleVerifierOptions> =>
  withVerifier(Core.google(options), (own) => own)

/**
 * Microsoft Entra ID, with one registration for the MCP server and one for each client. It registers no clients, and refuses a
 * `resource` parameter. Scopes need the URI of the application before them: use `scope`.
 *
 * @example
 * const entra = Providers.entra({ tenant, clientId })
 * const protection = protect({
 *   resource,
 *   verify: TokenVerifier.jwt(entra.jwt),
 *   scopes: [entra.scope("tea.read")],
 *   ...entra.protect
 * })
 */
export const entra = (options: EntraOptions): EntraProvider => Core.entra(options) as EntraProvider

/**
 * Okta, with a custom authorization server: one for each MCP server, because `aud` is its audience whatever clients request.
 *
 * @example
 * const okta = Providers.okta({ domain: "acme.okta.com", audiences: ["api://default"] })
 * const protection = protect({ resource, verify: TokenVerifier.jwt(okta.jwt), ...okta.protect })
 */
export const okta = (options: OktaOptions): JwtProvider => Core.okta(options) as JwtProvider

/**
 * Auth0, with an API for the MCP server. It ignores `resource` unless the tenant has the Resource Parameter Compatibility Profile.
 *
 * @example
 * const auth0 = Providers.auth0({ domain: "acme.eu.auth0.com" })
 * const protection = protect({ resource, verify: TokenVerifier.jwt(auth0.jwt) })
 */
export const auth0 = (options: Auth0Options): JwtProvider => Core.auth0(options) as JwtProvider

/**
 * Amazon Cognito, with a user pool. It registers no clients, and its access tokens have no `aud` on most plans. Scopes have the
 * identifier of their resource server before them: `tea/read`.
 *
 * @example
 * const cognito = Providers.cognito({ region, userPoolId, clients: [clientId] })
 * const protection = protect({ resource, verify: TokenVerifier.jwt(cognito.jwt), scopes: ["tea/read"] })
 */
export const cognito = (options: CognitoOptions): JwtProvider => Core.cognito(options) as JwtProvider

/**
 * Keycloak, with a realm. A mapper in a client scope must add the resource to `aud`.
 *
 * @example
 * const keycloak = Providers.keycloak({ url: "https://login.example", realm: "tea" })
 * const protection = protect({ resource, verify: TokenVerifier.jwt(keycloak.jwt) })
 */
export const keycloak = (options: KeycloakOptions): JwtProvider => Core.keycloak(options) as JwtProvider

/**
 * WorkOS AuthKit. Client ID metadata documents or registration must be enabled in its dashboard, and the resource must be a
 * resource indicator there.
 *
 * @example
 * const workos = Providers.workos({ domain: "acme.authkit.app" })
 * const protection = protect({ resource, verify: TokenVerifier.jwt(workos.jwt) })
 */
export const workos = (options: WorkosOptions): JwtProvider => Core.workos(options) as JwtProvider
