/** Checks the metadata that clients register with a proxy. */
import { isRedirectLoopback } from "../shared/web.ts"

/** Schemes that a browser or a system runs, or reads files with. */
const dangerous = new Set([
  ...["javascript:", "data:", "vbscript:", "file:", "blob:", "about:", "filesystem:", "view-source:"],
  ...["ftp:", "ws:", "wss:", "mailto:", "tel:", "chrome:", "ms-appinstaller:", "search-ms:"]
])

/**
 * Why a redirect URI is not allowed, or `undefined`. `allowed` has exact addresses, and `loopback` for every port and
 * path of this computer.
 */
export const redirectProblem = (uri: string, allowed: ReadonlyArray<string> | undefined): string | undefined => {
  const url = URL.parse(uri)
  if (url === null) return "it is not a URL"
  if (url.hash !== "" || url.username !== "" || url.password !== "") return "it has a fragment or a user name"
  const local = url.protocol === "http:" && isRedirectLoopback(url.hostname)
  if (url.protocol === "http:" && !local) return "http is for loopback only"
  if (dangerous.has(url.protocol)) return `the scheme ${url.protocol} is not allowed`
  if (allowed === undefined) return undefined
  return allowed.includes(uri) || (local && allowed.includes("loopback")) ? undefined : "this server does not allow it"
}

/**
 * Whether a redirect URI is https on this computer: of a web application that is being developed. The engine does not
 * accept it of native applications.
 */
export const isLocalHttps = (uri: string): boolean => {
  const url = URL.parse(uri)
  return url !== null && url.protocol === "https:" && isRedirectLoopback(url.hostname)
}
