/** Cookies as a browser holds them (RFC 6265): by host and path, not by port. */

interface Cookie {
  readonly name: string
  readonly value: string
  readonly host: string
  readonly path: string
  readonly expiresAt: number
}

const defaultPath = (path: string): string => {
  const end = path.lastIndexOf("/")
  return end <= 0 ? "/" : path.slice(0, end)
}

const matches = (path: string, cookiePath: string): boolean =>
  path === cookiePath || (path.startsWith(cookiePath) && (cookiePath.endsWith("/") || path[cookiePath.length] === "/"))

/** The cookies of one browser. */
export class CookieJar {
  readonly #cookies = new Map<string, Cookie>()

  /** Stores what a response of `url` set. */
  store(url: URL, lines: ReadonlyArray<string>): void {
    for (const line of lines) {
      const [pair = "", ...attributes] = line.split(";").map((part) => part.trim())
      const [name, value] = splitPair(pair)
      const values = new Map(attributes.map(splitPair).map(([key, text]) => [key.toLowerCase(), text]))
      const path = values.get("path")?.startsWith("/") ? values.get("path")! : defaultPath(url.pathname)
      const secure = values.has("secure")
      // `__Host-` binds a cookie to this host and the whole of it; `__Secure-` to https.
      if (name.startsWith("__Host-") && !(secure && path === "/" && !values.has("domain"))) continue
      if (name.startsWith("__Secure-") && !secure) continue
      const maxAge = values.get("max-age")
      const expires = values.get("expires")
      const expiresAt = maxAge !== undefined
        ? Date.now() + Number(maxAge) * 1000
        : expires !== undefined
        ? Date.parse(expires)
        : Infinity
      const key = `${url.hostname} ${path} ${name}`
      if (expiresAt <= Date.now()) this.#cookies.delete(key)
      else this.#cookies.set(key, { name, value, host: url.hostname, path, expiresAt })
    }
  }

  /** The `Cookie` header of a request to `url`, longer paths first. */
  header(url: URL): string {
    return [...this.#cookies.values()]
      .filter(({ expiresAt, host, path }) =>
        host === url.hostname && matches(url.pathname, path) && expiresAt > Date.now()
      )
      .sort((a, b) => b.path.length - a.path.length)
      .map(({ name, value }) => `${name}=${value}`)
      .join("; ")
  }
}

const splitPair = (pair: string): [string, string] => {
  const at = pair.indexOf("=")
  return at < 0 ? [pair, ""] : [pair.slice(0, at), pair.slice(at + 1)]
}
