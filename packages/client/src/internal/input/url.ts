/**
 * Checks the URLs that a server wants the user to visit, and the URIs of roots. Nothing is fetched.
 */
import { mayBeLocal } from "@skein/protocol/Hostname"
import * as Result from "effect/Result"

/**
 * A property of a URL that the user must be warned of.
 *
 * - `punycode`: a label of the host is in Punycode and may look like another name ("SHOULD have warnings for
 *   ambiguous/suspicious URIs (i.e., containing Punycode)").
 * - `credentials`: the URL has a user name or a password before an `@`, which may look like the host.
 * - `insecure`: the URL is `http` and its host is not this machine, as browsers resolve it: they keep every name below
 *   `localhost` on it.
 */
export type Warning = "punycode" | "credentials" | "insecure"

/** Parses an `http` or `https` URL. Fails with a one-line reason for any other text. */
export const parseUrl = (text: string): Result.Result<URL, string> => {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined) return Result.fail("The url is not a valid URL")
  return url.protocol === "https:" || url.protocol === "http:"
    ? Result.succeed(url)
    : Result.fail("The url must use http or https")
}

/** The warnings about a URL. */
export const urlWarnings = (url: URL): ReadonlyArray<Warning> => {
  const found: Array<Warning> = []
  if (url.hostname.split(".").some((label) => label.startsWith("xn--"))) found.push("punycode")
  if (url.username !== "" || url.password !== "") found.push("credentials")
  if (url.protocol === "http:" && !mayBeLocal(url.hostname)) found.push("insecure")
  return found
}

/**
 * Describes why the URI of a root is not valid; `undefined` if it is. "This MUST be a `file://` URI"; "Clients MUST:
 * […] Validate all root URIs to prevent path traversal" (roots, data types and security considerations).
 */
export const rootUriProblem = (uri: string): string | undefined => {
  if (!/^file:\/\//i.test(uri) || !URL.canParse(uri)) return "is not a file:// URI"
  const path = uri.slice("file://".length).split(/[?#]/, 1)[0]!
  if (path.includes("\\") || /%(?:00|2f|5c)/i.test(path)) return "has an encoded separator, a backslash or a null byte"
  const segments = path.replaceAll(/%2e/gi, ".").split("/")
  return segments.includes("..") || segments.includes(".") ? "has a segment . or .." : undefined
}
