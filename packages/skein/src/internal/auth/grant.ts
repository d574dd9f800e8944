/**
 * How an `OAuth` obtains tokens:
 *
 * - `authorizationCode`: a person signs in with a browser.
 * - `clientCredentials`: a job signs in as itself, with a secret or a private key.
 * - `jwtBearer`: a workload presents a token of its platform (RFC 7523).
 * - `identityAssertion`: the identity provider of an enterprise vouches for a person who is signed in there (ID-JAG).
 */
import * as Core from "@skein/auth/Grant"
import * as Redacted from "effect/Redacted"
import type { Opaque } from "../base/definition.ts"
import type { Awaitable } from "../base/types.ts"
import { type ClientAuthentication, redact, redactClient, type Secret } from "./secret.ts"

/** A way to obtain tokens that asks a person, so that `OAuth` needs a `signIn`. */
export interface PersonGrant extends Opaque<"PersonGrant"> {}

/** A way to obtain tokens without a person. */
export interface ProgramGrant extends Opaque<"ProgramGrant"> {}

/** A client that was registered with an authorization server by hand. */
export interface PreregisteredClient extends ClientAuthentication {
  /** The id that the authorization server gave it. */
  readonly clientId: string
  /**
   * The issuer of the authorization server that knows the client. With another one the sign-in fails with `IssuerMismatch`, and
   * nothing is sent there.
   */
  readonly issuer: string
  /** The redirect URIs of the registration. Empty by default: any that the `signIn` chooses. */
  readonly redirectUris?: ReadonlyArray<string> | undefined
}

/** Options of `authorizationCode`. */
export interface AuthorizationCodeOptions {
  /** The name of your program, which authorization servers show to the person. */
  readonly clientName: string
  /**
   * The URL of your client ID metadata document, an https URL with a path. It is used with authorization servers that support such
   * documents, and saves the registration.
   */
  readonly clientMetadataUrl?: string | undefined
  /** The redirect URIs of that document. Empty by default: any that the `signIn` chooses. */
  readonly redirectUris?: ReadonlyArray<string> | undefined
  /** The client, if it was registered by hand. Nothing else is tried then. */
  readonly client?: PreregisteredClient | undefined
  /** The website of your program, for dynamic registrations (`client_uri`), which 2026-07-28 deprecates. */
  readonly clientUri?: string | undefined
  /** Parameters of the authorization request that a provider needs, such as `access_type: "offline"`. */
  readonly authorizationParameters?: { readonly [name: string]: string } | undefined
  /** Parameters that a provider needs in its token requests, such as `audience`. */
  readonly tokenParameters?: { readonly [name: string]: string } | undefined
}

/** Options of `clientCredentials`. One of `clientSecret` and `privateKey` is required. */
export interface ClientCredentialsOptions extends ClientAuthentication {
  /** The id that the authorization server gave the program. */
  readonly clientId: string
  /**
   * The issuer of the authorization server that knows the client; with another one the request fails with `IssuerMismatch`.
   * `"discovered"` trusts the one that the MCP server names: for servers that you run yourself, because any other could have the
   * secret sent to its own.
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

/** Options of `jwtBearer`. */
export interface JwtBearerOptions extends ClientAuthentication {
  /** The client that presents the assertion. None by default: the assertion alone names the workload. */
  readonly clientId?: string | undefined
  /**
   * The issuer of the authorization server; with another one the request fails with `IssuerMismatch`. Required with
   * `clientSecret`, where `"discovered"` trusts the one that the MCP server names. Without it any authorization server is asked:
   * `assertion` must then make a JWT for `request.issuer`.
   */
  readonly issuer?: string | undefined
  /** Returns a JWT that the authorization server trusts. It runs once for each token. */
  readonly assertion: (request: AssertionRequest) => Awaitable<string>
}

/** The identity provider of an enterprise, and a person who is signed in there. */
export interface IdentityProvider extends ClientAuthentication {
  /** The issuer of the identity provider, as text. */
  readonly issuer: string
  /** The client that the ID token was issued to. */
  readonly clientId: string
  /** The token endpoint. Found from the metadata of the issuer by default. */
  readonly tokenEndpoint?: string | undefined
  /** The ID token of the person. */
  readonly idToken: Secret
}

/** Options of `identityAssertion`. */
export interface IdentityAssertionOptions extends ClientAuthentication {
  /** The client at the authorization server of the MCP server. */
  readonly clientId: string
  /**
   * The issuer of that authorization server; with another one the request fails with `IssuerMismatch`. Any by default: the
   * identity provider decides for which ones it makes assertions. Required with `clientSecret`.
   */
  readonly issuer?: string | undefined
  /** The identity provider, and the person. */
  readonly identityProvider: IdentityProvider
}

const opaque = <G extends PersonGrant | ProgramGrant>(grant: Core.Grant<unknown>): G => grant as unknown as G

/**
 * A person signs in with a browser: authorization code with PKCE (OAuth 2.1, 4.1). The client is the one that was registered by
 * hand, else the client ID metadata document, else a dynamic registration, which is deprecated since 2026-07-28.
 *
 * @example
 * const grant = Grant.authorizationCode({ clientName: "Tea House", clientMetadataUrl: "https://tea.example/client.json" })
 */
export const authorizationCode = ({ client, ...options }: AuthorizationCodeOptions): PersonGrant =>
  opaque(Core.authorizationCode(client === undefined ? options : { ...options, client: redactClient(client) }))

/**
 * A program signs in as itself (OAuth 2.1, 4.2), with a secret or a signed assertion.
 *
 * @example
 * const grant = Grant.clientCredentials({
 *   clientId: "job",
 *   clientSecret: process.env.MCP_CLIENT_SECRET,
 *   issuer: "https://login.example"
 * })
 */
export const clientCredentials = (options: ClientCredentialsOptions): ProgramGrant =>
  opaque(Core.clientCredentials(redactClient(options)))

/**
 * A workload presents a JWT of its platform to the authorization server (RFC 7523, 2.1). A refused assertion is not presented
 * again.
 *
 * @example
 * const grant = Grant.jwtBearer({ clientId: "pod", issuer, assertion: () => readFile("/var/run/secrets/tokens/mcp", "utf8") })
 */
export const jwtBearer = ({ assertion, ...options }: JwtBearerOptions): ProgramGrant =>
  opaque(Core.jwtBearer({
    ...redactClient(options),
    assertion: async (request) => Redacted.make(await assertion(request))
  }))

/**
 * The identity provider of an enterprise exchanges the ID token of a person for an assertion (ID-JAG), which the authorization
 * server of the MCP server exchanges for a token. The person is not asked.
 *
 * @example
 * const grant = Grant.identityAssertion({
 *   clientId: "agent-at-tea",
 *   clientSecret: process.env.TEA_SECRET,
 *   issuer: "https://login.tea.example",
 *   identityProvider: { issuer: "https://idp.acme.example", clientId: "agent", idToken: session.idToken }
 * })
 */
export const identityAssertion = ({ identityProvider, ...options }: IdentityAssertionOptions): ProgramGrant =>
  opaque(Core.identityAssertion({
    ...redactClient(options),
    identityProvider: { ...redactClient(identityProvider), idToken: redact(identityProvider.idToken) }
  }))
