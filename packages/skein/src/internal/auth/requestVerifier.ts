/**
 * Verifiers of requests: who sends a request, by something else than an access token.
 *
 * Use them where a proxy or TLS has authenticated the sender: `certificate` for client certificates (mTLS), `signedHeader` for a
 * signed assertion of a proxy, with `cloudflareAccess`, `googleIap` and `awsAlb` for these products, and `trustedHeader` for a
 * plain header of a proxy. `protection` makes the option `protection` of a server over HTTP.
 */
import * as Core from "@skein/auth/RequestVerifier"
import * as Redacted from "effect/Redacted"
import type { Opaque } from "../base/definition.ts"
import type { HttpRequest, Principal, Protection } from "../base/http.ts"
import type { Awaitable, Duration } from "../base/types.ts"
import { protectionOf } from "./core.ts"
import type { FailureOptions, ForwardedCertificate } from "./protect.ts"
import type { FetchOptions, KeyOptions, VerifiedToken } from "./tokenVerifier.ts"

/** Verifies requests. */
export interface RequestVerifier extends Opaque<"RequestVerifier"> {
  /** The headers with credentials, in lower case. Handlers cannot read them. */
  readonly headers: ReadonlyArray<string>
}

/** The sender of a request is not authenticated. The request is answered with 403. */
export interface InvalidCredentials extends Error {
  readonly _tag: "InvalidCredentials"
}

/**
 * The class of `InvalidCredentials`. The message is sent to the client, so it must not have a part of the credentials.
 *
 * @example
 * throw new InvalidCredentials({ message: "the key was revoked" })
 */
export const InvalidCredentials: {
  new(fields: { readonly message: string }): InvalidCredentials
  readonly prototype: InvalidCredentials
} = Core.InvalidCredentials

/** Options of `make`. */
export interface OwnRequestOptions {
  /** The headers with credentials. Handlers cannot read them. */
  readonly headers: ReadonlyArray<string>
  /**
   * Verifies a request: undefined if it has no credentials of this kind. Throws `InvalidCredentials` to refuse it, and
   * `VerifierUnavailable` if it cannot be verified now. Any other error is answered with 500.
   */
  readonly verify: (request: HttpRequest) => Awaitable<Principal | undefined>
}

/** A certificate that was verified by TLS, here or at a trusted proxy. */
export interface ClientCertificate {
  /** The certificate in DER form. */
  readonly raw: Uint8Array
  /** Its SHA-256 thumbprint in base64url (RFC 8705, 3.1). */
  readonly thumbprint: string
  /** The distinguished name of its subject, one attribute a line. Undefined on platforms without Node's modules. */
  readonly subject: string | undefined
  /** The alternative names of its subject, as `DNS:kettle.example`. Undefined if it has none, or as for `subject`. */
  readonly subjectAltName: string | undefined
  /** The distinguished name of its issuer. Undefined on platforms without Node's modules. */
  readonly issuer: string | undefined
}

/** Options of `certificate`. */
export interface CertificateOptions {
  /** The header in which proxies forward the certificate, if a proxy ends TLS. */
  readonly forwarded?: ForwardedCertificate | undefined
  /**
   * Makes the principal of a certificate, or undefined to refuse it. By default its `id` is the thumbprint, which changes when
   * the certificate is renewed. It runs once per connection, or per certificate that a proxy forwards.
   */
  readonly principal?: ((certificate: ClientCertificate) => Principal | undefined) | undefined
}

/** How a principal is made of a signed assertion. */
export interface AssertionPrincipal {
  /**
   * Makes the principal of an assertion, or undefined to refuse it. By default its `id` is the issuer and the subject, and it has
   * the `email` of the assertion. `expiresAt` of the assertion is added: streams of the client end then.
   */
  readonly principal?: ((assertion: VerifiedToken) => Principal | undefined) | undefined
}

/** Options of `signedHeader`. */
export interface SignedHeaderOptions extends KeyOptions, AssertionPrincipal {
  /** The name of the header. */
  readonly header: string
  /** The proxy, as in `iss` of its assertions. It is compared as text. */
  readonly issuer: string
  /** The accepted audiences: how the proxy names this application. At least one. */
  readonly audiences: ReadonlyArray<string>
  /** The address of the public keys of the proxy: `jwks_uri` of the issuer's metadata by default. */
  readonly jwksUri?: string | undefined
  /** The secret that this server shares with the proxy, of at least 32 bytes of UTF-8, in place of public keys. */
  readonly secret?: string | undefined
  /** The accepted algorithms: all asymmetric ones by default; HS256, HS384 and HS512 with `secret`. */
  readonly algorithms?: ReadonlyArray<string> | undefined
  /** How much the clock of the proxy may differ: 5 seconds by default. */
  readonly clockTolerance?: Duration | undefined
}

/** Options of `cloudflareAccess`. */
export interface CloudflareAccessOptions extends AssertionPrincipal {
  /** The address of your team: `https://acme.cloudflareaccess.com`. */
  readonly team: string
  /** The AUD tag of the application. */
  readonly audience: string
}

/** Options of `googleIap`. */
export interface GoogleIapOptions extends AssertionPrincipal {
  /** That of the backend: `/projects/<number>/global/backendServices/<id>` or `/projects/<number>/apps/<project>`. */
  readonly audience: string
}

