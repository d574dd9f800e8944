/**
 * Reads tokens and claims before and after their verification. Nothing here looks at a signature.
 */
import { cut } from "@skein/protocol/Text"
import * as Options from "@skein/runtime/Options"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Types from "effect/Types"
import { decode } from "jose/base64url"
import { objectOf, textOf } from "../../shared/web.ts"
import {
  type Claims,
  type Confirmation,
  InvalidToken,
  type TokenProblem,
  type TokenVerifier,
  type Verification,
  type VerifiedToken,
  type VerifyContext
} from "./verifiedToken.ts"

/** The longest token that is looked at, in characters: the most that `node:http` reads of all headers together. */
export const maxTokenChars = 16_384

type Fields = Types.Mutable<Pick<InvalidToken, "_tag" | "message" | "problem" | "received">>

/**
 * Makes an error without a stack, which costs more than the refusal: anyone can send a flood of bad tokens. The message
 * must be printable.
 */
export const invalid = (problem: TokenProblem, message: string, received?: unknown): InvalidToken => {
  const error = Object.create(InvalidToken.prototype) as Fields
  error._tag = "InvalidToken"
  error.message = message
  error.problem = problem
  if (received !== undefined) error.received = shortened(received)
  return error as unknown as InvalidToken
}

const maxReceivedChars = 200

const shortened = (value: unknown): string =>
  cut(
    JSON.stringify(typeof value === "string" ? cut(value, maxReceivedChars) : value) ?? "",
    maxReceivedChars
  )

/** The error for a token beyond `maxTokenChars`. */
export const tooLong: InvalidToken = /* @__PURE__ */ invalid(
  "TooLong",
  `the token is longer than ${maxTokenChars} characters`
)

/** The error for a token of an issuer that is not the expected one. */
export const otherIssuer = (received: unknown): InvalidToken =>
  invalid("Issuer", "the token was issued by another authorization server", received)

/** Whether a token has the form of a signed JWT: three parts. Tokens of another form are opaque, also encrypted JWTs. */
export const isJwt = (token: string): boolean => {
  const first = token.indexOf(".")
  const second = token.indexOf(".", first + 1)
  return first > 0 && second > first + 1 && !token.includes(".", second + 1)
}

const utf8 = new TextDecoder("utf-8", { fatal: true })
const base64url = /^[\w-]+$/
const base64urlAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
const ascii = /^[\0-\x7f]*$/

const readPart = (part: string): Claims | undefined => {
  // The decoder would throw: an error with a stack for each bad token of a flood.
  if (part.length % 4 === 1 || !base64url.test(part)) return undefined
  // A part is ASCII nearly always. Then its bytes are its text, without a copy of each byte.
  const bytes = atob(part.replaceAll("-", "+").replaceAll("_", "/"))
  return objectOf(JSON.parse(ascii.test(bytes) ? bytes : utf8.decode(decode(part))))
}

/**
 * Whether a signature is written in the one way that its bytes have. Decoders accept padding, and other bits in the last
 * character. Then one token would be many, each with a verification and a place in the cache of its own (RFC 7515, 2:
 * "with all trailing '=' characters omitted").
 */
const isCanonical = (signature: string): boolean => {
  const rest = signature.length % 4
  const last = base64urlAlphabet.indexOf(signature.at(-1) ?? "")
  // An empty one is refused by the algorithm.
  return signature === "" ||
    (base64url.test(signature) && (rest === 0 || (rest === 2 && last % 16 === 0) || (rest === 3 && last % 4 === 0)))
}

const withoutPadding = (part: string): string => part.length % 4 === 0 ? part.replace(/={1,2}$/, "") : part

/**
 * The header and the claims of a JWT, not verified. Undefined if it is not a JWT. With `padded` its parts may have the
 * padding of base64, which RFC 7515 forbids.
 */
export const readJwt = (
  token: string,
  padded = false
): { readonly header: Claims; readonly claims: Claims } | undefined => {
  if (!isJwt(token)) return undefined
  const parts = token.split(".")
  const [first = "", second = "", signature = ""] = padded ? parts.map(withoutPadding) : parts
  if (!isCanonical(signature)) return undefined
  try {
    const header = readPart(first)
    const claims = header && readPart(second)
    return claims && { header, claims }
  } catch {
    return undefined
  }
}

/** A list of texts that may be written as one text. Undefined if it is neither. */
export const textsOf = (value: unknown): ReadonlyArray<string> | undefined =>
  typeof value === "string" ?
    [value] :
    Array.isArray(value) && value.every((item) => typeof item === "string")
    ? value
    : undefined

/** Whether the time of a token is over or has not come, by `exp` and `nbf`. Times are in milliseconds. */
export const timeProblem = ({ exp, nbf }: Claims, now: number, tolerance: number): InvalidToken | undefined => {
  for (const [name, value] of [["exp", exp], ["nbf", nbf]] as const) {
    if (value !== undefined && !Number.isFinite(value)) {
      return invalid("Malformed", `${name} of the token is not a number`)
    }
  }
  if (exp !== undefined && (exp as number) * 1000 <= now - tolerance) {
    return invalid("Expired", "the token has expired")
  }
  if (nbf !== undefined && (nbf as number) * 1000 > now + tolerance) {
    return invalid("NotYetValid", "the token is not valid yet")
  }
  return undefined
}

