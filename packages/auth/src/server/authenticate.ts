/**
 * Authenticates a request by its access token (OAuth 2.1, 5; RFC 6750; RFC 9449).
 */
import * as Http from "@skein/server/Http"
import type { Principal } from "@skein/server/Principal"
import * as Effect from "effect/Effect"
import { type certificateFinder, thumbprintOf } from "./clientCertificate.ts"
import { type ChallengeParams, makeChallenge } from "./challenge.ts"
import type { DpopVerifier, InvalidProof } from "./dpop.ts"
import { type Failures, tooManyFailures, withRetry } from "@skein/server/AuthenticationFailures"
import { invalid, maxTokenChars, tooLong } from "./tokens/parseToken.ts"
import { hasScopes, insufficientScope, setChallenger } from "./grants.ts"
import {
  type CachedTokenVerifier,
  effectOf,
  errorOf,
  type InvalidToken,
  type Verification,
  type VerifiedToken,
  type VerifierUnavailable,
  type VerifyContext
} from "./tokens/verifiedToken.ts"

export interface Settings {
  readonly context: VerifyContext
  readonly failures: Failures
  readonly findCertificate: ReturnType<typeof certificateFinder>
  /** The address of the metadata. */
  readonly metadata: string
  readonly principalOf: (token: VerifiedToken) => Principal
  readonly proofs: DpopVerifier | undefined
  readonly requiresDpop: boolean
  /** The scopes that every request needs. */
  readonly scopes: ReadonlyArray<string>
  readonly verifier: CachedTokenVerifier
}

type Identified = Effect.Effect<Principal, Http.Refusal>

type Scheme = "Bearer" | "DPoP"

/** A request with a token. */
interface Attempt {
  readonly request: Http.HttpRequest
  readonly answer: Parameters<Http.FindPrincipal>[1]
  readonly token: string
  readonly scheme: Scheme
}

// "credentials = "Bearer" 1*SP b64token" (RFC 6750, 2.1).
const credentials = /^(\S+)(?: +(.*))?$/
const b64token = /^[A-Za-z0-9\-._~+/]+=*$/

// The most refusals that are kept. Their descriptions come from this package and from verifiers.
const maxRefusals = 100

// With the scheme and the spaces before a token. A longer header is not even parsed.
const maxChars = maxTokenChars + 16

const noHeaders: Http.Headers = {}

