/**
 * Cross-origin resource sharing: lets the web pages of the origins that an endpoint serves read its answers.
 *
 * Which origins those are is said once, with `allowedOrigins`: any other is refused with 403 and hears nothing of this. What a
 * page may read then is every answer, refusals too, so that it can show the JSON-RPC error in them.
 *
 * @example
 * const options = { allowedOrigins: ["https://app.example.com"], cors: Cors.make() }
 */
import type { Cors } from "./internal/http/options.ts"

export type { Cors }

/** What web pages may do beside what every client of an endpoint does. Every member is optional. */
export interface Options {
  /**
   * Lets browsers send cookies and client certificates along. Off by default: a token in `Authorization` does not need it. With
   * it, a page of an allowed origin acts as whoever the browser is logged in as: with `"any"` origin the server does not start.
   */
  readonly credentials?: boolean | undefined
  /** Request headers that are allowed beside those that MCP, OAuth and trace context use. */
  readonly allowedHeaders?: ReadonlyArray<string> | undefined
  /** Answer headers that pages may read, beside `Mcp-Session-Id`, `WWW-Authenticate` and `Retry-After`. */
  readonly exposedHeaders?: ReadonlyArray<string> | undefined
  /**
   * For how many seconds a browser may remember the answer to a preflight: 7,200 by default, which is the most that Chromium
   * takes. 0 for not at all.
   */
  readonly maxAge?: number | undefined
  /**
   * Lets pages from public addresses reach an endpoint in a private network, in browsers that ask for it with
   * `Access-Control-Request-Private-Network`. Off by default.
   */
  readonly privateNetwork?: boolean | undefined
}

const methods = "GET, POST, DELETE"

// With credentials a `*` stands for itself, so they are named.
const requestHeaders: ReadonlyArray<string> = [
  "accept",
  "authorization",
  "baggage",
  "cache-control",
  "content-type",
  "last-event-id",
  "mcp-method",
  "mcp-name",
  "mcp-protocol-version",
  "mcp-session-id",
  "traceparent",
  "tracestate"
]

const answerHeaders: ReadonlyArray<string> = ["mcp-session-id", "www-authenticate", "retry-after"]

// A tool's `x-mcp-header` parameters come as headers whose names nobody can list beforehand. The rest of the name is a token.
const parameter = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]+$/

/** How many of the headers that a preflight asks for are looked at; what is beyond is not allowed. */
const maxRequested = 64

/** The answers to web pages. */
export const make = (options: Options = {}): Cors => {
  const allowed = new Set([...requestHeaders, ...(options.allowedHeaders ?? []).map((name) => name.toLowerCase())])
  const always = [...allowed].join(", ")
  const exposed = [...new Set([...answerHeaders, ...(options.exposedHeaders ?? []).map((name) => name.toLowerCase())])]
  const credentials = options.credentials === true ? { "access-control-allow-credentials": "true" } : undefined
  const readable = { "access-control-expose-headers": exposed.join(", "), vary: "Origin", ...credentials }
  const maxAge = String(Math.max(0, Math.floor(options.maxAge ?? 7200)))
  // Without an origin nobody reads these, but a cache must not give the answer to somebody who has one.
  const none = { vary: "Origin" }
  return {
    headers: (origin) => origin === undefined ? none : { "access-control-allow-origin": origin, ...readable },
    preflight: (origin, header) => {
      if (origin === undefined || header("access-control-request-method") === undefined) return undefined
      const requested = header("access-control-request-headers")
      const parameters = requested === undefined
        ? []
        : requested.toLowerCase().split(",", maxRequested).map((name) => name.trim()).filter((name) =>
          parameter.test(name) && !allowed.has(name)
        )
      return {
        "access-control-allow-origin": origin,
        "access-control-allow-methods": methods,
        "access-control-allow-headers": parameters.length === 0 ? always : `${always}, ${parameters.join(", ")}`,
        "access-control-max-age": maxAge,
        vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
        ...credentials,
        ...(options.privateNetwork === true && header("access-control-request-private-network") === "true"
          ? { "access-control-allow-private-network": "true" }
          : undefined)
      }
    }
  }
}
