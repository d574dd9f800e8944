/**
 * The Streamable HTTP transport, in both eras, wherever there is a `fetch`: browsers, workers, Node (2025-03-26 to 2025-11-25,
 * transports, Streamable HTTP; 2026-07-28, basic/transports/streamable-http). A server that has only the HTTP+SSE pair of
 * 2024-11-05 is found out when it refuses `initialize`, and is spoken to in that way.
 *
 * The session era: the session's id and revision go with every request; the stream of the server is listened to once the session
 * is open; a stream that breaks is resumed with the id of its last event (`resumption`), and a session that the server has
 * forgotten (404) ends the connection, which the client then opens anew. The request era: each request is one exchange, whose
 * headers mirror it; cancelling it closes that exchange, and a stream that breaks loses its answer.
 *
 * **Gotchas.** The `fetch` of Node gives up a response of which nothing comes for 5 minutes: `NodeHttp.transport` does not, and costs
 * less per request. Redirects are followed to the same origin only, with the statuses 307 and 308.
 *
 * **In web pages.** The server has to let the page in, and read its answers, if it is of another origin (`allowedOrigins` and `Cors` of
 * our own); a failure of `fetch` says nothing, so that the message of the error, `ConnectionFailed` in the handshake, lists what it may be. Redirects
 * are not followed. Browsers open 6 connections to an origin over HTTP/1.1, for all of its tabs together, of which each session holds
 * one, and so does each call while it lasts, and `changes` in the request era: five sessions at most, and with the sixth nothing is
 * answered any more; or HTTP/2, or `listen: false`. Headers that a page may not set (`Cookie`, `Origin`, `Host`) are left out without a
 * word; for cookies give a `fetch` with `credentials: "include"`. A host closes its client on `pagehide`, and the DELETE of the session
 * gets out. Timers of a hidden tab are slow, those of a worker are not.
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *   const client = yield* Client.make(Http.transport({ url: "https://example.com/mcp" }))
 *   return yield* client.callTool("add", { a: 1, b: 2 })
 * }).pipe(Effect.scoped)
 * ```
 */
import type { Transport } from "@skein/runtime/Connection"
import * as FetchWire from "./internal/http/fetchClient.ts"
import type { Resumption, Settings } from "./internal/http/settings.ts"
import { transport as overWire } from "./internal/http/transport.ts"

export type { Resumption, Settings }

/** How the transport is made. */
export interface Options extends Settings {
  /** What makes the requests: `globalThis.fetch` by default. */
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** The transport. Nothing is sent before the client's first request. */
export const transport = (options: Options): Transport =>
  overWire(() => FetchWire.make(options.fetch ?? globalThis.fetch), options)
