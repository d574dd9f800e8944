/**
 * Verifiers of requests: who sends a request, by something else than an access token.
 *
 * Use them where a proxy or TLS has authenticated the sender: `certificate` for client certificates (mTLS),
 * `signedHeader` for a signed assertion of a proxy, with `cloudflareAccess`, `googleIap` and `awsAlb` for these products,
 * and `trustedHeader` for a plain header of a proxy. `protection` makes the option `protection` of an adapter. This
 * module needs the package `@skein/server`.
 *
 * @example
 * const protection = yield* RequestVerifier.protection(
 *   RequestVerifier.cloudflareAccess({ team: "https://acme.cloudflareaccess.com", audience: "4714…" })
 * )
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Awaitable from "@skein/runtime/Awaitable"
import * as Http from "@skein/server/Http"
import type { Principal } from "@skein/server/Principal"
import * as Effect from "effect/Effect"
import * as certificates from "./clientCertificate.ts"
import * as failureCounts from "@skein/server/AuthenticationFailures"
import { makeNetworks } from "./networks.ts"
import * as signed from "./signedHeader.ts"
import * as tokenCache from "./tokens/tokenCache.ts"
import {
  type CachedTokenVerifier,
  effectOf,
  type InvalidToken,
  type TokenVerifier,
  type VerifiedToken,
  type VerifierUnavailable
} from "./tokens/verifiedToken.ts"

export type { ClientCertificate, ForwardedCertificate } from "./clientCertificate.ts"
export type { AlbOptions, AssertionOptions } from "./signedHeader.ts"

/** The sender of a request is not authenticated. The request is answered with 403. The message has no credentials. */
export class InvalidCredentials extends PrintableError.tagged("InvalidCredentials") {}

/** The result of a verification. Undefined if the request has no credentials of this kind. */
export type Verification =
  | Principal
  | undefined
  | Effect.Effect<Principal | undefined, InvalidCredentials | InvalidToken | VerifierUnavailable>

/** Verifies requests. */
export interface RequestVerifier {
  /** The headers with credentials, in lower case. Handlers cannot read them. */
  readonly headers: ReadonlyArray<string>
  /** Makes the function that verifies requests, with the clock of the program. */
  readonly start: Effect.Effect<(request: Http.HttpRequest) => Verification>
}

/**
 * A verifier of your own.
 *
 * @example
 * const byKey = RequestVerifier.make({
 *   headers: ["x-api-key"],
 *   verify: (request) => lookUp(request.header("x-api-key"))
 * })
 */
export const make = (options: {
  /** The headers with credentials. Handlers cannot read them. */
  readonly headers: ReadonlyArray<string>
  /**
   * Verifies a request: undefined if it has no credentials of this kind. A promise may reject with the errors of an effect.
   * Any other error is answered with 500.
   */
  readonly verify: (request: Http.HttpRequest) => Verification | PromiseLike<Principal | undefined>
}): RequestVerifier => ({
  headers: options.headers.map((name) => name.toLowerCase()),
  start: Effect.succeed((request) => {
    const verification = Awaitable.settle(options.verify(request))
    return Effect.isEffect(verification) ? verification as Verification : verification
  })
})

/** Options of `certificate`. */
export interface CertificateOptions {
  /** The header in which proxies forward the certificate, if a proxy ends TLS. */
  readonly forwarded?: certificates.ForwardedCertificate | undefined
  /**
   * Makes the principal of a certificate, or undefined to refuse it. By default its `id` is the thumbprint, which changes
   * when the certificate is renewed: use a name in the certificate where your authority issues unique ones. It runs once
   * per connection, or per certificate that a proxy forwards.
   */
  readonly principal?: ((certificate: certificates.ClientCertificate) => Principal | undefined) | undefined
}