/** Makes the function that identifies the sender of a request. A request with a known token costs no fiber. */
export const makeAuthenticator = (settings: Settings): Http.FindPrincipal => {
  const { context, failures, findCertificate, metadata, principalOf, proofs, requiresDpop, scopes, verifier } = settings
  const challenge = makeChallenge({ bearer: !requiresDpop, dpop: proofs?.algorithms }, metadata)
  const scope = scopes.join(" ")

  const refusals = new Map<string, Identified>()
  /** A refusal with a challenge. It is made once: an error captures a stack, which costs more than a refusal. */
  const refuse = (status: number, message: string, params: ChallengeParams, failed?: Scheme): Identified => {
    const key = JSON.stringify([status, message, params, failed])
    const known = refusals.get(key)
    if (known !== undefined) return known
    const headers = { "www-authenticate": challenge({ scope, ...params }, failed), "cache-control": "no-store" }
    const refusal = Effect.fail(new Http.Refusal({ status, message, headers }))
    if (refusals.size < maxRefusals) refusals.set(key, refusal)
    return refusal
  }
  // "If the request lacks any authentication information […] the resource server SHOULD NOT include an error code" (RFC
  // 6750, 3.1).
  const missing = refuse(401, "Unauthorized: an access token is required", {})
  const malformed = refuse(400, "Bad Request: the Authorization header is malformed", {
    error: "invalid_request",
    error_description: "the Authorization header is malformed"
  })
  const invalidToken = (error_description: string, failed?: Scheme): Identified =>
    refuse(401, `Unauthorized: ${error_description}`, { error: "invalid_token", error_description }, failed)
  const long = invalidToken(tooLong.message)

  const refusedUntil = new Map<number, Effect.Effect<never, Http.Refusal>>()
  /** Refuses a client with too many failures: the cheapest of all answers, for a flood of bad tokens. */
  const tooMany = (seconds: number): Effect.Effect<never, Http.Refusal> => {
    const known = refusedUntil.get(seconds)
    if (known !== undefined) return known
    const refusal = tooManyFailures(seconds)
    if (refusedUntil.size < maxRefusals) refusedUntil.set(seconds, refusal)
    return refusal
  }

  /** The outcome of each verified token, whose object is the same for as long as the verifier knows it. */
  const outcomes = new WeakMap<VerifiedToken, Principal | Identified>()
  const outcomeOf = (token: VerifiedToken): Principal | Identified => {
    const known = outcomes.get(token)
    if (known !== undefined) return known
    const outcome = judge(token)
    outcomes.set(token, outcome)
    return outcome
  }
  const judge = (token: VerifiedToken): Principal | Identified => {
    const principal = principalOf(token)
    if (principal.id === "") return invalidToken("the token names no user and no client", "Bearer")
    setChallenger(principal, { scopes, metadata, challenge })
    if (hasScopes(principal, scopes)) return principal
    const { http, message } = insufficientScope(principal, [])
    return Effect.fail(new Http.Refusal({ status: 403, message, headers: http?.headers ?? noHeaders }))
  }

  const failed = (request: Http.HttpRequest, refusal: Identified): Identified => {
    failures.add(request.address)
    return refusal
  }

  /**
   * In how many seconds proofs for the key of a token are verified again. A known token passes the count of its address,
   * and a proof costs more than a good call: a thief of the token could send a flood of them. So the proofs for one key
   * have a count of their own.
   */
  const proofsRetryAfterOf = (request: Http.HttpRequest, { confirmation }: VerifiedToken): number | undefined => {
    const jkt = confirmation?.jkt
    return jkt === undefined ? undefined : failures.retryAfter(request.address, jkt)
  }

  /** Verifies a token that is not known, and the proof of the sender that the token is its own. */
  const verify = (attempt: Attempt): Identified => {
    const { request, scheme, token } = attempt
    const retryAfter = failures.retryAfter(request.address)
    if (retryAfter !== undefined) {
      const known = verifier.known(token, context)
      if (known === undefined) return tooMany(retryAfter)
      const proofsRetryAfter = proofsRetryAfterOf(request, known)
      if (proofsRetryAfter !== undefined) return tooMany(proofsRetryAfter)
    }
    const verification = verifier.verify(token, context)
    const error = errorOf(verification) ?? bindingErrorOf(verification, scheme)
    if (error !== undefined) return refuseToken(request, scheme, error)
    if (!Effect.isEffect(verification)) return admit(attempt, verification)
    const turn = Effect.suspend(() => {
      // While it waited, other tokens of the address may have failed, and its token may have been verified.
      const known = verifier.known(token, context)
      const retryAfter = known === undefined ? failures.retryAfter(request.address) : undefined
      return retryAfter === undefined
        ? admit(attempt, known ?? verification)
        : tooMany(retryAfter)
    })
    return failures.limit(request.address, turn)
  }

  /** Finishes a verification, with the proof of the sender. */
  const admit = (attempt: Attempt, verification: Verification): Identified => {
    const { request, scheme } = attempt
    const proven = Effect.flatMap(effectOf(verification), (verified) => prove(attempt, verified))
    const outcome = Effect.catch(
      Effect.flatMap(proven, (verified) => effectOf(outcomeOf(verified))),
      (error): Identified => {
        switch (error._tag) {
          case "Refusal":
            return Effect.fail(error)
          case "InvalidProof":
            return refuseProof(request, error)
          case "InvalidToken":
          case "VerifierUnavailable":
            return refuseToken(request, scheme, error)
        }
      }
    )
    // The client has disconnected. Not counted, it could have any number of tokens verified without being refused.
    return Effect.onInterrupt(outcome, () => Effect.sync(() => failures.add(request.address)))
  }

  /** Why a known token is refused without a look at a certificate or a proof: at once, as other bad tokens. */
  const bindingErrorOf = (verification: Verification, scheme: Scheme): InvalidToken | undefined =>
    Effect.isEffect(verification) || verification.confirmation?.x5tS256 !== undefined
      ? undefined
      : bindingProblem(verification, { scheme, requireDpop: requiresDpop, certificate: undefined })

  const refuseToken = (
    request: Http.HttpRequest,
    scheme: Scheme,
    error: InvalidToken | VerifierUnavailable
  ): Identified =>
    error._tag === "InvalidToken"
      ? failed(request, invalidToken(error.message, scheme))
      : Effect.andThen(
        Effect.logDebug("an access token cannot be verified now", error),
        withRetry(503, "Service Unavailable: the access token cannot be verified now", error.retryAfterSeconds)
      )

  /** A client that was not told a nonce has not failed. */
  const refuseProof = (request: Http.HttpRequest, { code, message, nonce }: InvalidProof): Identified => {
    const text = `Unauthorized: ${message}`
    const params = { error: code, error_description: message }
    if (nonce === undefined) return failed(request, refuse(401, text, params, "DPoP"))
    const headers = { "www-authenticate": challenge({ scope, ...params }, "DPoP"), "dpop-nonce": nonce }
    return Effect.fail(new Http.Refusal({ status: 401, message: text, headers }))
  }

  /** The thumbprint of the client's certificate, if it has one. */
  const certificateOf = (request: Http.HttpRequest): Effect.Effect<string | undefined> => {
    const certificate = findCertificate(request)
    return certificate === undefined || certificate === "malformed" ? Effect.undefined : thumbprintOf(certificate)
  }

  const prove = (
    { answer, request, scheme, token }: Attempt,
    verified: VerifiedToken
  ): Effect.Effect<VerifiedToken, InvalidToken | InvalidProof | VerifierUnavailable | Http.Refusal> => {
    const { jkt, x5tS256 } = verified.confirmation ?? {}
    const bound = Effect.flatMap(
      x5tS256 === undefined ? Effect.undefined : certificateOf(request),
      (certificate) => {
        const problem = bindingProblem(verified, { scheme, requireDpop: requiresDpop, certificate })
        return problem === undefined ? Effect.succeed(verified) : Effect.fail(problem)
      }
    )
    if (jkt === undefined || proofs === undefined) return bound
    const retryAfter = proofsRetryAfterOf(request, verified)
    if (retryAfter !== undefined) return tooMany(retryAfter)
    const owner = `${verified.issuer} ${verified.subject ?? verified.clientId ?? ""}`
    const proof = request.header("dpop")
    const proven = Effect.matchEffect(
      proofs.verify({ jkt, method: request.method, owner, path: request.path, proof, token }),
      {
        onFailure: (error) => {
          // A client that was not told a nonce has not failed.
          if (error._tag === "InvalidProof" && error.nonce === undefined) failures.add(request.address, jkt)
          return Effect.fail(error)
        },
        onSuccess: ({ nonce }) => {
          if (nonce !== undefined) answer.addHeaders({ "dpop-nonce": nonce })
          return Effect.succeed(verified)
        }
      }
    )
    // As for a token, a client that disconnects meanwhile has failed.
    return Effect.andThen(
      bound,
      Effect.onInterrupt(proven, () => Effect.sync(() => failures.add(request.address, jkt)))
    )
  }

  return (request, answer) => {
    const authorization = request.header("authorization")
    if (authorization === undefined) return missing
    if (authorization.length > maxChars) return failed(request, long)
    if (!requiresDpop && authorization.startsWith("Bearer ")) {
      const verified = verifier.known(authorization.slice(7), context)
      if (verified !== undefined && verified.confirmation === undefined) return outcomeOf(verified)
    }
    const [, name = "", token] = credentials.exec(authorization) ?? []
    const scheme = schemes.get(name.toLowerCase())
    // "the client was unaware that authentication is necessary or attempted using an unsupported authentication method".
    if (scheme === undefined || (scheme === "DPoP" && proofs === undefined)) return missing
    if (token === undefined || !b64token.test(token)) return failed(request, malformed)
    return verify({ request, answer, token, scheme })
  }
}

