/**
 * Protects a server with access tokens: it is an OAuth 2.1 resource server (RFC 6750, 9068, 9449 and 9728).
 *
 * The protection is the option `protection` of every HTTP adapter. It publishes the metadata of the resource, so that
 * clients find the authorization server, verifies the token of each request, and makes the principal: sessions, tasks and
 * answers belong to it, and streams end with its token. Handlers cannot read the token. `Scopes` protects single tools,
 * resources and prompts. This module needs the package `@skein/server`.
 *
 * @example
 * const protection = Protect.make({
 *   resource: "https://tea.example/mcp",
 *   verify: TokenVerifier.jwt({ issuer: "https://login.example" })
 * })
 * NodeHttp.runMain(Server, { port: 3000, allowedHosts: ["tea.example"], protection })
 */
import type * as Http from "@skein/server/Http"
import type { Principal } from "@skein/server/Principal"
import * as Effect from "effect/Effect"
import { makeAuthenticator } from "./authenticate.ts"
import { certificateFinder, type ForwardedCertificate } from "./clientCertificate.ts"
import * as dpop from "./dpop.ts"
import * as failures from "@skein/server/AuthenticationFailures"
import { checkScopes } from "./grants.ts"
import {
  addressOf,
  type AnswerPage,
  type IssuerMetadataOptions,
  issuerMetadataPage,
  issuerMetadataPath,
  pageOf,
  pagesOf
} from "./metadata.ts"
import type { Hierarchy } from "./Scopes.ts"
import * as TokenVerifier from "./tokens/TokenVerifier.ts"

export type { ForwardedCertificate } from "./clientCertificate.ts"
export type { DpopOptions } from "./dpop.ts"
export type { FailureOptions } from "@skein/server/AuthenticationFailures"
export type { IssuerMetadataOptions } from "./metadata.ts"
export type { NonceOptions } from "./nonces.ts"

/** How tokens that are bound to a key of the client are accepted (RFC 9449). */
export interface DpopMode extends dpop.DpopOptions {
  /** Refuses tokens that are not bound. False by default. */
  readonly require?: boolean | undefined
}

/** Options of a protection. */
export interface Options extends failures.FailureOptions, TokenVerifier.CacheOptions {
  /**
   * The identifier of the server: the address of its endpoint, as clients use it. It is published and compared as text,
   * and is the audience of tokens. An https address without a fragment, or an http address on loopback. Clients accept it for the paths below it
   * only: with HTTP+SSE put the paths of `LegacySse` there (RFC 9728, 3.3).
   */
  readonly resource: string
  /**
   * Allows an `http:` resource on another host than loopback, for a server inside a private network: anybody on the way
   * can read its tokens. Behind a proxy that ends TLS the resource is the https address of the proxy, and this option is
   * not needed. Off by default: such a resource is a defect at the start (RFC 9728, 1.2).
   */
  readonly allowHttp?: boolean | undefined
  /** Verifies tokens: `TokenVerifier.jwt`, `introspection`, `make` or `anyOf`. */
  readonly verify: TokenVerifier.TokenVerifier
  /** The scopes that every request needs: none by default. Challenges name them, so that clients request them. */
  readonly scopes?: ReadonlyArray<string> | undefined
  /**
   * The scopes in the metadata, which clients request if a challenge names none: `scopes` by default. List the few that
   * most users need: others follow by a step-up.
   */
  readonly scopesSupported?: ReadonlyArray<string> | undefined
  /** The scopes that others imply: `Scopes.implies({ … })`. None by default. */
  readonly hierarchy?: Hierarchy | undefined
  /**
   * Accepts tokens that are bound to a key (DPoP), with one proof per request. `"require"` refuses all other tokens.
   * Without it a bound token is refused. Off by default: a proof costs about 0.3 ms of processor time.
   */
  readonly dpop?: "accept" | "require" | DpopMode | undefined
  /**
   * The header in which proxies forward the certificate of a client, for tokens that are bound to it (RFC 8705). By default
   * the certificate is that of the connection, if TLS ends in this process.
   */
  readonly forwardedCertificate?: ForwardedCertificate | undefined
  /**
   * Makes the principal of a token. By default it has the `id` that `idOf` returns. `client`, `scopes` and `expiresAt` are
   * added. `scopes` of your own replace those of the token: roles can become scopes. It runs once per verification.
   */
  readonly principal?: ((token: TokenVerifier.VerifiedToken) => Principal) | undefined
  /** The name of the server for users, in the metadata. */
  readonly resourceName?: string | undefined
  /** The address of the documentation of the server, in the metadata. */
  readonly resourceDocumentation?: string | undefined
  /**
   * Answers `/.well-known/oauth-authorization-server` with the metadata of the authorization server, for clients that only
   * know 2025-03-26: they look for it at the origin of the MCP server. Their requests name no resource, so the
   * authorization server must issue tokens for yours without being asked. Off by default, since later clients follow the
   * metadata of the resource, and the origin may have an authorization server of its own.
   */
  readonly authorizationServerMetadata?: boolean | IssuerMetadataOptions | undefined
}

const dpopMode = ({ dpop }: Options): DpopMode | undefined =>
  typeof dpop === "object" ? dpop : dpop === undefined ? undefined : { require: dpop === "require" }

// "MCP Servers (Protected Resources) SHOULD NOT include `offline_access` in `WWW-Authenticate` scope or Protected
// Resource Metadata `scopes_supported`" (2026-07-28, authorization, refresh tokens).
const checked = (name: string, scopes: ReadonlyArray<string>): ReadonlyArray<string> => {
  if (scopes.includes("offline_access")) {
    throw new Error(`Protect: ${name} must not have offline_access: clients request it`)
  }
  return checkScopes(`Protect: ${name}`, scopes)
}

