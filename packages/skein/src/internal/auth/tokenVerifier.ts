/**
 * Verifiers of access tokens: whether a token is genuine, was issued for this server, and is not expired.
 *
 * Use `jwt` for an authorization server that issues JWTs, `introspection` for one with an introspection endpoint, `make` for
 * any other, and `anyOf` for several. `protect` takes the verifier.
 */
import * as Core from "@skein/auth/TokenVerifier"
import type { Opaque } from "../base/definition.ts"
import type { Awaitable, Duration } from "../base/types.ts"
import { coreVerifier } from "./core.ts"
import { type ClientAuthentication, redactClient } from "./secret.ts"

/** The facts about an access token that was verified, in the terms of RFC 7662 and RFC 9068. */
export interface VerifiedToken {
  /** The authorization server that issued the token (`iss`). */
  readonly issuer: string
  /** The user, or the client if there is no user (`sub`). Unique at its issuer only. */
  readonly subject: string | undefined
  /** The client that the token was issued to (`client_id`, or `azp`). */
  readonly clientId: string | undefined
  /** The scopes of the token. */
  readonly scopes: ReadonlyArray<string>
  /** The resources that the token was issued for (`aud`). */
  readonly audiences: ReadonlyArray<string>
  /** Until when the token is accepted, in seconds since 1970. Undefined if its issuer does not say it. */
  readonly expiresAt: number | undefined
  /** The key that the token is bound to (`cnf`). Undefined for a bearer token. */
  readonly confirmation: Confirmation | undefined
  /** All claims, of the token or of the response to an introspection. */
  readonly claims: { readonly [claim: string]: unknown }
}

/** The key that a token is bound to (RFC 7800). The sender of the token must prove that it has the key. */
export interface Confirmation {
  /** The thumbprint of the key of DPoP proofs (`jkt`; RFC 9449, 6.1). */
  readonly jkt?: string | undefined
  /** The thumbprint of the client's certificate (`x5t#S256`; RFC 8705, 3.1). */
  readonly x5tS256?: string | undefined
  /** Another method of confirmation, by its name. A token with it is refused. */
  readonly unsupported?: string | undefined
}

/** Verifies access tokens. */
export interface TokenVerifier extends Opaque<"TokenVerifier"> {
  /** The issuers whose tokens it verifies. The metadata of the server names them. */
  readonly issuers: ReadonlyArray<string>
}

/** The use that a token is verified for. */
export interface VerifyContext {
  /** The identifier of the protected resource. */
  readonly resource: string
  /** The current time, in milliseconds since 1970. */
  readonly now?: number | undefined
  /** The network address of the sender, if it is known. */
  readonly address?: string | undefined
}

