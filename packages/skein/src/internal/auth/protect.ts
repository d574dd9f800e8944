/**
 * Protects a server with access tokens: it is an OAuth 2.1 resource server (RFC 6750, 9068, 9449 and 9728).
 */
import * as Core from "@skein/auth/Protect"
import * as Redacted from "effect/Redacted"
import type { Principal, Protection } from "../base/http.ts"
import type { Duration } from "../base/types.ts"
import { coreVerifier, protectionOf } from "./core.ts"
import type { ReplayStore } from "./replayStore.ts"
import type { Hierarchy } from "./scopes.ts"
import type { FetchOptions, TokenVerifier, VerifiedToken } from "./tokenVerifier.ts"

/** The header in which a proxy forwards the certificate of its client. */
export interface ForwardedCertificate {
  /** The name of the header: `client-cert` by default (RFC 9440). */
  readonly header?: string | undefined
  /**
   * How the certificate is written: `"rfc9440"` by default, a byte sequence. `"pem"`: a PEM text, URL-encoded, as nginx
   * (`$ssl_client_escaped_cert`) and AWS load balancers write it.
   */
  readonly format?: "rfc9440" | "pem" | undefined
  /**
   * The networks of the proxies, in CIDR notation. The header counts only on their connections. They must verify the
   * certificate, and remove the header from the requests of clients.
   */
  readonly proxies: ReadonlyArray<string>
}

/** How tokens that are bound to a key of the client are accepted (RFC 9449). */
export interface DpopOptions {
  /** Refuses tokens that are not bound. False by default. */
  readonly require?: boolean | undefined
  /** The accepted algorithms of proofs: all asymmetric ones by default. */
  readonly algorithms?: ReadonlyArray<string> | undefined
  /** How much the clock of a client may differ: 5 seconds by default. */
  readonly clockTolerance?: Duration | undefined
  /** Demands nonces of this server in proofs. Off by default. */
  readonly nonces?: NonceOptions | undefined
}

/** How nonces are made. */
export interface NonceOptions {
  /**
   * The key of the nonces, of at least 32 bytes of UTF-8. Instances that serve one resource must share it. By default each
   * process has a random one.
   */
  readonly secret?: string | undefined
}

/** Bounds of failed authentications. */
export interface FailureOptions {
  /**
   * Failures of one network address in 10 seconds: 20 by default. At the bound its requests are answered with 429 until the
   * window is over; known tokens are still accepted. 0 turns this off. Raise it where many users share one address.
   */
  readonly maxFailures?: number | undefined
}

/** The metadata of the authorization server at the origin of the resource. */
export interface IssuerMetadataOptions extends FetchOptions {
  /** The authorization server: the first issuer of the verifier by default. */
  readonly issuer?: string | undefined
}

/** Options of `protect`. */
export interface ProtectOptions extends FailureOptions {
  /**
   * The identifier of the server: the address of its endpoint, as clients use it. It is published and compared as text, and is
   * the audience of tokens. An https address without a fragment, or an http address on loopback.
   */
  readonly resource: string
  /**
   * Allows an `http:` resource on another host than loopback, for a server inside a private network: anybody on the way can
   * read its tokens. Off by default.
   */
  readonly allowHttp?: boolean | undefined
  /** Verifies tokens: `TokenVerifier.jwt`, `introspection`, `make` or `anyOf`. */
  readonly verify: TokenVerifier
  /**
   * How long a token that was verified is accepted without a verification: 60 seconds by default, and at most until it expires.
   * Lower it for issuers that revoke tokens. 0 verifies each token each time.
   */
  readonly verifiedLifetime?: Duration | undefined
  /** The scopes that every request needs: none by default. Challenges name them, so that clients request them. */
  readonly scopes?: ReadonlyArray<string> | undefined
  /** The scopes in the metadata, which clients request if a challenge names none: `scopes` by default. */
  readonly scopesSupported?: ReadonlyArray<string> | undefined
  /** The scopes that others imply: `Scopes.implies({ … })`. None by default. */
  readonly hierarchy?: Hierarchy | undefined
  /**
   * Accepts tokens that are bound to a key (DPoP), with one proof per request. `"require"` refuses all other tokens. Without it
   * a bound token is refused. Off by default.
   */
  readonly dpop?: "accept" | "require" | DpopOptions | undefined
  /** The DPoP proofs that were used: in the memory of this process by default. Several instances must share a store. */
  readonly replayStore?: ReplayStore | undefined
  /**
   * The header in which proxies forward the certificate of a client, for tokens that are bound to it (RFC 8705). By default the
   * certificate is that of the connection, if TLS ends in this process.
   */
  readonly forwardedCertificate?: ForwardedCertificate | undefined
  /**
   * Makes the principal of a token. By default it has the `id` that `principalId` returns. `client`, `scopes` and `expiresAt`
   * are added. `scopes` of your own replace those of the token: roles can become scopes. It runs once per verification.
   */
  readonly principal?: ((token: VerifiedToken) => Principal) | undefined
  /** The name of the server for users, in the metadata. */
  readonly resourceName?: string | undefined
  /** The address of the documentation of the server, in the metadata. */
  readonly resourceDocumentation?: string | undefined
  /**
   * Answers `/.well-known/oauth-authorization-server` with the metadata of the authorization server, for clients that only know
   * 2025-03-26. Their requests name no resource, so the authorization server must issue tokens for yours without being asked.
   * Off by default.
   */
  readonly authorizationServerMetadata?: boolean | IssuerMetadataOptions | undefined
}

const coreOptions = ({ dpop, verify, ...rest }: Omit<ProtectOptions, "replayStore">): Core.Options => {
  const secret = typeof dpop === "object" ? dpop.nonces?.secret : undefined
  return {
    ...rest,
    verify: coreVerifier(verify),
    dpop: typeof dpop !== "object" || dpop.nonces === undefined
      ? dpop as Exclude<Core.Options["dpop"], Core.DpopMode>
      : { ...dpop, nonces: secret === undefined ? {} : { secret: Redacted.make(secret) } }
  }
}

/**
 * Makes a protection: the option `protection` of a server over HTTP. It publishes the metadata of the resource, so that clients
 * find the authorization server, verifies the token of each request, and makes the principal. Handlers cannot read the token.
 * Throws if an option is not valid.
 *
 * A request without a valid token is answered with 401 and a challenge, one without the scopes with 403, one of an address with
 * too many failures with 429, and one whose token cannot be verified now with 503.
 *
 * @example
 * const protection = protect({
 *   resource: "https://tea.example/mcp",
 *   verify: TokenVerifier.jwt({ issuer: "https://login.example" }),
 *   scopes: ["tea:read"],
 *   hierarchy: Scopes.implies({ "tea:write": ["tea:read"] })
 * })
 * server.runHttp({ port: 3000, allowedHosts: ["tea.example"], protection })
 */
export const protect = ({ replayStore, ...options }: ProtectOptions): Protection =>
  protectionOf(Core.make(coreOptions(options)), replayStore)

/** Options of `principalId`. */
export interface PrincipalIdOptions {
  /** Whether the id has the client too: then two programs of one user do not share sessions and tasks. False by default. */
  readonly perClient?: boolean | undefined
}

/**
 * The default id of a principal: the issuer and the subject of its token, or the client where the token has no subject.
 *
 * @example
 * const protection = protect({
 *   resource,
 *   verify,
 *   principal: (token) => ({ id: principalId(token, { perClient: true }), name: token.claims["name"] })
 * })
 */
export const principalId: (
  token: Pick<VerifiedToken, "clientId" | "issuer" | "subject">,
  options?: PrincipalIdOptions
) => string = Core.idOf
