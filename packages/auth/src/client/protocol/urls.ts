/**
 * The URLs of discovery: where documents are, and which URLs are used at all.
 *
 * Resources and issuers are compared as text, never through `URL`: it adds a slash to an authority and changes case and
 * escapes, and authorization servers compare bytes.
 */
import { isSafe } from "../../shared/web.ts"

/** Whether requests may go to a URL: https, or http on the loopback interface (2026-07-28, Communication Security). */
export const isSecure = (url: URL): boolean => isSafe(url) && url.username === "" && url.password === ""

/** Parses an absolute URL that requests may go to. */
export const parseSecure = (text: unknown): URL | undefined => {
  const url = typeof text === "string" ? URL.parse(text) : null
  return url !== null && isSecure(url) ? url : undefined
}

/** The text of the URL of a server, which identifies it: without its fragment. */
export const serverUrl = ({ origin, pathname, search }: URL): string => `${origin}${pathname}${search}`

/** A path or an address without a slash at its end. */
export const withoutSlash = (path: string): string => path.endsWith("/") ? path.slice(0, -1) : path

/**
 * Where the protected resource metadata of a server may be: the URL of the challenge, else the well-known path with the
 * path of the server, else the one of its origin (2025-11-25, Protected Resource Metadata Discovery Requirements). A
 * URL of another origin is left out: it would let a server send its clients anywhere.
 */
export const resourceMetadataUrls = (server: URL, named: string | undefined): ReadonlyArray<URL> => {
  const given = named === undefined ? null : URL.parse(named)
  const path = withoutSlash(server.pathname)
  const wellKnown = "/.well-known/oauth-protected-resource"
  const urls = [
    ...(given !== null && given.origin === server.origin && given.protocol === server.protocol ? [given] : []),
    ...(path === "" ? [] : [new URL(`${wellKnown}${path}${server.search}`, server)]),
    // RFC 9728, 3.1 removes a slash after the host only, and servers differ.
    ...(path === server.pathname || path === "" ? [] : [new URL(`${wellKnown}${path}/${server.search}`, server)]),
    new URL(wellKnown, server)
  ]
  return urls.filter((url, index) => urls.findIndex(({ href }) => href === url.href) === index)
}

/** Whether `resource` is the server or contains it: the same origin, and a path that starts the server's. */
export const coversServer = (resource: string, server: URL): boolean => {
  const url = URL.parse(resource)
  if (url === null || url.origin !== server.origin || url.protocol !== server.protocol || url.hash !== "") return false
  const above = `${withoutSlash(url.pathname)}/`
  return `${withoutSlash(server.pathname)}/`.startsWith(above) && (url.search === "" || url.search === server.search)
}

/**
 * The canonical URI of a server that publishes no metadata (2025-11-25, Canonical Server URI): with its path, and without
 * the slash of an empty one. Without the query, which may be secret ("SHOULD NOT include a query component": RFC 8707, 2).
 */
export const canonicalUri = ({ origin, pathname }: URL): string => pathname === "/" ? origin : `${origin}${pathname}`

/** Parses an issuer: a URL that is secure, without query and fragment (RFC 8414, 2). */
export const parseIssuer = (issuer: string): URL | undefined => {
  const url = parseSecure(issuer)
  return url === undefined || issuer.includes("?") || issuer.includes("#") ? undefined : url
}

/**
 * Whether two issuers are identical, as text. One difference is tolerated: a slash after an issuer that is only an
 * authority. Google's metadata is linked as `https://accounts.google.com/` and names itself without the slash.
 */
export const sameIssuer = (a: string, b: string): boolean =>
  a === b || (URL.parse(a)?.pathname === "/" && withoutSlash(a) === withoutSlash(b))
