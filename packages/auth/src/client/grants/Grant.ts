/**
 * How an `OAuth` obtains tokens: one value per grant of OAuth 2.1 and its extensions.
 *
 * - `authorizationCode`: a person signs in with a browser.
 * - `clientCredentials`: a job signs in as itself, with a secret or a private key.
 * - `jwtBearer`: a workload presents a token of its platform (RFC 7523).
 * - `identityAssertion`: the identity provider of an enterprise vouches for a person who is signed in there (ID-JAG).
 *
 * Secrets are `Redacted`, or an effect or an async function that returns one, such as a `Config`: see `Secret`. The type parameter of a
 * `Grant` is the services that it needs; `OAuth.make` requires them.
 *
 * @example
 * const person = Grant.authorizationCode({ clientName: "Tea House", clientMetadataUrl: "https://tea.example/client.json" })
 * const job = Grant.clientCredentials({
 *   clientId: "job",
 *   clientSecret: Config.Redacted("MCP_CLIENT_SECRET"),
 *   issuer: "https://login.example"
 * })
 */
import type { Awaitable } from "@skein/runtime/Awaitable"
import type * as Redacted from "effect/Redacted"
import type { PrivateKey, Secret } from "../../shared/Secret.ts"
import type { SignIn } from "./SignIn.ts"

export type { PrivateKey, Secret } from "../../shared/Secret.ts"

/** How a client that was registered by hand authenticates. Without a secret and a key it is a public client. */
export interface ClientAuthentication<R = never> {
  /** The secret (`client_secret_basic` or `client_secret_post`, as the authorization server supports). */
  readonly clientSecret?: Secret<R> | undefined
  /** The key that signs an assertion for each token request (`private_key_jwt`, RFC 7523, 2.2). */
  readonly privateKey?: PrivateKey<R> | undefined
}

/** A client that was registered with an authorization server by hand. */
export interface PreregisteredClient<R = never> extends ClientAuthentication<R> {
  /** The id that the authorization server gave it. */
  readonly clientId: string
  /**
   * The issuer of the authorization server that knows the client. With another one the sign-in fails with
   * `IssuerMismatch`, and nothing is sent there.
   */
  readonly issuer: string
  /** The redirect URIs of the registration. Empty by default: any that the `SignIn` chooses. */
  readonly redirectUris?: ReadonlyArray<string> | undefined
}

/** The options of `authorizationCode`. */
export interface AuthorizationCodeOptions<R = never> {
  /** The name of your program, which authorization servers show to the person. */
  readonly clientName: string
  /**
   * The URL of your client ID metadata document. It is used with authorization servers that support such documents, and
   * saves the registration (2025-11-25, Client ID Metadata Documents). An https URL with a path.
   */
  readonly clientMetadataUrl?: string | undefined
  /** The redirect URIs of that document. Empty by default: any that the `SignIn` chooses. */
  readonly redirectUris?: ReadonlyArray<string> | undefined
  /** The client, if it was registered by hand. Nothing else is tried then. */
  readonly client?: PreregisteredClient<R> | undefined
  /** The website of your program, for dynamic registrations (`client_uri`), which 2026-07-28 deprecates. */
  readonly clientUri?: string | undefined
  /**
   * Parameters of the authorization request that a provider needs, such as `access_type: "offline"`. They replace no
   * parameter of OAuth itself.
   */
  readonly authorizationParameters?: { readonly [name: string]: string } | undefined
  /**
   * Parameters that a provider needs in its token requests, for a code and in a refresh, such as `audience`. They replace
   * no parameter of OAuth itself. `scope` is added to a refresh that is refused without it.
   */
  readonly tokenParameters?: { readonly [name: string]: string } | undefined
}

/** The options of `clientCredentials`. One of `clientSecret` and `privateKey` is required. */
export interface ClientCredentialsOptions<R = never> extends ClientAuthentication<R> {
  /** The id that the authorization server gave the program. */
  readonly clientId: string
  /**
   * The issuer of the authorization server that knows the client; with another one the request fails with
   * `IssuerMismatch`. `"discovered"` trusts the one that the MCP server names: for servers that you run yourself,
   * because any other could have the secret sent to its own.
   */
  readonly issuer: string
}

/** The purpose of a requested assertion. */
export interface AssertionRequest {
  /** The issuer of the authorization server that will receive the assertion: its audience. */
  readonly issuer: string
  /** The MCP server. */
  readonly resource: string
  /** The scopes of the token. */
  readonly scopes: ReadonlyArray<string>
}

