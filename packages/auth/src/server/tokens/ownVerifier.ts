/**
 * Verifiers of an application's own, and the choice among several verifiers.
 */
import * as Awaitable from "@skein/runtime/Awaitable"
import * as Effect from "effect/Effect"
import { isFor, otherAudience } from "./audience.ts"
import { isIssuedBy } from "./issuers.ts"
import { invalid, isJwt, maxTokenChars, nameProblem, otherIssuer, readJwt, tooLong, verifyWith } from "./parseToken.ts"
import type {
  Confirmation,
  InvalidToken,
  TokenVerifier,
  VerifiedToken,
  VerifierUnavailable,
  VerifyContext
} from "./verifiedToken.ts"

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

/** Options of `TokenVerifier.make`. */
export interface OwnOptions {
  /** The identifier of the authorization server that issues the tokens. */
  readonly issuer: string
  /**
   * The accepted audiences beside the resource: none by default. For a provider without audiences this is the client
   * whose tokens are meant for this server. An audience is compared as text.
   */
  readonly audiences?: ReadonlyArray<string> | undefined
  /** Whether it also verifies tokens that are not JWTs: true by default. */
  readonly acceptsOpaque?: boolean | undefined
  /**
   * Verifies a token, by an effect or a promise, which rejects with the same errors. Any other error is answered with 500.
   * It bounds its own time.
   */
  readonly verify: (
    token: string,
    context: VerifyContext
  ) => PromiseLike<OwnToken> | Effect.Effect<OwnToken, InvalidToken | VerifierUnavailable>
}

export const make = (options: OwnOptions): TokenVerifier => {
  const { issuer } = options
  const judge = (token: OwnToken, { resource }: VerifyContext): Effect.Effect<VerifiedToken, InvalidToken> =>
    Effect.clockWith((clock) => {
      const accepted = [resource, ...options.audiences ?? []]
      const { audiences, claims = {}, clientId, confirmation, expiresAt, scopes = [], subject } = token
      if (!isFor(audiences, accepted)) return Effect.fail(otherAudience(accepted, audiences))
      const problem = nameProblem(subject, clientId)
      if (problem !== undefined) return Effect.fail(problem)
      // A number that is not finite would never expire.
      if (expiresAt !== undefined && !(expiresAt * 1000 > clock.currentTimeMillisUnsafe() && expiresAt < Infinity)) {
        return Effect.fail(invalid("Expired", "the token has expired"))
      }
      return Effect.succeed({ issuer, subject, clientId, scopes, audiences, expiresAt, confirmation, claims })
    })
  return {
    issuers: [issuer],
    acceptsOpaque: options.acceptsOpaque ?? true,
    verify: verifyWith((token, context) =>
      Effect.flatMap(Awaitable.call(() => options.verify(token, context)), (own) => judge(own, context))
    )
  }
}

const tokenIssuersOf = ({ issuers, tokenIssuers = issuers }: TokenVerifier): ReadonlyArray<string> => tokenIssuers

/** The verifiers by the issuers of their tokens. Throws if two have the same. */
const byIssuer = (verifiers: ReadonlyArray<TokenVerifier>): ReadonlyMap<string, TokenVerifier> => {
  const found = new Map<string, TokenVerifier>()
  for (const verifier of verifiers) {
    for (const issuer of tokenIssuersOf(verifier)) {
      if (found.has(issuer)) throw new Error(`TokenVerifier.anyOf: two verifiers have the issuer ${issuer}`)
      found.set(issuer, verifier)
    }
  }
  return found
}

export const anyOf = (verifiers: ReadonlyArray<TokenVerifier>): TokenVerifier => {
  const known = byIssuer(verifiers)
  const opaque = verifiers.filter(({ acceptsOpaque }) => acceptsOpaque)
  if (verifiers.length === 0) throw new Error("TokenVerifier.anyOf: no verifier was given")
  if (opaque.length > 1) {
    throw new Error("TokenVerifier.anyOf: several verifiers accept opaque tokens: set acceptsOpaque: false on others")
  }
  return {
    issuers: [...new Set(verifiers.flatMap(({ issuers }) => issuers))],
    tokenIssuers: [...known.keys()],
    acceptsOpaque: opaque.length > 0,
    verify: (token, context) => {
      if (token.length > maxTokenChars) return Effect.fail(tooLong)
      if (!isJwt(token) && opaque[0] !== undefined) return opaque[0].verify(token, context)
      const { claims = {} } = readJwt(token) ?? {}
      const issuer = claims["iss"]
      const verifier = known.get(issuer as string) ??
        verifiers.find((verifier) => isIssuedBy(tokenIssuersOf(verifier), claims))
      if (verifier !== undefined) return verifier.verify(token, context)
      return Effect.fail(
        issuer === undefined ? invalid("Malformed", "the token is not a JWT with an issuer") : otherIssuer(issuer)
      )
    }
  }
}
