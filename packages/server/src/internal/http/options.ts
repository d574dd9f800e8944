/**
 * What an endpoint may be told, its bounds and their defaults. They are filled in once, when the endpoint is made.
 */
import * as Duration from "effect/Duration"

/** Where and how an endpoint answers, and what bounds it. Every member is optional. */
export interface Options {
  /**
   * The one path of the endpoint: `/mcp` by default. Every other path is answered with 404. `"*"` answers on every path, for a
   * router that has chosen already.
   */
  readonly path?: string | undefined
  /**
   * The names in the `Host` header that are served: `localhost`, `127.0.0.1` and `[::1]` by default, any other is answered with
   * 403, of which the log warns once. A name stands for any port, `name:port` for that port alone, and `"any"` in place of the
   * list for every name: then a web site can reach a server that runs locally (DNS rebinding), unless something before it checks.
   */
  readonly allowedHosts?: ReadonlyArray<string> | "any" | undefined
  /**
   * The origins of web pages that are served: those of `localhost`, `127.0.0.1` and `[::1]`, with any scheme and port, by
   * default; any other is answered with 403, and a request without an `Origin` is no web page's. An entry is an origin in full
   * (`https://app.example.com`), or `"any"` in place of the list.
   */
  readonly allowedOrigins?: ReadonlyArray<string> | "any" | undefined
  /**
   * The largest body of a request, in bytes: 4 MiB by default. It is counted while it is read; a larger one is answered with 413
   * and the connection is closed.
   */
  readonly maxBodyBytes?: number | undefined
  /**
   * Requests that are handled at the same time, in both eras together: 10,000 by default. Those that end without suspending are not
   * counted, nor are those that listen. At the bound the next one is answered with 503 and `Retry-After`.
   */
  readonly maxConcurrentRequests?: number | undefined
  /**
   * The bodies that are being read, and those of the requests that are handled, all together: 64 MiB by default (67,108,864; one
   * that is being read counts with its `Content-Length`, or with `maxBodyBytes` where it has none). At the bound a body is not read, and answered with
   * 503 and `Retry-After`. What JSON becomes in memory may be twenty times as large as its text.
   */
  readonly maxTotalBodyBytes?: number | undefined
  /**
   * Streams that are open for as long as their client wants, on this endpoint: 10,000 by default. They are those of
   * `subscriptions/listen` and of GET. At the bound the next one is answered with 503 and `Retry-After`.
   */
  readonly maxStreams?: number | undefined
  /**
   * Characters that wait in memory for a client that is slow to read a stream: 1 Mi by default. Handlers wait before that, where
   * they can; with the next message beyond it the connection is cut. In the session era the stream goes on, and its client can
   * come back for the rest; in the request era the request is cancelled.
   */
  readonly maxUnsentChars?: number | undefined
  /** How often a quiet stream gets a comment, so that nothing between takes it for dead: 15 seconds by default, 0 for never. */
  readonly keepAliveInterval?: Duration.Input | undefined
  /**
   * Answers every request with a stream, also where the result is the first thing to say. `"session"`: in the session era alone,
   * where a client can come back for what it has missed of a stream, and of nothing else. Off by default.
   */
  readonly alwaysStream?: boolean | "session" | undefined
  /**
   * Demands `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` in the session era as well, where no client has to send them. Off by
   * default: there they are compared where they are sent. In the request era they are always demanded.
   */
  readonly requireMcpHeaders?: boolean | undefined
  /** Lets the web pages of `allowedOrigins` read the answers: `Cors.make()`. Off by default. */
  readonly cors?: Cors | undefined
  /** Sessions, and when they end. */
  readonly sessions?: SessionOptions | undefined
  /** Serves clients of 2024-11-05 as well: `LegacySse.make()`. Off by default. */
  readonly legacySse?: LegacySse | undefined
  /** How long a client should wait before it reconnects to a stream that was closed: 1 second by default. */
  readonly retry?: Duration.Input | undefined
  /**
   * How long what is in flight may go on after the endpoint was told to end: 5 seconds by default. Then it is interrupted, and
   * answered with an error: as 503 where nothing was said yet, and else on its stream.
   */
  readonly shutdownTimeout?: Duration.Input | undefined
}

/** Sessions, and when they end. */
export interface SessionOptions {
  /**
   * How many there may be: 10,000 by default. At the bound `initialize` is answered with 503 and `Retry-After`. With `stateless`, how
   * many POSTs are handled at the same time.
   */
  readonly maxSessions?: number | undefined
  /**
   * How many of them one principal may have: 1,000 by default. At the bound its next `initialize` is answered in the same way, so that it
   * does not keep others out. Callers without a principal are bounded together, by `max`.
   */
  readonly maxSessionsPerPrincipal?: number | undefined
  /**
   * Characters of `initialize`, of which the session keeps what its client says of itself: 65,536 by default. A longer one, or one of
   * more than 1,000 values, is answered with 413.
   */
  readonly maxInitializeChars?: number | undefined
  /** How long a session lives in which nothing is in flight and no stream is open: 30 minutes by default. */
  readonly idleTimeout?: Duration.Input | undefined
  /**
   * How long a client may take until it says `notifications/initialized`, or goes on without it: 60 seconds by default. Then the
   * session ends.
   */
  readonly initializeTimeout?: Duration.Input | undefined
  /**
   * Messages that belong to no request and wait until the client listens, by GET: 100 by default. At the bound the oldest is lost. That
   * a list has changed is kept once.
   */
  readonly maxPendingMessages?: number | undefined
  /**
   * Keeps no sessions: a client gets no session id, each POST stands alone, and GET and DELETE are answered with 405. In the session
   * era the client cannot be asked anything, nor told anything later: changes of lists, subscriptions and logs are not declared. For
   * hosts where the next request may reach another process. Off by default.
   */
  readonly stateless?: boolean | undefined
}

