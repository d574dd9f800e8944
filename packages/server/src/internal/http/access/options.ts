/**
 * The options of an endpoint and their defaults, which are added once, when the endpoint is made.
 */
import * as Defaults from "@skein/runtime/Options"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { McpServer } from "../../../McpServer.ts"
import { type FixedBounds, fixedBounds } from "../../base/fixedBounds.ts"
import type { Pages, Protection } from "./protection.ts"

/** Options of an endpoint. Every member is optional. */
export interface Options {
  /**
   * The path of the endpoint: `/mcp` by default. Other paths are answered with 404. `"*"` answers on every path, for
   * use behind a router.
   */
  readonly path?: string | undefined
  /**
   * The allowed names in the `Host` header: `localhost`, `127.0.0.1` and `[::1]` by default. Any other name is answered
   * with 403, and a warning is logged once. A name allows any port, `name:port` that port only. `"any"` allows every
   * name: then a web site can reach a server that runs locally (DNS rebinding), unless a proxy validates the header.
   */
  readonly allowedHosts?: ReadonlyArray<string> | "any" | undefined
  /**
   * The origins of web pages that are allowed: those of `localhost`, `127.0.0.1` and `[::1]`, with any scheme and port,
   * by default. Any other origin is answered with 403; a request without an `Origin` does not come from a web page. An
   * entry is a full origin (`https://app.example.com`). `"any"` allows every origin.
   */
  readonly allowedOrigins?: ReadonlyArray<string> | "any" | undefined
  /**
   * The number of proxies in front of the server that append to `X-Forwarded-For`: 0 by default. Clients without a
   * principal are distinguished by their address where they share a bound. Behind a proxy all of them have its address,
   * unless this is set: then the address is the entry of the outermost of these proxies. Do not set it higher than the
   * number of your proxies: the other entries are written by the client.
   */
  readonly trustedProxies?: number | undefined
  /**
   * How often a comment is sent on a quiet stream, so that proxies do not close it: 15 seconds by default, 0 for never.
   * Lower it for a proxy that closes quiet connections earlier, and raise it to wake mobile clients less often.
   */
  readonly keepAliveInterval?: Duration.Input | undefined
  /**
   * How long a request may be in progress before its answer becomes a stream, if nothing was sent until then: 5 seconds by
   * default, 0 for never. A stream gets comments each `keepAliveInterval`, so that no proxy gives up a silent call (504).
   * An error after that time has the status 200. Keep it lower than the read timeout of your proxy.
   */
  readonly streamAfter?: Duration.Input | undefined
  /**
   * Answers every request with a stream, even if the result is the first message, and opens it as soon as the handler
   * suspends. An error that was not found until then has the status 200. `"session"`: only in sessions, where a client can
   * resume a stream, but not a JSON response. Off by default.
   */
  readonly alwaysStream?: boolean | "session" | undefined
  /**
   * Requires `Mcp-Method`, `Mcp-Name` and `Mcp-Param-*` in sessions too, where clients need not send them. Off by
   * default: there they are validated if present. In stateless requests they are always required.
   */
  readonly requireMcpHeaders?: boolean | undefined
  /** Allows the web pages of `allowedOrigins` to read the answers: `Cors.make()`. Off by default. */
  readonly cors?: Cors | undefined
  /**
   * Authenticates the requests of all revisions and of HTTP+SSE, and answers the pages beside the endpoint, such as the
   * metadata of RFC 9728: `Protect.make` of `@skein/auth` makes a protection. An effect is run when the endpoint is made.
   * Requests that the application passes with a principal of its own are not authenticated again. Off by default.
   */
  readonly protection?: Protection | Effect.Effect<Protection> | undefined
  /**
   * The headers with credentials that handlers and middleware may read: none by default. In a request with a principal, and
   * in all requests with a `protection`, they cannot read `authorization`, `cookie`, `dpop` and `proxy-authorization`, so
   * that no handler passes them on to another server. The headers that a `protection` reads are never readable.
   */
  readonly readableCredentials?: ReadonlyArray<string> | undefined
  /**
   * Pages beside the endpoint, such as `Console.pages` of `@skein/console`. Requests for them pass the checks of Host and
   * Origin, and not the `protection`: pages authenticate their requests. An effect is run when the endpoint is made. None
   * by default.
   */
  readonly pages?: Pages | Effect.Effect<Pages, never, McpServer | Scope.Scope> | undefined
  /**
   * Experimental: the documents by which clients find the server, `ServerCard.make`. Requests for them pass the check of
   * Host, and neither that of Origin nor the `protection`: they are public. An effect is run when the endpoint is made.
   * None by default.
   */
  readonly serverCard?: Pages | Effect.Effect<Pages, never, McpServer | Scope.Scope> | undefined
  /**
   * The end of the streams of GET, `subscriptions/listen` and HTTP+SSE when the credentials that they were opened
   * with expire (`expiresAt` of the principal). `"end"`, the default, ends them up to two seconds later, and clients
   * reconnect with their next credentials. An HTTP+SSE session, which ends with its stream, continues if a message with
   * later credentials has arrived. `"keep"` leaves them open. Responses of requests in progress are not affected.
   */
  readonly expiredStreams?: "end" | "keep" | undefined
  /**
   * Serves without sessions: a client gets no session id, each POST is independent, and GET and DELETE are answered
   * with 405. In the revisions before 2026-07-28 the client then receives neither requests nor later notifications:
   * changes of lists, subscriptions and logs are not declared. For deployments in which the next request may reach
   * another process. Off by default.
   */
  readonly stateless?: boolean | undefined
  /**
   * Where the nodes of a `Fleet` handle the sessions. `"anywhere"`, the default: every node handles any session. `"home"`: the
   * node that has opened a session handles all of its messages, and the other nodes pass them on, for handlers that keep a
   * browser, a child process or another value of `PerSession`. When that node has gone, a message is answered with 404, and
   * the client opens another session. `maxSessionsPerPrincipal` is then a bound of each node. `"home"` needs a fleet whose
   * nodes reach each other, and without a fleet it has no effect.
   */
  readonly sessions?: "anywhere" | "home" | undefined
  /** Serves clients of 2024-11-05 as well: `LegacySse.make()`. Off by default. */
  readonly legacySse?: LegacySse | undefined
  /** The bounds of what clients can use. All clients share them, but no client can lock out the others. */
  readonly limits?: Limits | undefined
  /**
   * How long requests in flight may continue after the endpoint has begun to close: 5 seconds by default. Then they are
   * interrupted and answered with `-32603` and the message that they may have run. A request that arrives too late is
   * answered with 503 and `Retry-After`. Raise it for handlers that take longer, up to the time that the platform gives a
   * process to end.
   */
  readonly shutdownTimeout?: Duration.Input | undefined
}

