/**
 * Verifies DPoP proofs: that the sender of a token has the key that the token is bound to (RFC 9449, 4.3 and 7.1).
 */
import { sha256Base64Url } from "@skein/runtime/Digest"
import * as ProcessLocal from "@skein/runtime/ProcessLocal"
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Clock from "effect/Clock"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { EmbeddedJWK } from "jose/jwk/embedded"
import { calculateJwkThumbprint } from "jose/jwk/thumbprint"
import { jwtVerify } from "jose/jwt/verify"
import { objectOf } from "../shared/web.ts"
import * as ReplayStore from "./ReplayStore.ts"
import { asymmetric, checkAlgorithms } from "./tokens/algorithms.ts"
import { makeNonces, type NonceOptions } from "./nonces.ts"
import { readJwt, toleranceOf } from "./tokens/parseToken.ts"
import { type Claims, VerifierUnavailable } from "./tokens/verifiedToken.ts"

/** How old a proof may be, by its `iat`, in milliseconds. Its `jti` is stored for this long. */
const proofLifetime = 60_000

/** The longest proof that is read, in characters. */
const maxProofChars = 8_192

/** Options of the verification of DPoP proofs. */
export interface DpopOptions {
  /** The accepted algorithms of proofs: all asymmetric ones by default. */
  readonly algorithms?: ReadonlyArray<string> | undefined
  /** How much the clock of a client may differ: 5 seconds by default. Raise it for clients with other clocks. */
  readonly clockTolerance?: Duration.Input | undefined
  /** Demands nonces of this server in proofs. Off by default. */
  readonly nonces?: NonceOptions | undefined
}

/** A request with a token that is bound to a key. */
export interface DpopRequest {
  /** The header `DPoP`. */
  readonly proof: string | undefined
  readonly method: string
  /** The path of the request, if it may differ from that of the resource, as the paths of HTTP+SSE do. */
  readonly path?: string | undefined
  /** The access token. */
  readonly token: string
  /** The thumbprint of the key that the token is bound to. */
  readonly jkt: string
  /** The sender, whose proofs share a bound of the `ReplayStore`. */
  readonly owner: string
}

/**
 * The proof is not accepted. `code` is the error of the `WWW-Authenticate` header (RFC 9449, 7.1 and 9). The response
 * to `use_dpop_nonce` has `nonce` in the header `DPoP-Nonce`.
 */
export class InvalidProof extends PrintableError.tagged("InvalidProof")<{
  readonly code: "invalid_dpop_proof" | "use_dpop_nonce"
  readonly nonce?: string | undefined
}> {}

const refuse = (message: string): InvalidProof => new InvalidProof({ message, code: "invalid_dpop_proof" })

// The members of private and symmetric keys (RFC 7518, 6; RFC 9964 for AKP).
const secretMembers = ["d", "p", "q", "dp", "dq", "qi", "oth", "k", "priv"]

// The time to verify an RSA signature grows with the key, and the sender chose the key. 8,192 bits, and an exponent of
// 32 bits.
const maxModulusChars = 1_366
const maxExponentChars = 6

const jwkProblem = (jwk: unknown): string | undefined => {
  const key = objectOf(jwk)
  if (key === undefined) return "the DPoP proof has no jwk"
  if (secretMembers.some((member) => key[member] !== undefined)) return "the jwk of the DPoP proof is not a public key"
  const { e, n } = key
  const isLong = (typeof n === "string" && n.length > maxModulusChars) ||
    (typeof e === "string" && e.length > maxExponentChars)
  return isLong ? "the key of the DPoP proof is too long" : undefined
}

// "Syntax-Based Normalization and Scheme-Based Normalization" (RFC 9449, 4.3): the case of the host, the default port,
// dot segments by URL; escaped letters here.
const normalized = (uri: string): string | undefined => {
  const url = URL.parse(uri)
  if (url === null) return undefined
  const path = url.pathname.replaceAll(/%[0-9a-f]{2}/gi, (escaped) => {
    const letter = String.fromCharCode(Number.parseInt(escaped.slice(1), 16))
    return /[A-Za-z0-9._~-]/.test(letter) ? letter : escaped.toUpperCase()
  })
  return `${url.protocol}//${url.host}${path}`
}

const maxUriChars = 2_048
const maxJtiChars = 512

export type DpopVerifier = Effect.Success<ReturnType<typeof make>>

const proofsInMemory = { what: "the DPoP proofs in memory (ReplayStore)", remedy: "use SqlReplayStore.layer" }
const randomSecret = { what: "the random secret of DPoP nonces", remedy: "set nonces.secret" }

/**
 * Makes the verifier of proofs for a resource. It uses the `ReplayStore` of the program, or one in memory. `htu` is
 * compared with the resource, since the sender chooses the `Host` header, and with the path of the request at the origin
 * of the resource, since HTTP+SSE has other paths. A proxy may rewrite paths, so the resource itself is always accepted.
 */