/** Answers to the web pages of the origins that passed the guard; `Cors.make` makes them. Both come after that guard. */
export interface Cors {
  /** The headers of every answer to a request with this origin, refusals included. */
  readonly headers: (origin: string | undefined) => { readonly [name: string]: string } | undefined
  /** The headers of the answer to a preflight request, 204; `undefined` where an OPTIONS is none: answered with 405 as ever. */
  readonly preflight: (
    origin: string | undefined,
    header: (name: string) => string | undefined
  ) => { readonly [name: string]: string } | undefined
}

/** Where the transport of 2024-11-05 is; `LegacySse.make` makes it. */
export interface LegacySse {
  readonly path: string
  readonly messages: string
}

/** The options with their defaults filled in; durations in milliseconds. */
export interface Resolved {
  readonly path: string
  readonly allowedHosts: ReadonlyArray<string> | "any"
  readonly allowedOrigins: ReadonlyArray<string> | "any" | "loopback"
  readonly maxBodyBytes: number
  readonly maxConcurrentRequests: number
  readonly maxTotalBodyBytes: number
  readonly maxStreams: number
  readonly keepAliveInterval: number
  readonly alwaysStream: boolean | "session"
  readonly requireMcpHeaders: boolean
  readonly cors: Cors | undefined
  readonly sessions: {
    readonly maxSessions: number
    readonly maxSessionsPerPrincipal: number
    readonly maxInitializeChars: number
    readonly idleTimeout: number
    readonly initializeTimeout: number
    readonly maxPendingMessages: number
    readonly stateless: boolean
  }
  readonly legacySse: LegacySse | undefined
  readonly maxUnsentChars: number
  readonly retry: number
  readonly shutdownTimeout: number
}

/** The names of this machine that nobody else can claim. */
export const loopback: ReadonlyArray<string> = ["localhost", "127.0.0.1", "[::1]"]

const count = (value: number | undefined, fallback: number): number => Math.max(0, value ?? fallback)

/** Whether any web page at all could act as whoever a browser is logged in as. No browser lets that be said with a `*` either. */
const isOpen = ({ allowedOrigins, cors }: Options): boolean =>
  allowedOrigins === "any" && cors?.headers("null")?.["access-control-allow-credentials"] === "true"

/** Fills the defaults in. Throws where they contradict each other. */
export const resolve = (options: Options = {}): Resolved => {
  if (isOpen(options)) {
    throw new Error("CORS with credentials is not for \"any\" origin: say which are the allowedOrigins")
  }
  return fill(options)
}

const fill = (options: Options): Resolved => ({
  path: options.path ?? "/mcp",
  allowedHosts: options.allowedHosts ?? loopback,
  allowedOrigins: options.allowedOrigins ?? "loopback",
  maxBodyBytes: count(options.maxBodyBytes, 4 * 1024 * 1024),
  maxConcurrentRequests: count(options.maxConcurrentRequests, 10_000),
  maxTotalBodyBytes: count(options.maxTotalBodyBytes, 64 * 1024 * 1024),
  maxStreams: count(options.maxStreams, 10_000),
  keepAliveInterval: Duration.toMillis(options.keepAliveInterval ?? 15_000),
  alwaysStream: options.alwaysStream ?? false,
  requireMcpHeaders: options.requireMcpHeaders ?? false,
  cors: options.cors,
  sessions: {
    maxSessions: count(options.sessions?.maxSessions, 10_000),
    maxSessionsPerPrincipal: count(options.sessions?.maxSessionsPerPrincipal, 1_000),
    maxInitializeChars: count(options.sessions?.maxInitializeChars, 65_536),
    idleTimeout: Duration.toMillis(options.sessions?.idleTimeout ?? 1_800_000),
    initializeTimeout: Duration.toMillis(options.sessions?.initializeTimeout ?? 60_000),
    maxPendingMessages: count(options.sessions?.maxPendingMessages, 100),
    stateless: options.sessions?.stateless ?? false
  },
  legacySse: options.legacySse,
  maxUnsentChars: count(options.maxUnsentChars, 1024 * 1024),
  retry: Duration.toMillis(options.retry ?? 1_000),
  shutdownTimeout: Duration.toMillis(options.shutdownTimeout ?? 5_000)
})