/** The metadata of the resource (RFC 9728, 2). */
const documentOf = (options: Options, proofs: dpop.DpopVerifier | undefined, requiresDpop: boolean): object => {
  const { resource, resourceDocumentation, resourceName, scopes = [], scopesSupported = scopes, verify } = options
  return {
    resource,
    authorization_servers: verify.issuers,
    ...(scopesSupported.length === 0 ? undefined : { scopes_supported: scopesSupported }),
    bearer_methods_supported: ["header"],
    ...(resourceName === undefined ? undefined : { resource_name: resourceName }),
    ...(resourceDocumentation === undefined ? undefined : { resource_documentation: resourceDocumentation }),
    ...(proofs === undefined ? undefined : {
      dpop_signing_alg_values_supported: proofs.algorithms,
      dpop_bound_access_tokens_required: requiresDpop
    })
  }
}

/** The pages of a protection, by their paths. */
const makePages = (
  { authorizationServerMetadata: issuerOptions = false, verify }: Options,
  paths: ReadonlyArray<string>,
  document: object
): Effect.Effect<ReadonlyMap<string, AnswerPage>> => {
  const page = pageOf(document)
  const pages = paths.map((path) => [path, page] as const)
  if (issuerOptions === false) return Effect.succeed(new Map(pages))
  const options = issuerOptions === true ? {} : issuerOptions
  return Effect.map(
    issuerMetadataPage(options.issuer ?? verify.issuers[0]!, options),
    (issuerPage) => new Map([...pages, [issuerMetadataPath, issuerPage]])
  )
}

/**
 * Makes a protection. It uses the `ReplayStore` of the program for DPoP proofs, or one in memory. Dies if an option is not
 * valid.
 *
 * Responses to requests that it refuses, each with a JSON-RPC error as its body:
 *
 * - 401 with a challenge: there is no token, or it is invalid or expired (`invalid_token`). Without a token the challenge
 *   has no error.
 * - 400 with a challenge: the `Authorization` header is malformed (`invalid_request`).
 * - 403 with a challenge: the token lacks a scope of `scopes` or of `Scopes` (`insufficient_scope`).
 * - 429 with `Retry-After`: too many failures of one network address (`maxFailures`).
 * - 503 with `Retry-After`: the token cannot be verified now, and the client keeps it.
 *
 * @example
 * const protection = Protect.make({
 *   resource: "https://tea.example/mcp",
 *   verify: TokenVerifier.jwt({ issuer: "https://login.example" }),
 *   scopes: ["tea:read"],
 *   hierarchy: Scopes.implies({ "tea:write": ["tea:read"] })
 * })
 */
export const make = (options: Options): Effect.Effect<Http.Protection> =>
  Effect.gen(function*() {
    const { forwardedCertificate, hierarchy, resource, verify } = options
    const scopes = checked("scopes", options.scopes ?? [])
    checked("scopesSupported", options.scopesSupported ?? [])
    if (verify.issuers.length === 0) {
      throw new Error("Protect: the verifier has no issuer, so clients cannot get a token")
    }
    const address = addressOf(resource, options.allowHttp === true)
    const mode = dpopMode(options)
    const proofs = mode === undefined ? undefined : yield* dpop.make(resource, mode)
    const requiresDpop = mode?.require === true
    const verifier = yield* TokenVerifier.cached(verify, options)
    const identify = makeAuthenticator({
      context: { resource },
      failures: yield* failures.make(options),
      findCertificate: certificateFinder(forwardedCertificate),
      metadata: address.url,
      principalOf: (token) => {
        const principal = (options.principal ?? defaultPrincipal)(token)
        const { clientId: client, expiresAt, scopes } = token
        const all: Principal = { client, scopes, expiresAt, ...principal }
        const granted = all["scopes"]
        return hierarchy === undefined || !Array.isArray(granted)
          ? all
          : { ...all, scopes: hierarchy.expand(granted as ReadonlyArray<string>) }
      },
      proofs,
      requiresDpop,
      scopes,
      verifier
    })
    const pages = yield* makePages(options, address.paths, documentOf(options, proofs, requiresDpop))
    return {
      identify,
      pages: pagesOf(pages),
      paths: [...pages.keys()],
      credentialHeaders: forwardedCertificate === undefined ? [] : [forwardedCertificate.header ?? "client-cert"]
    }
  })

/** Options of `idOf`. */
export interface IdOptions {
  /** Whether the id has the client too. False by default. */
  readonly perClient?: boolean | undefined
}

/**
 * The default id of a principal: the issuer and the subject, since two issuers may know the same subject, or the client
 * where the token has no subject. Then its first word is `client`, because a client and a user may have the same name (RFC
 * 9068, 5). With `perClient` two programs of one user have different ids, and do not share sessions and tasks. An empty
 * text if the token names neither: such a token is refused.
 *
 * @example
 * const protection = Protect.make({
 *   resource,
 *   verify,
 *   principal: (token) => ({ id: Protect.idOf(token, { perClient: true }), name: token.claims["name"] })
 * })
 */
export const idOf = (
  { clientId, issuer, subject }: Pick<TokenVerifier.VerifiedToken, "clientId" | "issuer" | "subject">,
  { perClient = false }: IdOptions = {}
): string => {
  // An issuer has no spaces, so different issuers and subjects make different ids.
  if (subject === undefined) return clientId === undefined ? "" : `client ${issuer} ${clientId}`
  return perClient ? `user ${issuer} ${JSON.stringify([subject, clientId])}` : `${issuer} ${subject}`
}

const defaultPrincipal = (token: TokenVerifier.VerifiedToken): Principal => ({ id: idOf(token) })