/**
 * Verifies the client certificate of the connection, or the one that a trusted proxy forwards (RFC 9440). The certificate
 * must be verified by TLS: with `requestCert` and the `ca` of your clients in the options of `node:https`, or by the
 * proxy.
 *
 * @example
 * const verifier = RequestVerifier.certificate({
 *   forwarded: { proxies: ["10.0.0.0/8"] },
 *   principal: ({ subjectAltName }) => subjectAltName === undefined ? undefined : { id: subjectAltName }
 * })
 */
export const certificate = (options: CertificateOptions = {}): RequestVerifier => {
  const { forwarded, principal = ({ thumbprint }) => ({ id: `certificate ${thumbprint}` }) } = options
  const find = certificates.certificateFinder(forwarded)
  const refused = Effect.fail(new InvalidCredentials({ message: "the client certificate is not accepted" }))
  // The bytes of a certificate are one object for all requests of its connection, or with the same header.
  const outcomes = new WeakMap<Uint8Array, Principal | typeof refused>()
  return make({
    headers: forwarded === undefined ? [] : [forwarded.header ?? "client-cert"],
    verify: (request) => {
      const found = find(request)
      if (found === undefined) return undefined
      if (found === "malformed") return refused
      return outcomes.get(found) ?? Effect.flatMap(certificates.readCertificate(found), (read) => {
        const outcome = (read === undefined ? undefined : principal(read)) ?? refused
        outcomes.set(found, outcome)
        return effectOf(outcome)
      })
    }
  })
}

/** How a principal is made of a signed assertion. */
export interface AssertionPrincipal {
  /**
   * Makes the principal of an assertion, or undefined to refuse it. By default its `id` is the issuer and the subject, and
   * it has the `email` of the assertion. `expiresAt` of the assertion is added: the streams of a client end when the
   * latest assertion that it sent expires. With `expiresAt: undefined` of your own, streams outlive the assertion: a choice
   * for a proxy whose assertions last seconds, and that cuts the connections of users itself.
   */
  readonly principal?: ((assertion: VerifiedToken) => Principal | undefined) | undefined
}

const assertionPrincipal = ({ claims, clientId, issuer, subject }: VerifiedToken): Principal => ({
  id: `${issuer} ${subject ?? clientId ?? ""}`,
  ...(typeof claims["email"] === "string" ? { email: claims["email"] } : {})
})

const byAssertion = (
  header: string,
  verifier: TokenVerifier,
  { principal = assertionPrincipal }: AssertionPrincipal
): RequestVerifier => {
  const name = header.toLowerCase()
  // The assertion is for this application whatever its resource is called.
  const context = { resource: "" }
  const refused = new InvalidCredentials({ message: "the sender of the request is not accepted" })
  const start = (cached: CachedTokenVerifier) => {
    const principals = new WeakMap<VerifiedToken, Principal>()
    const principalOf = (assertion: VerifiedToken): Principal | undefined => {
      const known = principals.get(assertion)
      if (known !== undefined) return known
      const own = principal(assertion)
      if (own === undefined) return undefined
      const made = { expiresAt: assertion.expiresAt, ...own }
      principals.set(assertion, made)
      return made
    }
    const accept = (assertion: VerifiedToken): Verification => principalOf(assertion) ?? Effect.fail(refused)
    return (request: Http.HttpRequest): Verification => {
      const assertion = request.header(name)
      if (assertion === undefined || assertion === "") return undefined
      const verified = cached.known(assertion, context) ??
        cached.verify(assertion, { ...context, address: request.address })
      if (!Effect.isEffect(verified)) return accept(verified)
      return Effect.flatMap(verified, (one) => effectOf(accept(one)))
    }
  }
  return { headers: [name], start: Effect.map(tokenCache.cached(verifier, {}), start) }
}

/**
 * Verifies a JWT that a proxy writes into a header, signed with a key of its own or with a shared secret. Throws if an
 * option is not valid. An assertion that was verified is accepted for a minute, as access tokens are.
 *
 * @example
 * const verifier = RequestVerifier.signedHeader({
 *   header: "x-gateway-user",
 *   issuer: "https://gateway.internal",
 *   audiences: ["tea"],
 *   secret: Redacted.make(gatewaySecret)
 * })
 */
