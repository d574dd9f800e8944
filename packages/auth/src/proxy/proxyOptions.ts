/** The options of a proxy. `Proxy` exports them. */
import type * as Duration from "effect/Duration"
import type * as Redacted from "effect/Redacted"
import type { JSONWebKeySet } from "jose"
import type { Outbound } from "../shared/Outbound.ts"
import type * as Protect from "../server/Protect.ts"
import type { KeyOptions } from "../server/tokens/keySet.ts"
import type { UpstreamOptions } from "./upstream.ts"

/** An identity provider whose assertions (ID-JAG) are accepted. */
export interface IdentityProvider extends KeyOptions {
  /** Its issuer, as in `iss` of its assertions. It is compared as text. */
  readonly issuer: string
  /** The address of its keys: `jwks_uri` of the issuer's metadata by default. */
  readonly jwksUri?: string | undefined
  /** The accepted algorithms, all asymmetric: those of `TokenVerifier.jwt` by default. */
  readonly algorithms?: ReadonlyArray<string> | undefined
  /** The scopes that its assertions can allow: all of the proxy's `scopes` by default. */
  readonly scopes?: ReadonlyArray<string> | undefined
  /** The scopes of an assertion that names none: none by default, and then such an assertion is refused. */
  readonly defaultScopes?: ReadonlyArray<string> | undefined
  /** How much its clock may differ: 5 seconds by default. Raise it for a clock that is not synchronized. */
  readonly clockTolerance?: Duration.Input | undefined
}

/** A client that was registered by hand. It has a secret or keys, or it is a public client. */
export interface RegisteredClient {
  readonly clientName: string
  /** For `client_secret_basic`, or for `tokenEndpointAuthMethod`. */
  readonly clientSecret?: Redacted.Redacted | undefined
  /** The public keys of its assertions (`private_key_jwt`). */
  readonly jwks?: JSONWebKeySet | undefined
  readonly tokenEndpointAuthMethod?: "client_secret_basic" | "client_secret_post" | undefined
  /** The addresses that people are sent to after their sign-in. Without one the client cannot sign people in. */
  readonly redirectUris?: ReadonlyArray<string> | undefined
}

/** The options of a proxy: those of `Protect` that it does not choose itself, and its own. */
export interface Options extends Omit<Protect.Options, "authorizationServerMetadata" | "resource" | "verify"> {
  /**
   * The address of the endpoint, as clients use it: the identifier of the server, and the audience of its tokens. The
   * proxy answers at its origin, so the origin belongs to this server alone.
   */
  readonly resource: string
  /** The scopes that clients can ask for. They are this server's own, not those of the upstream. */
  readonly scopes: ReadonlyArray<string>
  /** The scopes of a request without `scope`: all of `scopes` by default. */
  readonly defaultScopes?: ReadonlyArray<string> | undefined
  /** The authorization server of the accounts, where this server is registered by hand. */
  readonly upstream: UpstreamOptions
  /**
   * Clients that you registered by hand, beside those that register themselves. The keys of the object are their ids.
   * A client with redirect URIs signs people in; a client with a secret or keys can present identity assertions.
   */
  readonly clients?: Readonly<Record<string, RegisteredClient>> | undefined
  /**
   * The identity providers of enterprises whose assertions (ID-JAG) are exchanged for tokens, without consent and without
   * the upstream: see the extension `io.modelcontextprotocol/enterprise-managed-authorization`. The client is authenticated
   * by a secret or a key. None by default, and then the grant is not supported.
   */
  readonly identityProviders?: ReadonlyArray<IdentityProvider> | undefined
  /**
   * The secrets that everything in the store is encrypted with, of at least 32 bytes each. The first encrypts, all
   * decrypt: to rotate, add the new key in second place on every instance, then move it to first place. On loopback one
   * random key by default; a proxy on another host does not start without keys.
   */
  readonly keys?: ReadonlyArray<Redacted.Redacted> | undefined
  /** The name of the server on the consent page: its host by default. */
  readonly serverName?: string | undefined
  /**
   * The redirect URIs that clients can register: exact addresses, and `loopback` for every port and path of http on
   * `localhost`, `127.0.0.1` and `[::1]`. By default every https address, loopback, and private schemes of applications.
   */
  readonly redirectUris?: ReadonlyArray<string> | undefined
  /**
   * Whether clients can register themselves (RFC 7591). True by default, for clients without a metadata document: 2026-07-28
   * deprecates it.
   */
  readonly dynamicRegistration?: boolean | undefined
  /**
   * Whether a client ID can be the https address of a metadata document: from any host by default, or from the hosts of a
   * list (`["claude.ai", "vscode.dev"]`). Documents have at most 5,120 bytes and are cached as their headers say, for
   * between 30 seconds and a day.
   */
  readonly clientIdMetadataDocuments?: boolean | ReadonlyArray<string> | undefined
  /**
   * The requests for metadata documents and key sets of clients. By default `NodeOutbound.make()`, which refuses private
   * addresses: anybody can name an address to fetch.
   */
  readonly outbound?: Outbound | undefined
  /**
   * How many sign-ins one network address can begin in a minute at one instance, and how often it can answer the consent
   * page: 60 by default. Each is a record in the store until `signInTimeout`. A third as many clients can register, or have
   * their metadata documents fetched. Above, 429 with `Retry-After`, and for documents 400. Where addresses are not known
   * (`WebHttp` without `address`), all clients together can do so 50 times as often. Raise it if many people share one
   * address.
   *
   * @example
   * Proxy.make({ ...options, maxSignInsPerMinute: 600 })
   */
  readonly maxSignInsPerMinute?: number | undefined
  /** How long access tokens last: 10 minutes by default. Raise it for clients that cannot refresh. */
  readonly accessTokenLifetime?: Duration.Input | undefined
  /**
   * How long refresh tokens and their grants last: 720 hours by default. Then the person signs in once again. Lower it
   * where people leave the organization unnoticed.
   */
  readonly refreshTokenLifetime?: Duration.Input | undefined
  /**
   * A token of the upstream with a shorter remaining lifetime is refreshed before it is used: 30 seconds by default. Raise
   * it for handlers that use a token for longer.
   */
  readonly minTokenLifetime?: Duration.Input | undefined
  /**
   * How long a person may take from the request of the client to the end of the sign-in: 10 minutes by default. Raise it
   * for an upstream whose sign-ins need an approval.
   */
  readonly signInTimeout?: Duration.Input | undefined
}