/** The options of `jwtBearer`. */
export interface JwtBearerOptions<R = never> extends ClientAuthentication<R> {
  /** The client that presents the assertion. None by default: the assertion alone names the workload. */
  readonly clientId?: string | undefined
  /**
   * The issuer of the authorization server; with another one the request fails with `IssuerMismatch`. Required with
   * `clientSecret`, where `"discovered"` trusts the one that the MCP server names. Without it any authorization server is
   * asked: `assertion` must then make a JWT for `request.issuer`, because one for another audience could be used there.
   */
  readonly issuer?: string | undefined
  /** Returns a JWT that the authorization server trusts, by an effect or a promise. It runs once for each token. */
  readonly assertion: (request: AssertionRequest) => Awaitable<Redacted.Redacted, unknown, R>
}

/** The identity provider of an enterprise, and a person who is signed in there. */
export interface IdentityProvider<R = never> extends ClientAuthentication<R> {
  /** The issuer of the identity provider, as text. */
  readonly issuer: string
  /** The client that the ID token was issued to. */
  readonly clientId: string
  /** The token endpoint. Found from the metadata of the issuer by default. */
  readonly tokenEndpoint?: string | undefined
  /** The ID token of the person. */
  readonly idToken: Secret<R>
}

/** The options of `identityAssertion`. */
export interface IdentityAssertionOptions<R = never> extends ClientAuthentication<R> {
  /** The client at the authorization server of the MCP server. */
  readonly clientId: string
  /**
   * The issuer of that authorization server; with another one the request fails with `IssuerMismatch`. Any by default: the
   * identity provider decides for which ones it makes assertions. Required with `clientSecret`, where `"discovered"`
   * trusts the one that the MCP server names.
   */
  readonly issuer?: string | undefined
  /** The identity provider, and the person. */
  readonly identityProvider: IdentityProvider<R>
}

/** The options of a grant, by its kind. */
export type Definition<R = never> =
  | { readonly _tag: "AuthorizationCode"; readonly options: AuthorizationCodeOptions<R> }
  | { readonly _tag: "ClientCredentials"; readonly options: ClientCredentialsOptions<R> }
  | { readonly _tag: "JwtBearer"; readonly options: JwtBearerOptions<R> }
  | { readonly _tag: "IdentityAssertion"; readonly options: IdentityAssertionOptions<R> }

/** A way to obtain tokens, which needs the services `R`. */
export interface Grant<out R = never> {
  readonly definition: Definition<R>
}

/**
 * A person signs in with a browser: authorization code with PKCE (OAuth 2.1, 4.1). The client is the one that was
 * registered by hand, else the client ID metadata document, else a dynamic registration. Publish a document and set
 * `clientMetadataUrl`: dynamic registration is deprecated since 2026-07-28, and remains for authorization servers that do
 * not support documents.
 *
 * @example
 * Grant.authorizationCode({
 *   clientName: "Tea House",
 *   client: { clientId: "abc", clientSecret: Config.Redacted("CLIENT_SECRET"), issuer: "https://login.example" }
 * })
 */
export const authorizationCode = <R = never>(options: AuthorizationCodeOptions<R>): Grant<R | SignIn> => ({
  definition: { _tag: "AuthorizationCode", options }
})

/**
 * A program signs in as itself (OAuth 2.1, 4.2), with a secret or a signed assertion. Declared to servers as
 * `io.modelcontextprotocol/oauth-client-credentials`.
 *
 * @example
 * Grant.clientCredentials({
 *   clientId: "job",
 *   privateKey: { pem: Config.Redacted("KEY"), algorithm: "ES256" },
 *   issuer: "https://login.example"
 * })
 */
export const clientCredentials = <R = never>(options: ClientCredentialsOptions<R>): Grant<R> => ({
  definition: { _tag: "ClientCredentials", options }
})

/**
 * A workload presents a JWT of its platform to the authorization server (RFC 7523, 2.1). A refused assertion is not
 * presented again, and no other grant is tried.
 *
 * @example
 * Grant.jwtBearer({
 *   clientId: "pod",
 *   issuer: "https://login.example",
 *   assertion: () => Effect.map(fs.readFileString("/var/run/secrets/tokens/mcp"), Redacted.make)
 * })
 */
export const jwtBearer = <R = never>(options: JwtBearerOptions<R>): Grant<R> => ({
  definition: { _tag: "JwtBearer", options }
})

/**
 * The identity provider of an enterprise exchanges the ID token of a person for an assertion (ID-JAG), which the
 * authorization server of the MCP server exchanges for a token. The person is not asked. Declared to servers as
 * `io.modelcontextprotocol/enterprise-managed-authorization`.
 *
 * @example
 * Grant.identityAssertion({
 *   clientId: "agent-at-tea",
 *   clientSecret: Config.Redacted("TEA_SECRET"),
 *   issuer: "https://login.tea.example",
 *   identityProvider: { issuer: "https://idp.acme.example", clientId: "agent", idToken: session.idToken }
 * })
 */
export const identityAssertion = <R = never>(options: IdentityAssertionOptions<R>): Grant<R> => ({
  definition: { _tag: "IdentityAssertion", options }
})
