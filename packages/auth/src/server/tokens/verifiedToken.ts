/**
 * The result of a verification, and its errors.
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

/** The facts about an access token that was verified, in the terms of RFC 7662 and RFC 9068. */
export interface VerifiedToken {
  /** The authorization server that issued the token (`iss`). */
  readonly issuer: string
  /** The user, or the client if there is no user (`sub`). Unique at its issuer only. */
  readonly subject: string | undefined
  /** The client that the token was issued to (`client_id`, or `azp`). */
  readonly clientId: string | undefined
  /** The scopes of the token, of `scope` (text) or `scp` (list or text). */
  readonly scopes: ReadonlyArray<string>
  /** The resources that the token was issued for (`aud`). */
  readonly audiences: ReadonlyArray<string>
  /**
   * Until when the token is accepted: its `exp` and the `clockTolerance` of the verifier, in seconds since 1970.
   * Undefined if its issuer does not say it.
   */
  readonly expiresAt: number | undefined
  /** The key that the token is bound to (`cnf`). Undefined for a bearer token. */
  readonly confirmation: Confirmation | undefined
  /** All claims, of the token or of the response to an introspection. */
  readonly claims: Claims
}

/** The key that a token is bound to (RFC 7800). The sender of the token must prove that it has the key. */
export interface Confirmation {
  /** The thumbprint of the key of DPoP proofs (`jkt`; RFC 9449, 6.1). */
  readonly jkt?: string | undefined
  /** The thumbprint of the client's certificate (`x5t#S256`; RFC 8705, 3.1). */
  readonly x5tS256?: string | undefined
  /**
   * Another method of confirmation, or a malformed one, by its name. It cannot be checked here, so a token with it is
   * refused: it is not a bearer token.
   */
  readonly unsupported?: string | undefined
}

/** The claims, or the header, of a token. */
export type Claims = { readonly [claim: string]: unknown }

/** The use that a token is verified for. */
export interface VerifyContext {
  /** The identifier of the protected resource, as its metadata has it. By default it is the only accepted audience. */
  readonly resource: string
  /**
   * The current time, in milliseconds since 1970. `cached` gives it, so that a verifier can refuse a token at once.
   * Without it the verifier reads the clock of the program, by an effect.
   */
  readonly now?: number | undefined
  /** The network address of the sender, for bounds of the requests that its tokens cause. Undefined if it is not known. */
  readonly address?: string | undefined
}

/**
 * Why a token is invalid:
 *
 * - `"Malformed"`: it is not a token of the expected format, or a claim has another type.
 * - `"TooLong"`: it is longer than the bound.
 * - `"Issuer"`, `"Audience"`: it was issued by another server, or for another resource.
 * - `"Algorithm"`, `"Type"`: its algorithm is not allowed, or it is not an access token.
 * - `"Expired"`, `"NotYetValid"`: its time is over, or has not come.
 * - `"Key"`, `"Signature"`: its issuer has no such key, or the signature is of another key or another content.
 * - `"Inactive"`: its issuer says that it is not active.
 * - `"Binding"`: it is bound to a key that the sender has not proven to have.
 */
export type TokenProblem =
  | "Malformed"
  | "TooLong"
  | "Issuer"
  | "Audience"
  | "Algorithm"
  | "Type"
  | "Expired"
  | "NotYetValid"
  | "Key"
  | "Signature"
  | "Inactive"
  | "Binding"

/**
 * The token is not valid here: `invalid_token` of RFC 6750, 3.1, which is answered with 401. The message has no part of
 * the token, so that it can be sent as `error_description`.
 */
export class InvalidToken extends PrintableError.tagged("InvalidToken")<{
  readonly problem: TokenProblem
  /** The value in the token that was not accepted, shortened, for a log of the operator: an issuer or an audience. */
  readonly received?: string | undefined
}> {
  static {
    // An error without a captured stack needs one for logs.
    Object.defineProperty(this.prototype, "stack", {
      configurable: true,
      get(this: InvalidToken): string {
        return `${this.name}: ${this.message}`
      },
      set(this: InvalidToken, value: unknown) {
        Object.defineProperty(this, "stack", { configurable: true, writable: true, value })
      }
    })
  }
}

/**
 * The token could not be verified, because its issuer's keys or its introspection were not available. It may be valid:
 * the request is answered with 503, and the client keeps its token.
 */
export class VerifierUnavailable extends PrintableError.tagged("VerifierUnavailable")<{
  /** In how many seconds the verifier tries again. */
  readonly retryAfterSeconds: number
  readonly cause?: unknown
}> {}

/**
 * The result of a verification: at once, or by an effect. `Effect.fail(…)` is a refusal at once too: `Protect` answers it
 * without a fiber.
 */
export type Verification = VerifiedToken | Effect.Effect<VerifiedToken, InvalidToken | VerifierUnavailable>

/** A result as an effect: a verification, or what follows from it. */
export const effectOf = <A, E = never, R = never>(result: A | Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.isEffect(result) ? result as Effect.Effect<A, E, R> : Effect.succeed(result)

/** The error of a verification that refused a token at once. Undefined if it has another result, or none yet. */
export const errorOf = (verification: Verification): InvalidToken | VerifierUnavailable | undefined =>
  Exit.isExit(verification) && Exit.isFailure(verification)
    ? verification.cause.reasons.find(Cause.isFailReason)?.error as InvalidToken | VerifierUnavailable | undefined
    : undefined

/** Verifies access tokens. */
export interface TokenVerifier {
  /** The issuers whose tokens it verifies: `authorization_servers` of the resource's metadata. */
  readonly issuers: ReadonlyArray<string>
  /**
   * The `iss` of its JWTs, by which `anyOf` finds it: `issuers` by default. `{tenantid}` stands for the claim `tid`.
   */
  readonly tokenIssuers?: ReadonlyArray<string> | undefined
  /** Whether it verifies tokens that are not JWTs. `anyOf` gives it those. */
  readonly acceptsOpaque: boolean
  /** Verifies a token for a resource. */
  readonly verify: (token: string, context: VerifyContext) => Verification
}

/** A verifier that knows tokens by earlier verifications. */
export interface CachedTokenVerifier extends TokenVerifier {
  /**
   * The result of an earlier verification that is still good, without a fiber or a promise. Undefined if the token must
   * be verified.
   */
  readonly known: (token: string, context: VerifyContext) => VerifiedToken | undefined
}
