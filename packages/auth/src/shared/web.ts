/**
 * Functions for hosts, bodies, forms and pages, which the client, servers and proxies use.
 */
import { isLoopback } from "@skein/protocol/Hostname"

/**
 * Whether a host is one that redirect URIs to this computer have: `localhost`, `127.0.0.1` or `[::1]` (RFC 8252, 7.3 and
 * 8.3), and no other address of the loopback interface.
 */
export const isRedirectLoopback = (host: string): boolean =>
  host === "localhost" || host === "127.0.0.1" || host === "[::1]"

/** Whether a URL is protected from its network: https, http on loopback, or any http URL with `allowHttp`. */
export const isSafe = (url: URL | null, allowHttp = false): boolean =>
  url?.protocol === "https:" || (url?.protocol === "http:" && (allowHttp || isLoopback(url.hostname)))

/** Reads the body of a response. Above `maxBytes` it rejects with `tooLong`, and cancels the rest of the body. */
export const readText = async (response: Response, maxBytes: number, tooLong: () => Error): Promise<string> => {
  const reader = response.body?.getReader()
  if (reader === undefined) return ""
  const decoder = new TextDecoder()
  let text = ""
  let bytes = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    bytes += value.byteLength
    if (bytes > maxBytes) {
      await reader.cancel().catch(() => {})
      throw tooLong()
    }
    text += decoder.decode(value, { stream: true })
  }
}

/** Escapes every character that has a meaning in HTML, also inside attributes without quotes. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"'`=]/g, (character) => `&#${character.charCodeAt(0)};`)

/**
 * Encodes a name or a secret for `client_secret_basic`: "encoded using the "application/x-www-form-urlencoded" encoding
 * algorithm" (RFC 6749, 2.3.1), as browsers write forms.
 */
export const formEncode = (text: string): string => new URLSearchParams([["", text]]).toString().slice(1)

/** The `Authorization` header of `client_secret_basic`. */
export const basicAuthorization = (clientId: string, secret: string): string =>
  `Basic ${btoa(`${formEncode(clientId)}:${formEncode(secret)}`)}`

/** Parses JSON; `undefined` if it is not JSON. The error of `JSON.parse` quotes the text, so it is not passed on. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** An object of JSON; `undefined` for any other value. */
export const objectOf = (value: unknown): Readonly<Record<string, unknown>> | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value)
    ? value as Readonly<Record<string, unknown>>
    : undefined

/** Parses a JSON object. `undefined` for any other text. */
export const parseObject = (text: string): Readonly<Record<string, unknown>> | undefined => objectOf(parseJson(text))

/** A text that is not empty; `undefined` for any other value. */
export const textOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value : undefined

/**
 * Where the metadata of an authorization server may be: two addresses for an issuer without a path and three with one, in
 * the order of the specification (2025-11-25, Authorization Server Metadata Discovery).
 */
export const metadataUrls = (issuer: URL): ReadonlyArray<URL> => {
  const path = issuer.pathname.replace(/\/$/, "")
  return [
    `/.well-known/oauth-authorization-server${path}`,
    `/.well-known/openid-configuration${path}`,
    ...(path === "" ? [] : [`${path}/.well-known/openid-configuration`])
  ].map((path) => new URL(path, issuer))
}

/**
 * A number of seconds in a JSON document of another party, 0 or more. Some servers write it as text. Anything else counts as
 * absent: such members are optional (RFC 6749, 5.1; RFC 7591, 3.2.1).
 */
export const seconds = (value: unknown): number | undefined => {
  const number = typeof value === "string" && /^\d{1,20}$/.test(value) ? Number(value) : value
  return typeof number === "number" && number >= 0 && number < Infinity ? number : undefined
}

/** How many redirects of one document are followed. */
export const maxRedirects = 3

/** Where a redirect leads. Undefined for an answer that is not a redirect, or does not say where. */
export const redirectTarget = (status: number, headers: Headers, from: URL): URL | undefined => {
  const location = [301, 302, 303, 307, 308].includes(status) ? headers.get("location") : null
  return location === null ? undefined : URL.parse(location, from.href) ?? undefined
}

/**
 * Whether a redirect of a document may be followed: it stays on its origin, as a slash at the end of a path does. Another
 * origin has another operator, whom neither the user nor the server has named.
 */
export const staysOnOrigin = (target: URL, from: URL): boolean =>
  target.origin === from.origin && target.protocol === from.protocol && target.username === "" && target.password === ""