export const signedHeader = (options: signed.AssertionOptions & AssertionPrincipal): RequestVerifier =>
  byAssertion(options.header, signed.assertionVerifier(options), options)

/**
 * Verifies the assertions of Cloudflare Access. `team` is the address of your team, `audience` the AUD tag of the
 * application.
 *
 * @example
 * const verifier = RequestVerifier.cloudflareAccess({ team: "https://acme.cloudflareaccess.com", audience: "4714…" })
 */
export const cloudflareAccess = (
  options: AssertionPrincipal & { readonly team: string; readonly audience: string }
): RequestVerifier => {
  const header = "cf-access-jwt-assertion"
  const { audience, team } = options
  const jwksUri = `${team}/cdn-cgi/access/certs`
  const verifier = signed.assertionVerifier(
    { header, issuer: team, audiences: [audience], jwksUri, algorithms: ["RS256"] },
    // The `sub` of a service token is empty, and its `common_name` is the client.
    (_header, claims) =>
      claims["sub"] === "" && claims["common_name"] !== undefined
        ? { ...claims, sub: undefined, client_id: claims["common_name"] }
        : claims
  )
  return byAssertion(header, verifier, options)
}

/**
 * Verifies the assertions of Google's Identity-Aware Proxy. `audience` is that of the backend:
 * `/projects/<number>/global/backendServices/<id>` or `/projects/<number>/apps/<project>`.
 *
 * @example
 * const verifier = RequestVerifier.googleIap({ audience: "/projects/1234/global/backendServices/5678" })
 */
export const googleIap = (options: AssertionPrincipal & { readonly audience: string }): RequestVerifier =>
  signedHeader({
    ...options,
    header: "x-goog-iap-jwt-assertion",
    issuer: "https://cloud.google.com/iap",
    audiences: [options.audience],
    jwksUri: "https://www.gstatic.com/iap/verify/public_key-jwk",
    algorithms: ["ES256"]
  })

/**
 * Verifies the assertions of an AWS Application Load Balancer that signs users in. An assertion is made for one request and
 * expires about two minutes later, whatever is left of the session of its user. So its `exp` is not that of the principal, and
 * does not end streams: set `expiresAt` in `principal` to end them after a time of your own.
 *
 * @example
 * const verifier = RequestVerifier.awsAlb({
 *   region: "eu-west-1",
 *   loadBalancerArn: "arn:aws:elasticloadbalancing:eu-west-1:1234:loadbalancer/app/tea/5678",
 *   issuer: "https://login.example",
 *   clientId: "tea"
 * })
 */
export const awsAlb = (options: signed.AlbOptions & AssertionPrincipal): RequestVerifier => {
  const { principal = assertionPrincipal } = options
  return byAssertion("x-amzn-oidc-data", signed.albVerifier(options), {
    principal: (assertion) => {
      const own = principal(assertion)
      return own && { expiresAt: undefined, ...own }
    }
  })
}

/** The longest user of a header, in characters. */
const maxUserChars = 1_024

/** Options of `trustedHeader`. */
export interface TrustedHeaderOptions {
  /** The name of the header: `x-forwarded-user`, for example. */
  readonly header: string
  /**
   * The networks of the proxies, in CIDR notation: `["10.0.0.0/8", "::1"]`. The header counts only on their connections.
   * They must remove the header from the requests of clients.
   */
  readonly proxies: ReadonlyArray<string>
  /** Makes the principal of a value, or undefined to refuse it. By default the value is its `id`. */
  readonly principal?: ((user: string, request: Http.HttpRequest) => Principal | undefined) | undefined
}

/**
 * Trusts a plain header that a proxy writes. It is as safe as the network between the proxy and this server: a
 * sender that can open a connection from the address of a proxy can be any user. Prefer `signedHeader`. Throws if a network is malformed.
 *
 * @example
 * const verifier = RequestVerifier.trustedHeader({ header: "x-forwarded-user", proxies: ["10.0.0.0/8"] })
 */
