/**
 * The Streamable HTTP transport on Node: like `Http`, but over `node:http` and `node:https` instead of `fetch`.
 *
 * **When to use.** On Node, always: it costs a fraction of `fetch` per request, does not abort slow responses, and
 * takes an `agent` for proxies and client certificates.
 *
 * Each connection of a client has its own sockets, without Nagle's delay, and closes them when it ends.
 *
 * **Gotchas.** A request whose socket the server closes without a response fails with `Closed` and may have been
 * handled. The same happens if the server closes an idle socket just as the request is sent: the client cannot
 * distinguish the two. The client repeats only requests that may be repeated. A server that closes idle sockets in less
 * than 4 seconds without announcing it (`Keep-Alive`) makes this frequent: give an `agent` with a shorter `timeout`.
 *
 * @example
 * const program = Effect.gen(function*() {
 *   const client = yield* Client.make(NodeHttp.transport({ url: "https://example.com/mcp" }))
 *   return yield* client.callTool("add", { a: 1, b: 2 })
 * }).pipe(Effect.scoped)
 */
import type { Transport } from "@skein/runtime/Connection"
import type { Settings } from "./Http.ts"
import * as NodeClient from "./internal/http/nodeClient.ts"
import * as HttpConnection from "./internal/http/connection.ts"

/** The options of the transport. */
export interface Options extends Settings, NodeClient.Options {}

/**
 * Makes a transport over `node:http`. Nothing is sent before the client's first request.
 *
 * @example
 * NodeHttp.transport({ url: "http://127.0.0.1:3000/mcp" })
 */
export const transport = (options: Options): Transport =>
  HttpConnection.transport(() => NodeClient.make(options), options)
