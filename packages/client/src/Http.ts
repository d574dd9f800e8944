/**
 * The Streamable HTTP transport of all revisions, over `fetch`: for browsers, workers and Node (2025-03-26 to
 * 2025-11-25, transports, Streamable HTTP; 2026-07-28, basic/transports/streamable-http). A server that has only the
 * HTTP+SSE transport of 2024-11-05 is detected when it refuses `initialize`, and is then used over that transport.
 *
 * **Sessions** (up to 2025-11-25). Each request carries the session's id and revision. The standalone stream is
 * requested once the session is open. A stream that breaks is resumed with the id of its last event (`resumption`).
 * When the server responds 404 to a request of the session, the connection ends, and the client opens a new one.
 *
 * **Stateless requests** (2026-07-28). Each request is one HTTP exchange, with headers that repeat parts of the
 * request. Cancelling the request closes its exchange. A stream that breaks loses its response.
 *
 * **Gotchas.** The `fetch` of Node aborts a response after 5 minutes without data. `NodeHttp.transport` does not, and
 * costs less per request. Only redirects to the same origin with status 307 or 308 are followed.
 *
 * **In web pages.**
 * - A server of another origin must allow the page (`allowedOrigins` and `Cors` of `@skein/server`).
 * - `fetch` gives no reason for a failure. The message of the error (`ConnectionFailed` in the handshake) lists the
 *   possible reasons.
 * - Redirects are not followed.
 * - Browsers open 6 connections to an origin over HTTP/1.1, for all tabs together. Each session holds one for its
 *   standalone stream, and so does each call while it runs, and `changes` in 2026-07-28. With 6 streams open no further
 *   request gets through. Use HTTP/2, or `standaloneStream: false`.
 * - Browsers drop the headers that a page must not set (`Cookie`, `Origin`, `Host`). For cookies give a `fetch` with
 *   `credentials: "include"`.
 * - Close the client on `pagehide`: the DELETE request of the session is sent with `keepalive`.
 * - Timers of a hidden tab are slow; those of a worker are not.
 *
 * @example
 * const program = Effect.gen(function*() {
 *   const client = yield* Client.make(Http.transport({ url: "https://example.com/mcp" }))
 *   return yield* client.callTool("add", { a: 1, b: 2 })
 * }).pipe(Effect.scoped)
 */
import type { Transport } from "@skein/runtime/Connection"
import * as FetchClient from "./internal/http/fetchClient.ts"
import type { Resumption, Settings } from "./internal/http/settings.ts"
import * as HttpConnection from "./internal/http/connection.ts"

export type { Resumption, Settings }

/** The options of the transport. */
export interface Options extends Settings {
  /** The function that makes the requests: `globalThis.fetch` by default. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/**
 * Makes a transport over `fetch`. Nothing is sent before the client's first request.
 *
 * @example
 * Http.transport({ url: "https://example.com/mcp", credentials: Credentials.bearer(token) })
 */
export const transport = (options: Options): Transport =>
  HttpConnection.transport(() => FetchClient.make(options.fetch ?? globalThis.fetch), options)