/** The bounds of an endpoint, for all of its clients together. Raise them with the memory and the sockets of the process. */
export interface Limits {
  /**
   * The largest body of a request, in bytes: 4 MiB by default. Bytes are counted while they are read; a larger body is
   * answered with 413, and the connection is closed. Raise it for tools that receive files.
   */
  readonly maxMessageBytes?: number | undefined
  /**
   * The memory that the endpoint retains for all clients together, in bytes: 128 MiB by default (134,217,728). It counts
   * the parts of bodies that have arrived, the parsed messages of requests that are being handled, the data of sessions,
   * the unsent parts of answers and streams, and the events of a store in memory. Text is counted by its characters, and
   * each object or array of a parsed message as 64 bytes. Lower it in a container with little memory.
   *
   * At the bound stored events are deleted first. Then the client that retains the most gives up what waits for it:
   * bodies that are being read (503), unsent answers (the connection is closed), sessions that are half open or were idle
   * for a minute. Requests of a client in progress are given up (`-32603`: they may have run) only for a client that
   * retains at most half as much, or for a message of at most a sixteenth of their size. If that does not suffice, a new
   * body is answered with 503 and `Retry-After`.
   */
  readonly maxRetainedBytes?: number | undefined
  /**
   * Requests that are handled at the same time, in all revisions together: 10,000 by default. Requests that end without
   * suspending are not counted, nor is `subscriptions/listen`. At the bound the next request is answered with 503 and
   * `Retry-After`, or the oldest request of a client that has at least twice as many is given up (`-32603`: it may have
   * run). `McpServer` has a bound of this name for each connection.
   */
  readonly maxInFlightRequests?: number | undefined
  /**
   * Long-lived streams of this endpoint: 10,000 by default. They are the streams of `subscriptions/listen` and of GET.
   * At the bound the next one is answered with 503 and `Retry-After`, or the oldest stream of a client that has at least
   * twice as many is ended.
   */
  readonly maxStreams?: number | undefined
  /**
   * Open sessions: 10,000 by default. At the bound a session ends that is half open or was idle for a minute, of the
   * client with the most, or any session of a client with at least twice as many. If there is none, `initialize` is
   * answered with 503 and `Retry-After`. With `stateless`, POSTs that are handled at the same time.
   */
  readonly maxSessions?: number | undefined
  /**
   * Open sessions of one principal: 1,000 by default. At the bound its next `initialize` is answered with 503, so that
   * it does not lock out others. Callers without a principal are bounded by `maxSessions`. Raise it for a gateway that
   * has one principal for many users.
   */
  readonly maxSessionsPerPrincipal?: number | undefined
  /**
   * How long a session is open without requests in flight or open streams: 30 minutes by default. Raise it for clients
   * that cannot open another session.
   */
  readonly idleTimeout?: Duration.Input | undefined
}

