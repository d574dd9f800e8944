/**
 * Serves servers that are behind connections, such as child processes on stdio, over Streamable HTTP: each session has
 * a server of its own, and all stateless requests share one.
 *
 * The bridge passes messages on as they are. Over stdio a notification does not name the request that it belongs to,
 * unless it has a progress token or the id of a subscription: other ones go to the newest request of the client.
 *
 * @example
 * const { url } = yield* NodeBridge.serve({
 *   port: 3000,
 *   connect: Stdio.transport({ command: "node", args: ["server.js"] }).connect
 * })
 */
import type { Connection } from "@skein/runtime/Connection"
import type { RequestContext } from "@skein/runtime/RequestContext"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { constTrue } from "effect/Function"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { identity, makeForwarding } from "./internal/bridge/forwarding.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import { makeServerCore } from "./internal/dispatch/serverCore.ts"
import * as McpServer from "./McpServer.ts"
import * as NodeHttp from "./NodeHttp.ts"

/** Options of a bridge, and of its HTTP server. */
export interface Options extends NodeHttp.Options {
  /** Opens the connection to a server, which the scope closes. The client of a failure receives its message. */
  readonly connect: Effect.Effect<Connection, { readonly message: string }, Scope.Scope>
  /**
   * The number of sessions, each of which has a server of its own: 32 by default. At the bound the session that was used
   * least recently ends. Raise it for servers that need few resources.
   */
  readonly maxServers?: number | undefined
}

/**
 * Listens until the scope closes. Fails with `TransportError` if it cannot listen, for example because the port is in
 * use.
 */
export const serve = Effect.fnUntraced(function*(
  { connect, maxServers = 32, ...options }: Options
): Effect.fn.Return<NodeHttp.Server["Service"], TransportError, Scope.Scope> {
  // A server without definitions, whose core is replaced.
  const empty = Context.get(
    yield* Layer.build(McpServer.layer({ name: "bridge", version: "0" })),
    McpServer.McpServer
  )
  const { catalog, limits, subscriptions } = empty[internals]
  const forwarding = makeForwarding(connect, yield* Effect.scope, maxServers)
  const dispatch = (request: RequestContext) => forwarding.dispatch(request)
  const core = makeServerCore(
    catalog,
    subscriptions,
    { dispatch, inner: { call: dispatch }, hasMethod: constTrue },
    identity,
    limits,
    (peer, notification) => forwarding.onNotification(peer, notification)
  )
  return yield* Effect.provideService(NodeHttp.serve(options), McpServer.McpServer, { ...empty, [internals]: core })
})
