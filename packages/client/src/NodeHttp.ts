/**
 * The Streamable HTTP transport on Node: as `Http`, over `node:http` and `node:https` instead of `fetch`.
 *
 * **When to use.** On Node, always: it costs a fraction of `fetch` per request, does not abort slow responses, and
 * takes an `agent` for proxies and client certificates.
 *
 * Each connection of a client has its own sockets, without Nagle's delay, and closes them when it ends.
 *
 * **Gotchas.** A request whose socket the server closes without a response fails with `Closed` and may have been
 * handled. The same happens if the server closes an idle socket just as the request is sent: the client cannot
 * distinguish the two. The client repeats only requests that may be repeated. A server that closes idle sockets before
 * `idleTimeout` without announcing it (`Keep-Alive`) makes this frequent.
 *
 * @example
 * const program = Effect.gen(function*() {
 *   const client = yield* Client.make(NodeHttp.transport({ url: "https://example.com/mcp" }))
 *   return yield* client.callTool("add", { a: 1, b: 2 })
 * }).pipe(Effect.scoped)
 */
import type { Transport } from "@skein/runtime/Connection"
import type * as Duration from "effect/Duration"
import type * as Http from "node:http"
import type * as Https from "node:https"
import type { Settings } from "./Http.ts"
import * as NodeClient from "./internal/http/nodeClient.ts"
import * as HttpConnection from "./internal/http/connection.ts"

/** The options of the transport. */
export interface Options extends Settings {
  /**
   * The agent that opens the sockets, for a proxy or for client certificates:
   * `new https.Agent({ ca, cert, key, keepAlive: true })`. The transport does not close it, and `maxSockets` and
   * `idleTimeout` do not apply to it.
   */
  readonly agent?: Http.Agent | Https.Agent | undefined
  /**
   * How many sockets a connection has at most: 256 by default. A request beyond them waits for one, within its timeout.
   * A stream of a subscription or of a session holds one while it is open, so use at least 2.
   */
  readonly maxSockets?: number | undefined
  /**
   * How long an idle socket stays open: 4 seconds by default, since many servers close theirs after 5 seconds. Where
   * the server announces its own time (`Keep-Alive: timeout=…`), one second less than that, if it is shorter.
   */
  readonly idleTimeout?: Duration.Input | undefined
}

/**
 * Makes a transport over `node:http`. Nothing is sent before the client's first request.
 *
 * @example
 * NodeHttp.transport({ url: "http://127.0.0.1:3000/mcp" })
 */
export const transport = (options: Options): Transport =>
  HttpConnection.transport(() => NodeClient.make(options), options)
