/**
 * The verifier that asks the authorization server about a token (RFC 7662).
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import { objectOf } from "../../shared/web.ts"
import { type AudienceOptions, audienceProblem } from "./audience.ts"
import { authenticate, type ClientOptions } from "./clientAuthentication.ts"
import { discover } from "./discovery.ts"
import { checkAddress, fetchDocument, type FetchOptions, unavailable } from "./fetchDocument.ts"
import {
  invalid,
  isOtherKind,
  otherIssuer,
  readJwt,
  timeProblem,
  tokenOf,
  toleranceOf,
  verifyWith
} from "./parseToken.ts"
import { SharedEffects } from "./sharedEffects.ts"
import type { InvalidToken, TokenVerifier, VerifiedToken, VerifierUnavailable, VerifyContext } from "./verifiedToken.ts"

/** Options of `TokenVerifier.introspection`. */
export interface IntrospectionOptions extends FetchOptions, ClientOptions, AudienceOptions {
  /** The authorization server, as in its metadata. It is compared as text. */
  readonly issuer: string
  /** The address of the introspection: `introspection_endpoint` of the issuer's metadata by default. */
  readonly endpoint?: string | undefined
  /**
   * How much the clock of the issuer may differ, for `exp` and `nbf`: 5 seconds by default. Raise it for a clock that is
   * not synchronized.
   */
  readonly clockTolerance?: Duration.Input | undefined
  /**
   * Requests to the authorization server at the same time: 100 by default. At the bound the next token waits. Lower it for
   * an authorization server that limits its clients.
   */
  readonly maxInFlightRequests?: number | undefined
}

type Verifying = Effect.Effect<VerifiedToken, InvalidToken | VerifierUnavailable>

export const introspection = (options: IntrospectionOptions): TokenVerifier => {
  const { endpoint, issuer } = options
  checkAddress("issuer", issuer, options)
  if (endpoint !== undefined) checkAddress("endpoint", endpoint, options)
  const tolerance = toleranceOf(options.clockTolerance)
  const permits = Semaphore.makeUnsafe(options.maxInFlightRequests ?? 100)
  const discovering = new SharedEffects<string, VerifierUnavailable>()
  let address = endpoint

  const findAddress = Effect.suspend(() => {
    if (address !== undefined) return Effect.succeed(address)
    return discovering.run(
      "",
      Effect.tap(discover(issuer, "introspection_endpoint", options), (found) =>
        Effect.sync(() => {
          address = found
        }))
    )
  })

  const ask = Effect.fnUntraced(function*(token: string, now: number) {
    const url = yield* findAddress
    const body = new URLSearchParams({ token, token_type_hint: "access_token" })
    const headers = new Headers({ accept: "application/json", "content-type": "application/x-www-form-urlencoded" })
    yield* authenticate(options, issuer, now, headers, body)
    const init = { method: "POST", headers, body: body.toString() }
    const { json, redirect, status } = yield* fetchDocument(url, init, options)
    const claims = objectOf(json)
    if (status === 200 && claims !== undefined) return claims
    // It moved, or its server did.
    if (status === 404 && endpoint === undefined) address = undefined
    const fault = status === 200
      ? "is not a JSON object"
      : status === 401
      ? "has status 401: it refuses the client of the verifier"
      : `has status ${status}${redirect}`
    return yield* unavailable(`the response of the introspection ${fault}: ${url}`)
  })

  /** A JWT that is obviously not valid costs the authorization server nothing. */
  const problemOf = (token: string, now: number): InvalidToken | undefined => {
    const { exp, iss, nbf } = readJwt(token)?.claims ?? {}
    if (iss !== undefined && iss !== issuer) return otherIssuer(iss)
    return exp === undefined ? undefined : timeProblem({ exp, nbf }, now, tolerance)
  }

  const verify = (token: string, { resource }: VerifyContext, now: number): Verifying => {
    const problem = problemOf(token, now)
    return problem === undefined ? verifyByServer(token, resource, now) : Effect.fail(problem)
  }

  const verifyByServer = Effect.fnUntraced(function*(token: string, resource: string, now: number) {
    const claims = yield* permits.withPermits(1)(ask(token, now))
    // "If the introspection call is properly authorized but the token is not active, […] the authorization server MUST
    // return […] `active` set to false" (RFC 7662, 2.2). Anything but `true` is not active.
    if (claims["active"] !== true) return yield* invalid("Inactive", "the token is not active")
    const { iss } = claims
    if (iss !== undefined && iss !== issuer) return yield* otherIssuer(iss)
    const problem = audienceProblem(claims, resource, options) ?? timeProblem(claims, now, tolerance)
    if (problem !== undefined) return yield* problem
    if (isOtherKind(claims)) return yield* invalid("Type", "the token is not an access token")
    return yield* tokenOf(issuer, claims, tolerance)
  })

  return {
    issuers: [issuer],
    acceptsOpaque: true,
    verify: verifyWith(verify)
  }
}
