/**
 * Cross-origin resource sharing (CORS): lets web pages of the allowed origins read the answers of an endpoint.
 *
 * `allowedOrigins` of the endpoint decides which origins are allowed. Requests of all other origins are refused with
 * 403 and without CORS headers. A page of an allowed origin can read every answer, including refusals, so that it can
 * show the JSON-RPC error.
 *
 * @example
 * const options = { allowedOrigins: ["https://app.example.com"], cors: Cors.make() }
 */
import type { Cors } from "./internal/http/access/options.ts"

export type { Cors }

/** Options of the CORS headers. */
export interface Options {
  /**
   * Lets browsers send cookies and client certificates. False by default; a token in `Authorization` does not need it.
   * With it, a page of an allowed origin acts with the login of the browser's user. Together with `allowedOrigins:
   * "any"` the server does not start.
   */
  readonly credentials?: boolean | undefined
  /** Allowed request headers in addition to those of MCP, OAuth and trace context. */
  readonly allowedHeaders?: ReadonlyArray<string> | undefined
  /**
   * Response headers that pages may read, in addition to `Mcp-Session-Id`, `WWW-Authenticate`, `DPoP-Nonce` and
   * `Retry-After`.
   */
  readonly exposedHeaders?: ReadonlyArray<string> | undefined
  /**
   * Lets pages from public addresses reach an endpoint in a private network, for browsers that send
   * `Access-Control-Request-Private-Network`. False by default.
   */
  readonly privateNetwork?: boolean | undefined
}

const methods = "GET, POST, DELETE"

// With credentials, `*` is a header name and not a wildcard, so all headers are listed.
const requestHeaders: ReadonlyArray<string> = [
  "accept",
  "authorization",
  "baggage",
  "cache-control",
  "content-type",
  "dpop",
  "last-event-id",
  "mcp-method",
  "mcp-name",
  "mcp-protocol-version",
  "mcp-session-id",
  "traceparent",
  "tracestate"
]

const answerHeaders: ReadonlyArray<string> = ["mcp-session-id", "www-authenticate", "dpop-nonce", "retry-after"]

// The headers of `x-mcp-header` parameters cannot be listed in advance. The rest of such a name is an HTTP token.
const parameter = /^mcp-param-[!#$%&'*+.^_`|~0-9a-z-]+$/

/** The number of requested headers of a preflight that are examined. Further ones are not allowed. */
const maxRequested = 64

// How long a browser may cache the answer to a preflight: 2 hours, the maximum of Chromium.
const maxAgeSeconds = "7200"

/**
 * Makes the CORS headers of an endpoint.
 *
 * @example
 * NodeHttp.layer({ allowedOrigins: ["https://app.example.com"], cors: Cors.make() })
 */
export const make = (options: Options = {}): Cors => {
  const allowed = new Set([...requestHeaders, ...(options.allowedHeaders ?? []).map((name) => name.toLowerCase())])
  const always = [...allowed].join(", ")
  const exposed = [...new Set([...answerHeaders, ...(options.exposedHeaders ?? []).map((name) => name.toLowerCase())])]
  const credentials = options.credentials === true ? { "access-control-allow-credentials": "true" } : undefined
  const readable = { "access-control-expose-headers": exposed.join(", "), vary: "Origin", ...credentials }
  // A cache must not serve an answer without these headers to a page of an origin.
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
        "access-control-max-age": maxAgeSeconds,
        vary: "Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
        ...credentials,
        ...(options.privateNetwork === true && header("access-control-request-private-network") === "true"
          ? { "access-control-allow-private-network": "true" }
          : undefined)
      }
    }
  }
}
