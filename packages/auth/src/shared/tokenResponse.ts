/**
 * Reads the answers of token endpoints, which differ more than the specification allows, for a library that is stricter
 * than they are.
 */
import { parseObject, seconds, textOf } from "./web.ts"

type Json = Readonly<Record<string, unknown>>

/**
 * A form in the place of JSON, as providers answered before RFC 6749, and GitHub without `Accept`. A name that occurs
 * twice could mean either value, so such a text is not read, as a page is not.
 */
const parseForm = (text: string): Json | undefined => {
  if (!/^[\w.~*+%&=-]+$/.test(text)) return undefined
  const form = new URLSearchParams(text)
  const members = Object.fromEntries(form)
  const isAnswer = members["access_token"] !== undefined || members["error"] !== undefined
  return isAnswer && Object.keys(members).length === form.size ? members : undefined
}

/**
 * The optional members of an answer that can be read. A member of another type counts as absent, because the answer has
 * used up a code or a refresh token: it must not be lost for a member that RFC 6749, 5.1 does not require. So do members
 * that are `null`, and a refresh token that is empty.
 */
const optionalMembers = (json: Json): Json => {
  const { expires_in, refresh_token, scope } = json
  const read = {
    expires_in: seconds(expires_in),
    refresh_token: textOf(refresh_token),
    // Some servers write scopes as an array.
    scope: Array.isArray(scope) ? scope.filter((each) => typeof each === "string").join(" ") : scope
  }
  return { ...json, ...read, ...(typeof read.scope === "string" ? {} : { scope: undefined }) }
}

/**
 * Makes an answer readable for the library: it may be a form, the media type may be missing, GitHub answers errors with
 * 200, and a challenge hides the error in the body. `change` may replace members of the answer.
 */
export const tokenResponse = (
  status: number,
  headers: Headers,
  text: string,
  change: (json: Json) => Json = (json) => json
): Response => {
  const json = parseObject(text) ?? parseForm(text)
  if (json === undefined) return new Response(status === 204 || status === 304 ? null : text, { status, headers })
  const isError = typeof json["error"] === "string"
  const kept = new Headers({ "content-type": "application/json" })
  for (const name of ["date", "dpop-nonce", "location", "retry-after", ...(isError ? [] : ["www-authenticate"])]) {
    const value = headers.get(name)
    if (value !== null) kept.set(name, value)
  }
  const failed = isError && json["access_token"] == null
  const rest = failed ? json : change(optionalMembers(json))
  return new Response(JSON.stringify(rest), {
    status: failed && status < 300 ? 400 : status === 201 ? 200 : status,
    headers: kept
  })
}