const schemes: ReadonlyMap<string, Scheme> = new Map([["bearer", "Bearer"], ["dpop", "DPoP"]])

/** How a token was presented. */
export interface Presentation {
  /** The scheme of the `Authorization` header. */
  readonly scheme: "Bearer" | "DPoP"
  /** Whether tokens must be bound to a key of DPoP. */
  readonly requireDpop: boolean
  /** The thumbprint of the certificate of the client (`x5t#S256`), if it has one. */
  readonly certificate: string | undefined
}

/**
 * Why a token must not be accepted as it was presented. Undefined if it may; a token with `jkt` then needs a proof.
 *
 * A bound token that comes as a bearer token may have been stolen from its client, and must be refused (RFC 9449, 7.2),
 * and so must a token whose certificate is not that of the connection (RFC 8705, 3).
 */
export const bindingProblem = (
  { confirmation }: VerifiedToken,
  { certificate, requireDpop, scheme }: Presentation
): InvalidToken | undefined => {
  const { jkt, unsupported, x5tS256 } = confirmation ?? {}
  if (unsupported !== undefined) return invalid("Binding", "the token is bound by a method that is not supported")
  if (x5tS256 !== undefined && x5tS256 !== certificate) {
    return invalid("Binding", "the token is bound to another certificate than that of the connection")
  }
  if (jkt === undefined && scheme === "DPoP") {
    return invalid("Binding", "the token is not bound to a key: it needs the scheme Bearer")
  }
  if (jkt === undefined && requireDpop) {
    return invalid("Binding", "this server requires a token that is bound to a key (DPoP)")
  }
  if (jkt !== undefined && scheme === "Bearer") {
    return invalid("Binding", "the token is bound to a key: it needs the scheme DPoP and a proof")
  }
  return undefined
}
