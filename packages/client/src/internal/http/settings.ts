/**
 * What an HTTP transport is made with, and what of it a connection needs.
 */
import type { Headers } from "@skein/runtime/Connection"
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { Credentials } from "../../Credentials.ts"

/**
 * How a stream of the session era is resumed that broke off, or that the server closed before it was over (2025-11-25,
 * transports, resumability and redelivery).
 *
 * After a stream that said so (`retry`) exactly that many milliseconds pass before it is asked for again. Otherwise, and while it
 * cannot be had, the delay begins with `initialDelay` and grows by `factor` up to `maxDelay`, of which a random part of up to one
 * half is taken away; after a failure never less than `retry`, nor than `Retry-After`, of which no more than 10 minutes count.
 */
export interface Resumption {
  /** 1 second by default. */
  readonly initialDelay?: Duration.Input | undefined
  /** 2 by default. */
  readonly factor?: number | undefined
  /** 30 seconds by default. */
  readonly maxDelay?: Duration.Input | undefined
  /**
   * How many attempts in a row may bring no event: 10 by default. After that the answer is given up as `Lost`. Each attempt
   * counts, also one that the server answered and then closed without a fault.
   */
  readonly maxAttempts?: number | undefined
  /** How many attempts in a row may bring no message, though they bring events: 1,000 by default. Then as above. */
  readonly maxReconnects?: number | undefined
  /** A stream that was open for that long starts both counts anew when it ends: 30 seconds by default. */
  readonly stableAfter?: Duration.Input | undefined
  /**
   * How many ids of events are remembered per stream, so that one that is delivered again is dropped: 1,024 by default. The oldest
   * is forgotten for the newest.
   */
  readonly maxEventIds?: number | undefined
}

/** What both HTTP transports are made with. */
export interface Settings {
  /** The endpoint of the server: `http:` or `https:`. Anything else fails with `OpenFailed`. */
  readonly url: string | URL
  /**
   * Headers for every request, or an effect that gives them for each. Those of the protocol (`Accept`, `Content-Type`,
   * `Last-Event-ID`, `MCP-Protocol-Version`, `Mcp-*`) are not taken from here.
   */
  readonly headers?: Headers | Effect.Effect<Headers, unknown> | undefined
  /** Who asks; the service `Credentials` by default, where there is one. */
  readonly credentials?: Credentials | undefined
  /** How often one request may be made again with other credentials: 3 by default. Then its refusal stands. */
  readonly maxChallenges?: number | undefined
  /**
   * How many redirects of one request are followed, with 307 and 308, within the origin: 3 by default, none with 0. What leads further
   * is `MessageRejected`.
   */
  readonly maxRedirects?: number | undefined
  /** The longest answer, and the longest event of a stream, in bytes: 4 MiB by default. What is longer fails its request. */
  readonly maxMessageBytes?: number | undefined
  /**
   * How long the body of a refusal, or of what is no answer of the protocol, is read: 5 seconds by default. What has come by then
   * counts, and the exchange is aborted.
   */
  readonly refusalTimeout?: Duration.Input | undefined
  /**
   * How long the end of the connection may take, in which what was sent last gets out and the session is deleted: 1 second by
   * default. What takes longer is aborted; with 0 nothing is said any more.
   */
  readonly closeTimeout?: Duration.Input | undefined
  /**
   * How many notifications and answers may be on their way before whoever sends another one has to wait: 64 by default.
   */
  readonly maxConcurrentPosts?: number | undefined
  /**
   * How many of them may be on their way at all: 1,024 by default. What is answered to the server does not wait, and a server that asks
   * and asks and takes none of the answers ends its connection as `Lost` there.
   */
  readonly maxUndeliveredMessages?: number | undefined
  /**
   * How long the server may take to accept a notification or an answer: 30 seconds by default. Then it is taken as not delivered.
   */
  readonly postTimeout?: Duration.Input | undefined
  /**
   * How often an answer to the server is sent in all, while the network fails: 3 by default. Then it is taken as not delivered. A
   * notification is sent once, unless something waits for it.
   */
  readonly maxAnswerTries?: number | undefined
  /**
   * How long a server that speaks HTTP+SSE (2024-11-05) may take to name its endpoint: 10 seconds by default. Then it counts as one
   * that does not.
   */
  readonly endpointTimeout?: Duration.Input | undefined
  readonly resumption?: Resumption | undefined
  /**
   * Whether a session asks for the stream on which the server speaks by itself: yes by default. Without it a session holds no
   * connection while nothing is asked, and hears nothing but what belongs to its calls: `changes` fails with `Unsupported`. For web
   * pages and workers that have a few connections for many sessions; the request era has no such stream.
   */
  readonly standaloneStream?: boolean | undefined
}