/** The scopes of `scope` (RFC 8693, 4.2: a text) or `scp` (Entra: a text; Okta: a list). */
export const scopesOf = ({ scope, scp }: Claims): ReadonlyArray<string> => {
  const texts = textsOf(scope ?? scp) ?? []
  return [...new Set(texts.flatMap((text) => text.split(" ")))].filter((one) => one !== "")
}

// RFC 9068; OpenID; Okta; Entra's tokens of version 1.
const clientOf = ({ appid, azp, cid, client_id }: Claims): unknown => client_id ?? azp ?? cid ?? appid

const confirmationOf = (cnf: unknown): Confirmation | undefined => {
  if (cnf === undefined || cnf === null) return undefined
  if (typeof cnf !== "object" || Array.isArray(cnf)) return { unsupported: "cnf" }
  const { jkt, "x5t#S256": x5tS256, ...others } = cnf as Claims
  const [unsupported] = Object.keys(others)
  if (unsupported !== undefined) return { unsupported }
  if (jkt === undefined && x5tS256 === undefined) return { unsupported: "cnf" }
  for (const [name, value] of [["jkt", jkt], ["x5t#S256", x5tS256]] as const) {
    if (value !== undefined && (typeof value !== "string" || value === "")) return { unsupported: name }
  }
  return { jkt: jkt as string | undefined, x5tS256: x5tS256 as string | undefined }
}

/** Whether a claim is absent, or a text that is not empty. */
const isAbsentOrText = (value: unknown): value is string | undefined =>
  value === undefined || textOf(value) !== undefined

/**
 * The problem of the names in a token. A subject that cannot be read is not an absent one: the token would be that of its
 * client, which all users of the client would share.
 */
export const nameProblem = (subject: unknown, clientId: unknown): InvalidToken | undefined => {
  if (!isAbsentOrText(subject)) return invalid("Malformed", "sub of the token is empty or not a text", subject)
  if (!isAbsentOrText(clientId)) return invalid("Malformed", "client_id of the token is empty or not a text", clientId)
  return undefined
}

/** The facts in the claims of a verified token. Fails if they name neither a user nor a client. */
export const tokenOf = (
  issuer: string,
  claims: Claims,
  toleranceMillis: number
): Effect.Effect<VerifiedToken, InvalidToken> => {
  const { aud, cnf, exp, sub: subject } = claims
  const clientId = clientOf(claims)
  const problem = nameProblem(subject, clientId)
  if (problem !== undefined) return Effect.fail(problem)
  if (subject === undefined && clientId === undefined) {
    return Effect.fail(invalid("Malformed", "the token has neither a subject nor a client"))
  }
  return Effect.succeed({
    issuer,
    subject: subject as string | undefined,
    clientId: clientId as string | undefined,
    scopes: scopesOf(claims),
    audiences: textsOf(aud) ?? [],
    // A stream that ended at `exp` would be opened again with the same token, and end again, for the whole tolerance.
    expiresAt: exp === undefined ? undefined : exp as number + toleranceMillis / 1_000,
    confirmation: confirmationOf(cnf),
    claims
  })
}

/**
 * Makes the `verify` of a verifier. A token that is too long is refused, before anything of it is read. `now` is the time
 * of the context, or of the program.
 */
export const verifyWith = (
  verify: (token: string, context: VerifyContext, now: number) => Exclude<Verification, VerifiedToken>
): TokenVerifier["verify"] =>
(token, context) => {
  if (token.length > maxTokenChars) return Effect.fail(tooLong)
  const { now } = context
  return now === undefined
    ? Effect.clockWith((clock) => verify(token, context, clock.currentTimeMillisUnsafe()))
    : verify(token, context, now)
}

const accessTokenTypes = new Set(["at+jwt", "application/at+jwt"])
const plainTypes = new Set(["jwt", "application/jwt"])
// Members of ID tokens and of logout tokens (OpenID Connect Core, 3.3.2.11; Back-Channel Logout, 2.4).
const otherMembers = ["at_hash", "c_hash", "s_hash", "events"]

/**
 * Whether the claims are those of another kind of token. Issuers sign several kinds with one key, and an ID token can have
 * the audience of a resource, if that is a client as well (RFC 8725, 3.11 and 3.12).
 */
export const isOtherKind = (claims: Claims): boolean => {
  // Cognito has `token_use`. Keycloak has `typ` among the claims.
  const { token_use: use, typ } = claims
  return otherMembers.some((name) => claims[name] !== undefined) || use === "id" ||
    (typeof typ === "string" && /^(id|refresh|offline|logout)$/i.test(typ))
}

/** Whether the `typ` in the header of a JWT is that of an access token, or says nothing about its kind. */
export const isAccessTokenType = (typ: unknown, requireType: boolean): boolean => {
  if (typ === undefined) return !requireType
  if (typeof typ !== "string") return false
  const type = typ.toLowerCase()
  return accessTokenTypes.has(type) || (!requireType && plainTypes.has(type))
}

/** How much the clocks of two machines may differ, in milliseconds. */
export const toleranceOf = (clockTolerance: Duration.Input | undefined): number =>
  Options.resolve({ clockTolerance }, {}, { clockTolerance: "5 seconds" }).clockTolerance
