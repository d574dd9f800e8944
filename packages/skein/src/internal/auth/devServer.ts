/**
 * An authorization server for development and tests, and a person who signs in at it. It needs the package `oidc-provider`,
 * which the application installs.
 */
import type * as Core from "@skein/auth/DevServer"
import type { JsonObject } from "../base/messages.ts"
import type { Duration } from "../base/types.ts"

/** A person who can sign in. */
export interface DevUser {
  /** The name to sign in with. It is the subject (`sub`) of the user's tokens. */
  readonly name: string
  /** Further claims of the user's tokens, such as `name`, `email` or `groups`. */
  readonly claims?: JsonObject | undefined
}

/** Public keys as JSON (RFC 7517). */
export interface JsonWebKeySet {
  readonly keys: ReadonlyArray<JsonObject>
}

/** A client that is registered from the start (RFC 7591, 2). Others register themselves. */
export interface DevClient {
  readonly clientId: string
  /** Without a secret and without `jwks` it is a public client. */
  readonly clientSecret?: string | undefined
  /** The keys of a client that authenticates with `private_key_jwt`. */
  readonly jwks?: JsonWebKeySet | undefined
  readonly clientName?: string | undefined
  /** Redirect URIs. A native client may use another port of loopback (RFC 8252, 7.3). */
  readonly redirectUris?: ReadonlyArray<string> | undefined
  /**
   * The grants that the client may use. By default `authorization_code` and `refresh_token` with redirect URIs, and
   * `client_credentials` without.
   */
  readonly grantTypes?: ReadonlyArray<string> | undefined
  /** `native` by default. */
  readonly applicationType?: "native" | "web" | undefined
  /** By default the usual method for what the client has: `none`, `client_secret_basic` or `private_key_jwt`. */
  readonly tokenEndpointAuthMethod?: string | undefined
}

/** An issuer whose assertions the JWT bearer grant accepts (RFC 7523). */
export interface AssertionIssuer {
  readonly issuer: string
  readonly jwks: JsonWebKeySet
}

/** An event at the server. No event contains a token or a code. */
export type DevEvent =
  | { readonly type: "registration"; readonly clientId: string }
  | { readonly type: "authorization"; readonly clientId: string; readonly subject: string }
  | { readonly type: "token"; readonly clientId: string; readonly grantType: string }
  | { readonly type: "refreshReuse"; readonly clientId: string }
  | { readonly type: "revocation"; readonly clientId: string }
  | { readonly type: "refusal"; readonly event: string; readonly detail: JsonObject }

/** How often something happened at the server since its start. */
export interface DevCounts {
  /** Clients that registered themselves. */
  readonly registrations: number
  /** Codes that were issued: how often a person agreed. */
  readonly authorizations: number
  /** Answers of the token endpoint with an access token, of all grants. */
  readonly tokens: number
  /** Those of them that were refreshes. */
  readonly refreshes: number
  /** Uses of a refresh token that had been used before. Each one ends its grant. */
  readonly refreshReuses: number
  /** Tokens that were revoked. */
  readonly revocations: number
}

