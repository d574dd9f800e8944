/**
 * The person who signed in, as far as the authorization server reports it.
 *
 * Only an ID token names the person to the client. An access token does not, even if it is a JWT: it is meant for the
 * server, and "the client MUST NOT inspect the content of the access token" (RFC 9068, 6).
 */
import * as jose from "jose"
import { sameIssuer } from "./urls.ts"

/** The person of tokens. */
export interface Person {
  readonly subject: string
  readonly name?: string
}

/** Longer names are not shown. */
const maxChars = 256

const text = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" && value.length <= maxChars ? value : undefined

/**
 * Reads the person of an ID token that came with an answer of the token endpoint. The connection to the endpoint proves
 * who made it, in the place of the signature (OpenID Connect Core 1.0, 3.1.3.7, 6). `undefined` if it is of another
 * issuer or for another client, or names no person.
 */
export const personOf = (idToken: string | undefined, issuer: string, clientId: string): Person | undefined => {
  if (idToken === undefined) return undefined
  try {
    const { aud, iss, sub, ...claims } = jose.decodeJwt(idToken)
    const subject = text(sub)
    const audiences = Array.isArray(aud) ? aud : [aud]
    if (subject === undefined || iss === undefined || !sameIssuer(iss, issuer) || !audiences.includes(clientId)) {
      return undefined
    }
    const name = text(claims["email"]) ?? text(claims["preferred_username"]) ?? text(claims["name"])
    return { subject, ...(name === undefined ? {} : { name }) }
  } catch {
    return undefined
  }
}