/** Options of `awsAlb`. */
export interface AwsAlbOptions extends FetchOptions, AssertionPrincipal {
  /** The region of the load balancer: `eu-west-1`, for example. */
  readonly region: string
  /** The ARN of the load balancer, which is `signer` of its assertions. Any other load balancer is refused. */
  readonly loadBalancerArn: string
  /** The identity provider, as the load balancer is configured. */
  readonly issuer: string
  /** The client id that the load balancer has there. */
  readonly clientId: string
  /** How much the clock of the load balancer may differ: 5 seconds by default. */
  readonly clockTolerance?: Duration | undefined
  /** The address of the keys: that of the region by default. */
  readonly keysUri?: string | undefined
}

/** Options of `trustedHeader`. */
export interface TrustedHeaderOptions {
  /** The name of the header: `x-forwarded-user`, for example. */
  readonly header: string
  /**
   * The networks of the proxies, in CIDR notation: `["10.0.0.0/8", "::1"]`. The header counts only on their connections. They
   * must remove the header from the requests of clients.
   */
  readonly proxies: ReadonlyArray<string>
  /** Makes the principal of a value, or undefined to refuse it. By default the value is its `id`. */
  readonly principal?: ((user: string, request: HttpRequest) => Principal | undefined) | undefined
}

/** Options of `protection`. */
export interface RequestProtectionOptions extends FailureOptions {
  /** Accepts requests without credentials, as those of anonymous callers. False by default: they get 403. */
  readonly allowAnonymous?: boolean | undefined
}

const opaque = (verifier: Core.RequestVerifier): RequestVerifier => verifier as unknown as RequestVerifier

/**
 * A verifier of your own.
 *
 * @example
 * const byKey = RequestVerifier.make({
 *   headers: ["x-api-key"],
 *   verify: async (request) => accountOf(request.header("x-api-key"))
 * })
 */
export const make = (options: OwnRequestOptions): RequestVerifier => opaque(Core.make(options))

/**
 * Verifies the client certificate of the connection, or the one that a trusted proxy forwards (RFC 9440). The certificate must be
 * verified by TLS: with `requestCert` and the `ca` of your clients in the options of `node:https`, or by the proxy.
 *
 * @example
 * const verifier = RequestVerifier.certificate({
 *   principal: ({ subjectAltName }) => subjectAltName === undefined ? undefined : { id: subjectAltName }
 * })
 */
export const certificate = (options?: CertificateOptions): RequestVerifier => opaque(Core.certificate(options))

/**
 * Verifies a JWT that a proxy writes into a header, signed with a key of its own or with a shared secret. Throws if an option is
 * not valid.
 *
 * @example
 * const verifier = RequestVerifier.signedHeader({
 *   header: "x-gateway-user",
 *   issuer: "https://gateway.internal",
 *   audiences: ["tea"]
 * })
 */
export const signedHeader = ({ secret, ...options }: SignedHeaderOptions): RequestVerifier =>
  opaque(Core.signedHeader({ ...options, ...(secret === undefined ? undefined : { secret: Redacted.make(secret) }) }))

/**
 * Verifies the assertions of Cloudflare Access.
 *
 * @example
 * const verifier = RequestVerifier.cloudflareAccess({ team: "https://acme.cloudflareaccess.com", audience: "4714…" })
 */
export const cloudflareAccess = (options: CloudflareAccessOptions): RequestVerifier =>
  opaque(Core.cloudflareAccess(options))

/**
 * Verifies the assertions of Google's Identity-Aware Proxy.
 *
 * @example
 * const verifier = RequestVerifier.googleIap({ audience: "/projects/1234/global/backendServices/5678" })
 */
export const googleIap = (options: GoogleIapOptions): RequestVerifier => opaque(Core.googleIap(options))

/**
 * Verifies the assertions of an AWS Application Load Balancer that signs users in. An assertion is made for one request, so its
 * `exp` does not end streams: set `expiresAt` in `principal` to end them after a time of your own.
 *
 * @example
 * const verifier = RequestVerifier.awsAlb({ region: "eu-west-1", loadBalancerArn, issuer: "https://login.example", clientId: "tea" })
 */
export const awsAlb = (options: AwsAlbOptions): RequestVerifier => opaque(Core.awsAlb(options))

/**
 * Trusts a plain header that a proxy writes. It is as safe as the network between the proxy and this server: a sender that can
 * open a connection from the address of a proxy can be any user. Prefer `signedHeader`. Throws if a network is malformed.
 *
 * @example
 * const verifier = RequestVerifier.trustedHeader({ header: "x-forwarded-user", proxies: ["10.0.0.0/8"] })
 */
export const trustedHeader = (options: TrustedHeaderOptions): RequestVerifier => opaque(Core.trustedHeader(options))

/**
 * Makes a protection of verifiers of requests. The first verifier that finds its credentials in a request decides. A request
 * without an accepted sender is answered with 403, with 429 after too many failures of its network address, and with 503 while
 * it cannot be verified.
 *
 * @example
 * server.runHttp({ protection: RequestVerifier.protection(RequestVerifier.googleIap({ audience })) })
 */
export const protection = (
  verifiers: RequestVerifier | ReadonlyArray<RequestVerifier>,
  options?: RequestProtectionOptions
): Protection => protectionOf(Core.protection(verifiers as unknown as ReadonlyArray<Core.RequestVerifier>, options))