/** Options of `DevServer.start`. All are optional. */
export interface DevServerOptions {
  /** The port, or 0 for a free one. Default 0. */
  readonly port?: number | undefined
  /** The address of loopback: `127.0.0.1` (default), `::1` or `localhost`. Every other address is refused. */
  readonly host?: string | undefined
  /** The people who can sign in. By default `ada` and `grace`. */
  readonly users?: ReadonlyArray<DevUser> | undefined
  /** The scopes that clients can ask for, besides `openid` and `offline_access`. By default `mcp:read` and `mcp:write`. */
  readonly scopes?: ReadonlyArray<string> | undefined
  /** The scopes of a request without `scope`. By default the first of `scopes`. */
  readonly defaultScopes?: ReadonlyArray<string> | undefined
  /**
   * The resources that tokens can be issued for (RFC 8707), compared as text. By default every http address of loopback, and every
   * https address. If there is exactly one, it is the resource of a request that names none.
   */
  readonly resources?: ReadonlyArray<string> | undefined
  /** Clients that are registered from the start. */
  readonly clients?: ReadonlyArray<DevClient> | undefined
  /** Whether clients can register themselves (RFC 7591), which 2026-07-28 deprecates. Default `true`. */
  readonly dynamicRegistration?: boolean | undefined
  /** Whether a client ID can be the https URL of a metadata document. Default `true`. */
  readonly clientIdMetadataDocuments?: boolean | undefined
  /** Metadata documents by URL that the server has without fetching them, since a test has no server with https. */
  readonly metadataDocuments?: Readonly<Record<string, JsonObject>> | undefined
  /** How long access tokens last: 10 minutes by default, and at least one second. */
  readonly accessTokenLifetime?: Duration | undefined
  /** How long refresh tokens and their grants last: 720 hours by default, and at least one second. */
  readonly refreshTokenLifetime?: Duration | undefined
  /** Whether each refresh gives a new refresh token and ends the old one. Default `true`. */
  readonly rotateRefreshTokens?: boolean | undefined
  /** `jwt` (default, RFC 9068), or `opaque` for servers that introspect. */
  readonly accessTokenFormat?: "jwt" | "opaque" | undefined
  /** The algorithm of the tokens' signatures. Default `ES256`. */
  readonly signingAlgorithm?: "ES256" | "RS256" | "PS256" | "EdDSA" | undefined
  /** Whether proofs of DPoP at the token endpoint must have a nonce (RFC 9449, 8). Default `false`. */
  readonly requireDpopNonce?: boolean | undefined
  /** The issuers of assertions that the JWT bearer grant accepts. By default none, and the grant is not supported. */
  readonly assertionIssuers?: ReadonlyArray<AssertionIssuer> | undefined
  /** Signs in this user and agrees at once, without a page. For tests without a person. */
  readonly signInAs?: string | undefined
  /** Is called for everything that happens. It must not throw. */
  readonly onEvent?: ((event: DevEvent) => void) | undefined
}

/** The claims of a token that a test makes itself. */
export interface DevTokenOptions {
  /** The audience (`aud`). */
  readonly resource: string
  /** By default the first user. */
  readonly subject?: string | undefined
  /** Default `test`. */
  readonly clientId?: string | undefined
  /** By default all scopes of the server. */
  readonly scopes?: ReadonlyArray<string> | undefined
  /** As that of the server: 10 minutes by default. A negative one makes a token that has expired. */
  readonly accessTokenLifetime?: Duration | undefined
  /** Further claims, which replace those above. */
  readonly claims?: JsonObject | undefined
}

/** A development server that is running. */
export interface DevServer extends AsyncDisposable {
  /** The issuer, without a slash at the end: `http://127.0.0.1:4000`. */
  readonly issuer: string
  /** The scopes that clients can ask for. */
  readonly scopes: ReadonlyArray<string>
  /** The people who can sign in. */
  readonly users: ReadonlyArray<DevUser>
  /** Returns the counts of the events so far. */
  readonly counts: () => DevCounts
  /** Signs with a new key from now on. Keys of earlier tokens stay published. */
  readonly rotateKeys: () => Promise<void>
  /** Removes all grants: their refresh tokens work no longer. */
  readonly revokeAll: () => Promise<void>
  /** Issues a signed access token without a client, for tests of a protected server. */
  readonly issueToken: (options: DevTokenOptions) => Promise<string>
  /** Stops the server. */
  readonly close: () => Promise<void>
}

/** Starts authorization servers for development and tests. */
export const DevServer: {
  /**
   * Starts an authorization server on loopback, with users whose names you choose, and without passwords. It is a real one, so what
   * works with it works elsewhere; do not use it for anything that has to be protected. Rejects if its port is taken, its address
   * is not loopback, or an option is wrong.
   *
   * @example
   * const server = await DevServer.start({ port: 4000, scopes: ["tea:read", "tea:write"] })
   * const token = await server.issueToken({ resource: "http://127.0.0.1:3000/mcp", scopes: ["tea:read"] })
   */
  readonly start: (options?: DevServerOptions) => Promise<DevServer>
} = {
  start: async (options) => (await import("@skein/auth/DevServer")).start(options as Core.Options)
}