export const trustedHeader = (options: TrustedHeaderOptions): RequestVerifier => {
  const { principal = (id) => ({ id }) } = options
  const name = options.header.toLowerCase()
  const isProxy = makeNetworks(options.proxies)
  const refused = Effect.fail(new InvalidCredentials({ message: "the sender of the request is not accepted" }))
  return make({
    headers: [name],
    verify: (request) => {
      const user = request.header(name)
      if (user === undefined || user === "") return undefined
      if (!isProxy(request.peerAddress)) return refused
      // HTTP servers join a header that was sent twice by a comma: by the client, and by a proxy that appends.
      if (user.length > maxUserChars || user.includes(",")) return refused
      return principal(user, request) ?? refused
    }
  })
}

/** Options of `protection`. */
export interface ProtectionOptions extends failureCounts.FailureOptions {
  /** Accepts requests without credentials, as those of anonymous callers. False by default: they get 403. */
  readonly allowAnonymous?: boolean | undefined
}

/**
 * Makes a protection of verifiers of requests. The first verifier that finds its credentials in a request decides. A
 * request without an accepted sender is answered with 403, since its client cannot sign in alone; with 429 after too
 * many failures of its network address, and with 503 while the keys of a proxy are not available.
 *
 * @example
 * const protection = yield* RequestVerifier.protection(RequestVerifier.googleIap({ audience }))
 * NodeHttp.runMain(Server, { port: 3000, protection })
 */
export const protection = (
  verifiers: RequestVerifier | ReadonlyArray<RequestVerifier>,
  options: ProtectionOptions = {}
): Effect.Effect<Http.Protection> =>
  Effect.gen(function*() {
    const all = "start" in verifiers ? [verifiers] : verifiers
    const verify = yield* Effect.forEach(all, ({ start }) => start)
    const failures = yield* failureCounts.make(options)
    const { allowAnonymous = false } = options
    return {
      identify: identifier(verify, failures, allowAnonymous),
      credentialHeaders: all.flatMap(({ headers }) => headers)
    }
  })

const identifier = (
  verifiers: ReadonlyArray<(request: Http.HttpRequest) => Verification>,
  failures: failureCounts.Failures,
  allowAnonymous: boolean
): Http.Protection["identify"] => {
  const forbidden = (message: string) =>
    Effect.fail(new Http.Refusal({ status: 403, message: `Forbidden: ${message}` }))
  const anonymous = allowAnonymous ? undefined : forbidden("the request has no credentials")

  const next = (
    request: Http.HttpRequest,
    at: number
  ): Principal | undefined | Effect.Effect<Principal | undefined, Http.Refusal> => {
    const verify = verifiers[at]
    if (verify === undefined) return anonymous
    const found = verify(request)
    if (found === undefined) return next(request, at + 1)
    if (!Effect.isEffect(found)) return found
    const seconds = failures.retryAfter(request.address)
    if (seconds !== undefined) return failureCounts.tooManyFailures(seconds)
    // As in `Protect`, a client that disconnects while it is being verified counts as a failure.
    const counted = Effect.onInterrupt(found, () => Effect.sync(() => failures.add(request.address)))
    const outcome = Effect.catch(counted, (error) => {
      if (error._tag === "VerifierUnavailable") {
        return failureCounts.withRetry(
          503,
          "Service Unavailable: the request cannot be verified now",
          error.retryAfterSeconds
        )
      }
      failures.add(request.address)
      return forbidden(error.message)
    })
    const turn = Effect.suspend((): Effect.Effect<Principal | undefined, Http.Refusal> => {
      // Other requests of the address may have failed while it waited.
      const seconds = failures.retryAfter(request.address)
      return seconds === undefined ? outcome : failureCounts.tooManyFailures(seconds)
    })
    // The next verifier has a turn of its own.
    return Effect.flatMap(
      failures.limit(request.address, turn),
      (principal) => effectOf(principal ?? next(request, at + 1))
    )
  }
  return (request) => next(request, 0)
}
