/**
 * Pages on a port of their own, such as the console of a server: a `node:http` server with the guards of an endpoint, and
 * without one.
 */
import type { TransportError } from "@skein/runtime/TransportError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import type { Pages } from "./Http.ts"
import * as adapter from "./internal/http/adapters/node.ts"
import * as server from "./internal/http/adapters/nodeServer.ts"
import { makePageHandler } from "./internal/http/endpoint/pageHandler.ts"
import type { Options as NodeHttpOptions } from "./NodeHttp.ts"

/** Options of a port for pages. They mean the same as in `NodeHttp.Options`. */
export interface Options extends Pick<NodeHttpOptions, "allowedHosts" | "allowedOrigins" | "host" | "trustedProxies"> {
  /** The port: 0, any free port, by default. */
  readonly port?: number | undefined
  readonly limits?: {
    /** The number of connections: 1,000 by default. At the bound the same happens as in `NodeHttp.Limits`. */
    readonly maxConnections?: number | undefined
  } | undefined
}

/** A listening port. */
export interface Listening {
  readonly host: string
  readonly port: number
  /** The address of the path `/`. */
  readonly url: string
}

/**
 * Listens until the scope closes. Requests pass the checks of Host and Origin that an endpoint makes, and are answered
 * by the pages, or with 404. Fails with `TransportError` if it cannot listen, for example because the port is in use.
 *
 * @example
 * const { url } = yield* NodePages.serve(pages, { port: 3001 })
 */
export const serve = Effect.fnUntraced(function*(
  pages: Pages,
  options: Options = {}
): Effect.fn.Return<Listening, TransportError, Scope.Scope> {
  const { allowedOrigins, host = "127.0.0.1", limits, port = 0, trustedProxies = 0 } = options
  const shared: adapter.Shared = { closing: false, expects: true, trustedProxies }
  const allowedHosts = options.allowedHosts ?? server.allowedHostsOf(host)
  // Requests must not add resources to the scope of the listener.
  const services = Context.omit(Scope.Scope, Layer.CurrentMemoMap)(yield* Effect.context<Scope.Scope>())
  const handle = makePageHandler(pages, { allowedHosts, allowedOrigins }, services)
  const address = yield* server.serve({
    host,
    port,
    limits: { maxConnections: limits?.maxConnections ?? 1_000 },
    handle: (message, response) => adapter.receive(message, response, shared, undefined, handle),
    shared,
    beforeEnd: () => Effect.void,
    end: Effect.void
  })
  return { host: address.address, port: address.port, url: server.urlOf(address, "/") }
})