/** Makes the CORS headers of the answers; see `Cors.make`. Requests reach it after the `Origin` was validated. */
export interface Cors {
  /** The headers of every answer to a request with this origin, including refusals. */
  readonly headers: (origin: string | undefined) => { readonly [name: string]: string } | undefined
  /**
   * The headers of the answer to a preflight request, 204; `undefined` if an OPTIONS request is not a preflight: it is
   * answered with 405.
   */
  readonly preflight: (
    origin: string | undefined,
    header: (name: string) => string | undefined
  ) => { readonly [name: string]: string } | undefined
}

/** The transport of 2024-11-05; `LegacySse.make` makes it. */
export interface LegacySse {
  readonly path: string
  readonly messages: string
  readonly assumeInitialized: boolean
}

type Plain = Omit<Options, "allowedOrigins" | "cors" | "legacySse" | "limits" | "pages" | "protection" | "serverCard">

/** The options and the limits with their defaults; durations in milliseconds. */
export interface Resolved extends Defaults.Resolved<Plain>, Defaults.Resolved<Limits> {
  /** The bounds without an option. */
  readonly bounds: FixedBounds
  readonly allowedOrigins: ReadonlyArray<string> | "any" | "loopback"
  readonly cors: Cors | undefined
  readonly legacySse: LegacySse | undefined
  readonly pages: Pages | undefined
  readonly protection: Protection | undefined
  readonly serverCard: Pages | undefined
}

/** The names of this machine, which no other machine can claim. */
export const loopback: ReadonlyArray<string> = ["localhost", "127.0.0.1", "[::1]"]

/** Whether every web page could act as the user of its browser. Browsers do not allow that with a `*` either. */
const isOpen = ({ allowedOrigins, cors }: Options): boolean =>
  allowedOrigins === "any" && cors?.headers("null")?.["access-control-allow-credentials"] === "true"

/** The options with a protection and pages that were made. */
export interface ReadyOptions extends Options {
  readonly pages?: Pages | undefined
  readonly protection?: Protection | undefined
  readonly serverCard?: Pages | undefined
}

/** Adds the defaults. Throws if options contradict each other. */
export const resolve = (options: ReadyOptions = {}, bounds: FixedBounds = fixedBounds): Resolved => {
  if (isOpen(options)) {
    throw new Error("CORS with credentials cannot be combined with allowedOrigins \"any\": list the origins")
  }
  const { allowedOrigins = "loopback", cors, legacySse, limits = {}, pages, protection, serverCard, ...plain } = options
  return {
    ...Defaults.resolve<Plain>(plain, {
      path: "/mcp",
      allowedHosts: loopback,
      alwaysStream: false,
      expiredStreams: "end",
      requireMcpHeaders: false,
      readableCredentials: [],
      sessions: "anywhere",
      stateless: false,
      trustedProxies: 0
    }, { keepAliveInterval: 15_000, shutdownTimeout: 5_000, streamAfter: 5_000 }),
    ...Defaults.resolve<Limits>(limits, {
      maxMessageBytes: 4 * 1024 * 1024,
      maxRetainedBytes: 128 * 1024 * 1024,
      maxInFlightRequests: 10_000,
      maxStreams: 10_000,
      maxSessions: 10_000,
      maxSessionsPerPrincipal: 1_000
    }, { idleTimeout: 1_800_000 }),
    bounds,
    allowedOrigins,
    cors,
    legacySse,
    pages,
    protection,
    serverCard
  }
}
