/**
 * Redirect URIs on the loopback interface (RFC 8252, 7.3). A URI is compared and extended as text: an authorization
 * server compares the text that was registered.
 */

/** The hosts of the loopback interface, as a URL has them. */
export type LoopbackHost = "127.0.0.1" | "localhost" | "[::1]"

/** A redirect URI on this computer. */
export interface LoopbackUri {
  readonly host: LoopbackHost
  /** `undefined` if the URI has no port, and so stands for every port. */
  readonly port: number | undefined
  /** The path, without a query. */
  readonly path: string
  /** The URI with this port. A URI that has a port keeps it. */
  readonly withPort: (port: number) => string
}

const pattern = /^http:\/\/(127\.0\.0\.1|localhost|\[::1\])(?::(\d{1,5}))?(\/[^?#]*)?(\?[^#]*)?$/i

/** Reads a redirect URI; `undefined` if it is not an `http` URI on the loopback interface. */
export const parseLoopback = (uri: string): LoopbackUri | undefined => {
  const [, host, port, path = "", query = ""] = pattern.exec(uri) ?? []
  if (host === undefined) return undefined
  return {
    host: host.toLowerCase() as LoopbackHost,
    port: port === undefined ? undefined : Number(port),
    path: path === "" ? "/" : path,
    withPort: (chosen) => port === undefined ? `http://${host}:${chosen}${path}${query}` : uri
  }
}

/**
 * Whether `uri` is one of the registered redirect URIs. A registered loopback URI without a port stands for each port:
 * "The authorization server MUST allow any port to be specified at the time of the request for loopback IP redirect
 * URIs" (RFC 8252, 7.3).
 */
export const isRegistered = (uri: string, registered: ReadonlyArray<string>): boolean => {
  const port = parseLoopback(uri)?.port
  return registered.some((each) => each === uri || (port !== undefined && parseLoopback(each)?.withPort(port) === uri))
}
