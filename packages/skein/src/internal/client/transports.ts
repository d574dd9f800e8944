/**
 * The transports of clients over HTTP.
 */
import * as CoreHttp from "@skein/client/Http"
import * as CoreNodeHttp from "@skein/client/NodeHttp"
import type * as NodeHttpModule from "node:http"
import type * as NodeHttpsModule from "node:https"
import type { Transport } from "../base/definition.ts"
import type { Credentials } from "../base/http.ts"
import type { Awaitable, Duration } from "../base/types.ts"

/** HTTP headers by their names. */
export interface Headers {
  readonly [name: string]: string
}

/** How a stream of a session is resumed after it broke off. */
export interface Resumption {
  /** The delay before the first attempt: 1 second by default. */
  readonly initialDelay?: Duration | undefined
  /** The factor by which the delay grows with each attempt: 2 by default. */
  readonly factor?: number | undefined
  /** The longest delay: 30 seconds by default. */
  readonly maxDelay?: Duration | undefined
  /** How many attempts in a row may deliver no event: 10 by default. Then the request fails with `Closed`. */
  readonly maxAttempts?: number | undefined
}

/** A server over HTTP, and the options of both transports to it. */
interface AnyHttpOptions {
  /** The endpoint of the server: an absolute `http:` or `https:` URL. */
  readonly url: string | URL
  /**
   * Headers for every request, or a function that returns them and runs for each request. The headers of the protocol are
   * ignored here.
   */
  readonly headers?: Headers | (() => Awaitable<Headers>) | undefined
  /** The credentials of the requests: `bearer(token)`, `credentials(functions)`, or `OAuth` of `skein/auth`. None by default. */
  readonly credentials?: Credentials | undefined
  /** The longest response body, and the longest event of a stream, in bytes: 4 MiB by default. */
  readonly maxMessageBytes?: number | undefined
  /** How long closing may take, to send the last messages and to delete the session: 1 second by default. */
  readonly shutdownTimeout?: Duration | undefined
  /** How broken streams of a session are resumed. */
  readonly resumption?: Resumption | undefined
  /**
   * Whether a session requests a stream for messages that belong to no request: true by default. With `false` an idle session
   * holds no HTTP connection, and `changes` fails with `Unsupported`. 2026-07-28 has no such stream.
   */
  readonly standaloneStream?: boolean | undefined
}

/** The options of `Http.transport`. */
export interface HttpOptions extends AnyHttpOptions {
  /** The function that makes the requests: `globalThis.fetch` by default. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** The options of `NodeHttp.transport`. */
export interface NodeHttpOptions extends AnyHttpOptions {
  /**
   * The agent that opens the sockets, for a proxy or for client certificates. The transport does not close it. By default each
   * connection has one of its own, with at most 256 sockets.
   */
  readonly agent?: NodeHttpModule.Agent | NodeHttpsModule.Agent | undefined
}

/** The transport over `fetch`, for every runtime. A server of HTTP+SSE (2024-11-05) is detected. */
export const Http: {
  /**
   * Makes a transport over `fetch`. Nothing is sent before the client connects.
   *
   * @example
   * Http.transport({ url: "https://example.com/mcp", credentials: bearer(token) })
   */
  readonly transport: (options: HttpOptions) => Transport
} = { transport: CoreHttp.transport as never }

/** The transport over `node:http`: it costs less per request than `fetch`, and takes an `agent`. */
export const NodeHttp: {
  /**
   * Makes a transport over `node:http`. Nothing is sent before the client connects.
   *
   * @example
   * NodeHttp.transport({ url: "http://127.0.0.1:3000/mcp" })
   */
  readonly transport: (options: NodeHttpOptions) => Transport
} = { transport: CoreNodeHttp.transport as never }
