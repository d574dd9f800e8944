/**
 * The options of the HTTP transports, and their defaults.
 */
import type { Headers } from "@skein/runtime/Connection"
import type { Backoff } from "@skein/runtime/Backoff"
import * as Options from "@skein/runtime/Options"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { Credentials } from "../../Credentials.ts"
import { openFailed } from "../base/errors.ts"

/**
 * How a stream of a session is resumed after it broke off, or after the server closed it before its response
 * (2025-11-25, transports, resumability and redelivery).
 *
 * If the server has sent a `retry` field, the stream is requested again after that time, of which at least 100
 * milliseconds and at most 5 minutes count. Otherwise, and while requests for the stream fail, the delay starts with
 * `initialDelay` and grows by `factor` up to `maxDelay`; a random part of up to one half is subtracted. After a failure the delay
 * is at least `retry`, and at least `Retry-After`, of which at most 10 minutes count.
 */
export interface Resumption {
  /** The delay before the first attempt: 1 second by default. Lower it for a server nearby that restarts fast. */
  readonly initialDelay?: Duration.Input | undefined
  /** The factor by which the delay grows with each attempt: 2 by default. */
  readonly factor?: number | undefined
  /** The longest delay: 30 seconds by default. Lower it where a person waits for the response. */
  readonly maxDelay?: Duration.Input | undefined
  /**
   * How many attempts in a row may deliver no event: 10 by default. Then the request fails with `Closed`. An attempt
   * counts even if the server accepted it and closed the stream without an error. Raise it for a server that may be
   * gone for long.
   */
  readonly maxAttempts?: number | undefined
}

/** The bounds of HTTP that are not options: no deployment has a reason to change them. Times in milliseconds. */
const fixedBounds = {
  /** How often one request is sent again with other credentials. Then it fails with `Unauthorized`. */
  maxChallenges: 3,
  /**
   * How long the credentials may take to return headers or to handle a refused request. Longer headers fail their
   * request with `HttpError`, and a longer refusal with `Unauthorized`. Until then the timeouts of calls, of the handshake
   * and of a pool stand still, because a person may be signing in.
   */
  credentialsTimeout: 900_000,
  /** How many redirects of one request are followed. Only those with status 307 or 308 to the same origin are. */
  maxRedirects: 3,
  /**
   * How long the body of an error response, or of a response without a JSON-RPC message, is read. Then the exchange is
   * aborted, and the error quotes the part that was read.
   */
  refusalTimeout: 5_000,
  /** How many notifications and responses are sent at the same time. Beyond that the sender of the next one waits. */
  maxConcurrentPosts: 64,
  /**
   * How many notifications and responses the server may leave unaccepted. Responses to the server do not wait for
   * `maxConcurrentPosts`, so that a server that keeps sending requests without accepting the responses reaches this
   * bound. Then the connection is `Lost`.
   */
  maxUndeliveredMessages: 1_024,
  /** How long the server may take to accept a notification or a response. Then it counts as not delivered. */
  postTimeout: 30_000,
  /**
   * How often a response to the server is sent in all when the network fails. Then it counts as not delivered. A
   * notification is sent once, except `notifications/initialized`.
   */
  maxAnswerTries: 3,
  /**
   * How long a server of the HTTP+SSE transport (2024-11-05) may take to send its `endpoint` event. Then the server
   * counts as one without that transport.
   */
  endpointTimeout: 10_000,
  /**
   * The shortest time that a `retry` field of the server can request. A server that requests less, and ends each stream
   * at once, would otherwise get thousands of requests per second.
   */
  minRetry: 100,
  /** The longest time that a `retry` field can request: the client receives no messages of the stream meanwhile. */
  maxRetry: 300_000,
  /** How many attempts in a row to resume a stream may deliver events but no message. Then the request fails. */
  maxReconnects: 1_000,
  /** A stream that was open for this long resets both counts of attempts when it ends. */
  stableAfter: 30_000,
  /** How many event ids are remembered per stream, to drop events that are delivered twice. */
  maxEventIds: 1_024
}

/** The fixed bounds, with these or other values. */
export type FixedBounds = Readonly<typeof fixedBounds>

/** The fixed bounds that differ from their values, for tests. */
export const ChangedBounds: Context.Reference<Partial<FixedBounds>> = /* @__PURE__ */ Context.Reference<
  Partial<FixedBounds>
>("@skein/client/internal/ChangedBounds", { defaultValue: () => ({}) })