export const make = Effect.fnUntraced(function*(resource: string, options: DpopOptions = {}) {
  const clock = yield* Clock.Clock
  const given = yield* Effect.serviceOption(ReplayStore.ReplayStore)
  if (Option.isNone(given)) yield* ProcessLocal.report(proofsInMemory)
  const store = Option.getOrElse(given, () => ReplayStore.makeMemory())
  const expected = normalized(resource)
  if (expected === undefined) throw new Error(`DPoP: the resource is not a URL: ${resource}`)
  const origin = new URL(resource).origin
  /** The accepted algorithms, for `dpop_signing_alg_values_supported` and for `algs` of the challenge. */
  const algorithms = checkAlgorithms("DPoP", options.algorithms ?? asymmetric)
  if (options.nonces !== undefined && options.nonces.secret === undefined) yield* ProcessLocal.report(randomSecret)
  const nonces = options.nonces === undefined ? undefined : makeNonces(clock, options.nonces)
  const tolerance = toleranceOf(options.clockTolerance)

  /**
   * Verifies the proof of a request. Returns a nonce for the header `DPoP-Nonce` of the response, if the client should use
   * a newer one (RFC 9449, 8.2).
   */
  const verify = Effect.fnUntraced(function*(request: DpopRequest) {
    const { proof } = request
    const { claims, jwk } = yield* Effect.suspend(() => read(request))
    if (claims["ath"] !== (yield* sha256Base64Url(request.token))) {
      return yield* refuse("ath of the DPoP proof is not the hash of this token")
    }
    const jkt = yield* Effect.tryPromise({
      try: () => calculateJwkThumbprint(jwk as never),
      catch: () => refuse("the jwk of the DPoP proof is malformed")
    })
    if (jkt !== request.jkt) return yield* refuse("the key of the DPoP proof is not the key of the token")
    yield* Effect.tryPromise({
      // The claims were read before: the clock of the program decided about `iat`.
      try: () =>
        jwtVerify(proof!, EmbeddedJWK, {
          algorithms: [...algorithms],
          typ: "dpop+jwt",
          currentDate: new Date(clock.currentTimeMillisUnsafe())
        }),
      catch: () => refuse("the signature of the DPoP proof is not valid")
    })
    const nonce = yield* checkNonce(claims["nonce"])
    const now = clock.currentTimeMillisUnsafe()
    const isFirst = yield* Effect.catch(
      Effect.flatMap(sha256Base64Url(`${jkt} ${String(claims["jti"])}`), (id) =>
        store.add({
          id,
          owner: request.owner,
          now,
          // `iat` may be ahead by the tolerance, and the proof is accepted until `iat`, its age and the tolerance.
          expiresAt: now + proofLifetime + 2 * tolerance + 1
        })),
      (cause) => Effect.fail(new VerifierUnavailable({ message: cause.message, retryAfterSeconds: 5, cause }))
    )
    if (!isFirst) return yield* refuse("the DPoP proof was used before")
    return { nonce }
  })

  /** Reads the proof, and compares what needs no cryptography. */
  const read = (
    { method, path, proof }: DpopRequest
  ): Effect.Effect<{ claims: Claims; jwk: unknown }, InvalidProof> => {
    const fail = (message: string) => Effect.fail(refuse(message))
    if (proof === undefined || proof === "") return fail("the request has no DPoP proof")
    if (proof.length > maxProofChars) return fail(`the DPoP proof is longer than ${maxProofChars} characters`)
    // Node joins repeated headers by a comma.
    if (proof.includes(",")) return fail("the request has several DPoP proofs")
    const parts = readJwt(proof)
    if (parts === undefined) return fail("the DPoP proof is not a JWT")
    const { claims, header: { alg, jwk, typ } } = parts
    if (typ !== "dpop+jwt") return fail("typ of the DPoP proof is not dpop+jwt")
    if (typeof alg !== "string" || !algorithms.includes(alg)) return fail("alg of the DPoP proof is not allowed")
    const problem = jwkProblem(jwk)
    if (problem !== undefined) return fail(problem)
    const { htm, htu, iat, jti } = claims
    if (typeof jti !== "string" || jti === "" || jti.length > maxJtiChars) {
      return fail("jti of the DPoP proof is missing")
    }
    if (htm !== method) return fail("htm of the DPoP proof is another method")
    if (typeof htu !== "string" || htu.length > maxUriChars || !isRequested(htu, path)) {
      return fail("htu of the DPoP proof is another resource")
    }
    if (typeof iat !== "number") return fail("iat of the DPoP proof is missing")
    const age = clock.currentTimeMillisUnsafe() - iat * 1000
    if (!(age <= proofLifetime + tolerance && age >= -tolerance)) {
      return fail("iat of the DPoP proof is too old, or in the future")
    }
    return Effect.succeed({ claims, jwk })
  }

  /** Whether `htu` is the resource, or the path of the request at the origin of the resource. */
  const isRequested = (htu: string, path: string | undefined): boolean => {
    const uri = normalized(htu)
    return uri === expected ||
      (path?.startsWith("/") === true && uri !== undefined && uri === normalized(origin + path))
  }

  /** Returns a nonce for the response if the client should use another one from now on. */
  const checkNonce = (nonce: unknown): Effect.Effect<string | undefined, InvalidProof> => {
    if (nonces === undefined) return Effect.undefined
    return Effect.flatMap(nonces.current, (current) => {
      if (nonce === current) return Effect.undefined
      return Effect.flatMap(nonces.isValid(nonce), (isValid) =>
        isValid ? Effect.succeed(current) : Effect.fail(
          new InvalidProof({
            message: "the DPoP proof needs a nonce of this server",
            code: "use_dpop_nonce",
            nonce: current
          })
        ))
    })
  }

  return { algorithms, verify }
})