/** The settings, read; times in milliseconds. */
export interface Resolved {
  readonly url: URL
  readonly headers: Headers | undefined
  /** The effects that give further headers for each request. */
  readonly dynamic: Effect.Effect<Headers, unknown> | undefined
  readonly credentials: Credentials | undefined
  readonly maxChallenges: number
  readonly maxRedirects: number
  readonly maxMessageBytes: number
  readonly refusalTimeout: number
  readonly closeTimeout: number
  readonly maxConcurrentPosts: number
  readonly maxUndeliveredMessages: number
  readonly postTimeout: number
  readonly maxAnswerTries: number
  readonly endpointTimeout: number
  readonly resumption: ResolvedResumption
  readonly standaloneStream: boolean
}

/** See {@link Resumption}; times in milliseconds. */
export interface ResolvedResumption {
  readonly initialDelay: number
  readonly factor: number
  readonly maxDelay: number
  readonly maxAttempts: number
  readonly maxReconnects: number
  readonly stableAfter: number
  readonly maxEventIds: number
}

const own =
  /^(?:accept|content-type|content-length|last-event-id|mcp-protocol-version|mcp-method|mcp-name|mcp-session-id|mcp-param-.*)$/

/** Headers of the host's, in lower case, without those that the protocol gives a meaning. */
export const ofHost = (headers: Headers): Headers => {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    const key = name.toLowerCase()
    if (!own.test(key)) kept[key] = value
  }
  return kept
}

const token = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/
// What RFC 9110 allows in a field's value, as far as every client of HTTP can write it.
const value = /^(?:[\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?)?$/

/** The header that cannot be sent, by its name: its value may be a secret. */
export const unsendable = (headers: Headers): string | undefined =>
  Object.keys(headers).find((name) => !token.test(name) || !value.test(headers[name]!))

const refusal = (message: string, cause?: unknown) => new TransportError({ reason: new OpenFailed({ message, cause }) })

const millis = (input: Duration.Input | undefined, otherwise: number): number =>
  input === undefined ? otherwise : Duration.toMillis(Duration.fromInputUnsafe(input))

const fill = (resumption: Resumption): ResolvedResumption => ({
  initialDelay: millis(resumption.initialDelay, 1_000),
  factor: resumption.factor ?? 2,
  maxDelay: millis(resumption.maxDelay, 30_000),
  maxAttempts: resumption.maxAttempts ?? 10,
  maxReconnects: resumption.maxReconnects ?? 1_000,
  stableAfter: millis(resumption.stableAfter, 30_000),
  maxEventIds: resumption.maxEventIds ?? 1_024
})

const usual = fill({})

/** Reads the settings, or says why no connection can be made with them. */
export const resolve = (settings: Settings, context: Context.Context<never>): Resolved | TransportError => {
  const url = URL.parse(String(settings.url))
  if (url === null) return refusal("The URL of the server cannot be read: an absolute one is needed, https://…")
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    return refusal(`The URL of the server begins with ${url.protocol}, not with http: or https:`)
  }
  if (url.username !== "" || url.password !== "") {
    return refusal("The URL of the server has a user and a password: they belong in `headers` or `credentials`")
  }
  url.hash = ""
  const given = settings.headers
  const fixed = given === undefined || Effect.isEffect(given) ? undefined : ofHost(given)
  const wrong = fixed === undefined ? undefined : unsendable(fixed)
  if (wrong !== undefined) return refusal(`The header ${JSON.stringify(wrong)} cannot be sent`)
  return {
    url,
    headers: fixed,
    dynamic: Effect.isEffect(given) ? given as Effect.Effect<Headers, unknown> : undefined,
    credentials: settings.credentials ?? Option.getOrUndefined(Context.getOption(context, Credentials)),
    maxChallenges: settings.maxChallenges ?? 3,
    maxRedirects: settings.maxRedirects ?? 3,
    maxMessageBytes: settings.maxMessageBytes ?? 4 * 1024 * 1024,
    refusalTimeout: millis(settings.refusalTimeout, 5_000),
    closeTimeout: millis(settings.closeTimeout, 1_000),
    maxConcurrentPosts: settings.maxConcurrentPosts ?? 64,
    maxUndeliveredMessages: settings.maxUndeliveredMessages ?? 1_024,
    postTimeout: millis(settings.postTimeout, 30_000),
    maxAnswerTries: settings.maxAnswerTries ?? 3,
    endpointTimeout: millis(settings.endpointTimeout, 10_000),
    resumption: settings.resumption === undefined ? usual : fill(settings.resumption),
    standaloneStream: settings.standaloneStream ?? true
  }
}