/** The options of both HTTP transports. */
export interface Settings {
  /** The endpoint of the server: an absolute `http:` or `https:` URL. Any other fails with `ConnectionFailed`. */
  readonly url: string | URL
  /**
   * Headers for every request, or an effect or a function that returns them and runs for each request; a function may
   * return a promise. The headers of the protocol (`Accept`, `Content-Type`, `Last-Event-ID`, `MCP-Protocol-Version`,
   * `Mcp-*`) are ignored here. `Authorization` here together with `credentials` fails with `ConnectionFailed`, or with
   * `HttpError` if an effect or a function returns it.
   */
  readonly headers?:
    | Headers
    | Effect.Effect<Headers, unknown>
    | (() => Headers | PromiseLike<Headers>)
    | undefined
  /** The credentials of the requests. By default the service `Credentials`, if there is one. */
  readonly credentials?: Credentials["Service"] | undefined
  /**
   * The longest response body, and the longest event of a stream, in bytes: 4 MiB by default. A longer one fails its
   * request. Raise it for a server that sends large files.
   */
  readonly maxMessageBytes?: number | undefined
  /**
   * How long closing the connection may take, to send the last messages and to delete the session: 1 second by default.
   * Then the remaining requests are aborted. Raise it for a server that is far away. With 0 the connection is closed at once, without the DELETE request.
   */
  readonly shutdownTimeout?: Duration.Input | undefined
  /** How broken streams of a session are resumed. */
  readonly resumption?: Resumption | undefined
  /**
   * Whether a session requests the standalone SSE stream, on which the server sends notifications and requests of its
   * own: true by default. With `false` an idle session holds no HTTP connection, and receives only messages that belong
   * to its requests: `changes` fails with `Unsupported`. Use `false` in web pages and workers, which have few
   * connections for many sessions. 2026-07-28 has no such stream.
   */
  readonly standaloneStream?: boolean | undefined
}

/** The options that have a default. */
type Bounds = Omit<Settings, "url" | "headers" | "credentials" | "resumption">

/** The settings of a connection with their defaults; durations in milliseconds. */
export interface Resolved extends Options.Resolved<Bounds>, FixedBounds {
  readonly url: URL
  readonly headers: Headers | undefined
  /** Returns further headers for each request. */
  readonly dynamic: Effect.Effect<Headers, unknown> | undefined
  readonly credentials: Credentials["Service"] | undefined
  readonly resumption: Options.Resolved<Resumption> & Backoff
}

const protocolHeader =
  /^(?:accept|content-type|content-length|last-event-id|mcp-protocol-version|mcp-method|mcp-name|mcp-session-id|mcp-param-.*)$/

/** The headers that an option or credentials give, in lower case, without the headers of the protocol. */
export const customHeaders = (headers: Headers): Headers => {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase()
    if (!protocolHeader.test(key)) kept[key] = value
  }
  return kept
}

const token = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
// The field values that RFC 9110 allows and that every HTTP client can write.
const value = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/

/** The name of a header that cannot be sent. Its value may be a secret, so it is not returned. */
export const invalidHeader = (headers: Headers): string | undefined =>
  Object.keys(headers).find((name) => !token.test(name) || !value.test(headers[name]!))

/** The error of a transport with two sources of credentials. Which of them the host meant is not known. */
export const headersConflict =
  "The option `headers` contains Authorization, and the transport has credentials, which set it too: use one of them"

const resolveResumption = (resumption: Resumption): Resolved["resumption"] => ({
  ...Options.resolve(resumption, { factor: 2, maxAttempts: 10 }, { initialDelay: 1_000, maxDelay: 30_000 }),
  jitter: "half"
})

const defaultResumption = resolveResumption({})

/** Fills in the defaults. Returns the error with which a connection with these settings fails. */
export const resolve = (settings: Settings, context: Context.Context<never>): Resolved | TransportError => {
  const url = URL.parse(String(settings.url))
  if (url === null) {
    return openFailed("The URL of the server is not valid: it must be absolute, as https://example.com/mcp is")
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return openFailed(`The URL of the server has the scheme ${url.protocol}; it must be http: or https:`)
  }
  if (url.username !== "" || url.password !== "") {
    return openFailed(
      "The URL of the server contains a user name or a password; use the options `headers` or `credentials` instead"
    )
  }
  url.hash = ""
  const given = settings.headers
  const dynamic: Resolved["dynamic"] = typeof given === "function"
    ? Effect.catchDefect(Effect.promise(async () => given()), (error) => Effect.fail(error))
    : Effect.isEffect(given)
    ? given as Effect.Effect<Headers, unknown>
    : undefined
  const fixed = given === undefined || dynamic !== undefined ? undefined : customHeaders(given as Headers)
  const wrong = fixed === undefined ? undefined : invalidHeader(fixed)
  if (wrong !== undefined) return openFailed(`The header ${JSON.stringify(wrong)} cannot be sent`)
  const credentials = settings.credentials ?? Context.getOrUndefined(context, Credentials)
  if (credentials !== undefined && fixed !== undefined && "authorization" in fixed) return openFailed(headersConflict)
  const options = Options.resolve<Bounds>(settings, {
    maxMessageBytes: 4 * 1024 * 1024,
    standaloneStream: true
  }, { shutdownTimeout: 1_000 })
  return {
    ...fixedBounds,
    ...Context.get(context, ChangedBounds),
    ...options,
    url,
    headers: fixed,
    dynamic,
    credentials,
    resumption: settings.resumption === undefined ? defaultResumption : resolveResumption(settings.resumption)
  }
}