/** The requests of a verifier to its authorization server. */
export interface FetchOptions {
  /** How long a request may take, with its body: 5 seconds by default. */
  readonly requestTimeout?: Duration | undefined
  /** The largest response that is read, in bytes: 262,144 by default. */
  readonly maxDocumentBytes?: number | undefined
  /**
   * Allows `http:` addresses of other machines, for an authorization server inside a private network. Anybody between this
   * server and that one can then replace the keys. Off by default: only `https:`, and `http:` on loopback.
   */
  readonly allowHttp?: boolean | undefined
  /** The function that sends requests: `fetch` of the platform by default. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** The tokens that are accepted beside those for the resource itself. */
export interface AudienceOptions {
  /**
   * The accepted audiences beside the resource, for an issuer without resource indicators: `["api://…"]` of Entra. None by
   * default. An audience is compared as text.
   */
  readonly audiences?: ReadonlyArray<string> | undefined
  /**
   * The clients whose tokens are accepted without an audience, for an issuer that does not write any: Cognito. Their tokens
   * must be for this server only. None by default.
   */
  readonly clients?: ReadonlyArray<string> | undefined
}

/** The keys of an issuer. */
export interface KeyOptions extends FetchOptions {
  /** How long keys are used while the issuer is unavailable: 24 hours by default. Then tokens are answered with 503. */
  readonly keyLifetime?: Duration | undefined
}

/** Options of `jwt`. */
export interface JwtOptions extends KeyOptions, AudienceOptions {
  /** The authorization server, as in its metadata, and as in `iss` of its tokens. It is compared as text. */
  readonly issuer: string
  /** The address of the keys: `jwks_uri` of the issuer's metadata by default. */
  readonly jwksUri?: string | undefined
  /** The accepted `iss` of tokens: `[issuer]` by default. `{tenantid}` stands for the claim `tid`, and needs `tenants`. */
  readonly tokenIssuers?: ReadonlyArray<string> | undefined
  /** The tenants that `{tenantid}` may stand for, or `"any"`: then people of any directory have a token for this server. */
  readonly tenants?: ReadonlyArray<string> | "any" | undefined
  /** The accepted algorithms, all asymmetric: ES256, ES384, ES512, EdDSA, Ed25519, PS256 to PS512, RS256 to RS512. */
  readonly algorithms?: ReadonlyArray<string> | undefined
  /** How much the clock of the issuer may differ: 5 seconds by default. */
  readonly clockTolerance?: Duration | undefined
  /** Demands the type `at+jwt` (RFC 9068, 4). Off by default, since many issuers write `JWT` or nothing. */
  readonly requireType?: boolean | undefined
}

/** Options of `introspection`. */
export interface IntrospectionOptions extends FetchOptions, ClientAuthentication, AudienceOptions {
  /** The authorization server, as in its metadata. It is compared as text. */
  readonly issuer: string
  /** The client that this server is at the authorization server. */
  readonly clientId: string
  /** How the secret is sent: in the `Authorization` header by default (`client_secret_basic`). */
  readonly authenticationMethod?: "client_secret_basic" | "client_secret_post" | undefined
  /** The address of the introspection: `introspection_endpoint` of the issuer's metadata by default. */
  readonly endpoint?: string | undefined
  /** How much the clock of the issuer may differ: 5 seconds by default. */
  readonly clockTolerance?: Duration | undefined
  /** Requests to the authorization server at the same time: 100 by default. At the bound the next token waits. */
  readonly maxInFlightRequests?: number | undefined
}

/** The answer of a verifier of your own. */
export interface OwnToken {
  /** For whom the issuer issued the token: its audiences, or the client that it belongs to. Without one it is refused. */
  readonly audiences: ReadonlyArray<string>
  /** When the token expires, in seconds since 1970. Undefined for a token that lasts until it is revoked. */
  readonly expiresAt: number | undefined
  /** The user, or the client if there is no user. */
  readonly subject: string | undefined
  /** The client that the token was issued to, if it is known. */
  readonly clientId?: string | undefined
  /** The scopes of the token: none by default. */
  readonly scopes?: ReadonlyArray<string> | undefined
  /** The key that the token is bound to, if it is. */
  readonly confirmation?: Confirmation | undefined
  /** Any other facts. */
  readonly claims?: { readonly [claim: string]: unknown } | undefined
}

/** Options of `make`. */
export interface OwnOptions {
  /** The identifier of the authorization server that issues the tokens. */
  readonly issuer: string
  /** The accepted audiences beside the resource, such as the client whose tokens are meant for this server. None by default. */
  readonly audiences?: ReadonlyArray<string> | undefined
  /** Whether it also verifies tokens that are not JWTs: true by default. */
  readonly acceptsOpaque?: boolean | undefined
  /**
   * Verifies a token. Undefined refuses it, as does an `InvalidToken` that it throws. A `VerifierUnavailable` is answered with
   * 503, and any other error with 500. It bounds its own time.
   */
  readonly verify: (token: string, context: VerifyContext) => Awaitable<OwnToken | undefined>
}

/** Why a token is not valid. */
export type TokenProblem =
  | "Malformed"
  | "TooLong"
  | "Algorithm"
  | "Type"
  | "Issuer"
  | "Audience"
  | "Expired"
  | "NotYetValid"
  | "Key"
  | "Signature"
  | "Inactive"
  | "Binding"

/** The members of an `InvalidToken`. */
export interface InvalidTokenFields {
  /** Sent to the client, so it must not have a part of the token. */
  readonly message: string
  readonly problem: TokenProblem
  /** The value in the token that was not accepted, shortened, for the log of the operator. */
  readonly received?: string | undefined
}

/** The token is not valid here. The request is answered with 401. */
export interface InvalidToken extends Error, InvalidTokenFields {
  readonly _tag: "InvalidToken"
  readonly message: string
}

/**
 * The class of `InvalidToken`.
 *
 * @example
 * throw new InvalidToken({ problem: "Inactive", message: "the token was revoked" })
 */
export const InvalidToken: {
  new(fields: InvalidTokenFields): InvalidToken
  readonly prototype: InvalidToken
} = Core.InvalidToken

/** The members of a `VerifierUnavailable`. */
export interface VerifierUnavailableFields {
  readonly message: string
  /** In how many seconds the client may try again. */
  readonly retryAfterSeconds: number
  readonly cause?: unknown
}

/** The token could not be verified now. The request is answered with 503, and the client keeps its token. */
export interface VerifierUnavailable extends Error {
  readonly _tag: "VerifierUnavailable"
  readonly retryAfterSeconds: number
}

/** The class of `VerifierUnavailable`. */
export const VerifierUnavailable: {
  new(fields: VerifierUnavailableFields): VerifierUnavailable
  readonly prototype: VerifierUnavailable
} = Core.VerifierUnavailable

const opaque = (verifier: Core.TokenVerifier): TokenVerifier => verifier as unknown as TokenVerifier

/**
 * A verifier for an authorization server that issues signed JWTs. It finds the keys in the metadata of the issuer, and fetches
 * them again when they are old or a token has an unknown key. Throws if an option is not valid.
 *
 * @example
 * const verify = TokenVerifier.jwt({ issuer: "https://login.example" })
 */
export const jwt = (options: JwtOptions): TokenVerifier => opaque(Core.jwt(options))

/**
 * A verifier that asks the authorization server about each token (RFC 7662), for tokens that are not JWTs or may be revoked at
 * any time. Throws if an option is not valid.
 *
 * @example
 * const verify = TokenVerifier.introspection({
 *   issuer: "https://login.example",
 *   clientId: "tea",
 *   clientSecret: process.env.TEA_SECRET
 * })
 */
export const introspection = (options: IntrospectionOptions): TokenVerifier =>
  opaque(Core.introspection(redactClient(options)))

/**
 * A verifier of your own, for tokens that only their issuer can read. `verify` must say in `audiences` for whom the token was
 * issued, so that a token of another application is refused. The token is accepted if one of its audiences is in `audiences`
 * of the options, or is the resource.
 *
 * @example
 * const verify = TokenVerifier.make({
 *   issuer: "https://login.example",
 *   verify: async (token) => {
 *     const { app, scopes, user } = await checkToken(token)
 *     return { subject: user, audiences: [app], scopes, expiresAt: undefined }
 *   },
 *   audiences: ["tea"]
 * })
 */
export const make = (options: OwnOptions): TokenVerifier =>
  opaque(Core.make({
    ...options,
    verify: async (token, context) => {
      const own = await options.verify(token, context)
      if (own === undefined) throw new InvalidToken({ problem: "Inactive", message: "the token is not valid" })
      return own
    }
  }))

/**
 * A verifier for the tokens of several issuers. It reads the issuer in the token and asks the verifier of this issuer only. A
 * token that is not a JWT goes to the verifier that accepts those. Throws if two verifiers have the same issuer.
 *
 * @example
 * const verify = TokenVerifier.anyOf(
 *   TokenVerifier.jwt({ issuer: "https://login.example" }),
 *   TokenVerifier.jwt({ issuer: "https://partner.example" })
 * )
 */
export const anyOf = (...verifiers: ReadonlyArray<TokenVerifier>): TokenVerifier =>
  opaque(Core.anyOf(...verifiers.map(coreVerifier)))
