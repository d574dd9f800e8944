/**
 * The HTTP transport on Node: that of `Http`, over `node:http` and `node:https` instead of `fetch`. It costs a fraction per request,
 * gives up no answer for being slow, and has room for what a host sets up itself: proxies, certificates, other sockets.
 *
 * Each connection of a client keeps sockets of its own, without Nagle's delay, and closes them when it ends.
 *
 * **Gotchas.** A request that the server drops without an answer fails with `Closed` and may have been handled, also where the
 * server only closed an idle socket at the wrong moment: the two look alike. What may be repeated the client repeats. A server that
 * keeps idle sockets for less than `idleTimeout`, and does not say so (`Keep-Alive`), makes that moment frequent.
 *
 * ```ts
 * const program = Effect.gen(function*() {
 *   const client = yield* Client.make(NodeHttp.transport({ url: "https://example.com/mcp" }))
 *   return yield* client.callTool("add", { a: 1, b: 2 })
 * }).pipe(Effect.scoped)
 * ```
 */
import type { Transport } from "@skein/runtime/Connection"
import type * as Duration from "effect/Duration"
import type * as Http from "node:http"
import type * as Https from "node:https"
import type { Settings } from "./Http.ts"
import * as NodeWire from "./internal/http/nodeClient.ts"
import { transport as overWire } from "./internal/http/transport.ts"

/** How the transport is made. */
export interface Options extends Settings {
  /**
   * What makes the sockets, for a proxy or for TLS of the host's own: `new https.Agent({ ca, cert, key, keepAlive: true })`. It is
   * the host's to close, and `maxSockets` and `idleTimeout` are its own.
   */
  readonly agent?: Http.Agent | Https.Agent | undefined
  /**
   * How many sockets a connection has at most: 256 by default. A request beyond them waits for one, within its timeout. A stream,
   * such as that of a subscription or of a session, takes one for as long as it lasts: with less than 2 nothing else gets through.
   */
  readonly maxSockets?: number | undefined
  /**
   * How long a socket waits for its next request before it is closed: 4 seconds by default, since many servers close theirs after
   * 5, and a second less than the server says (`Keep-Alive: timeout=…`) where that is less.
   */
  readonly idleTimeout?: Duration.Input | undefined
}

/** The transport. Nothing is sent before the client's first request. */
export const transport = (options: Options): Transport => overWire(() => NodeWire.make(options), options)
