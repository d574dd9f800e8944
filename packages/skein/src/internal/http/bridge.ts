/**
 * Servers behind connections, such as child processes on stdio, over HTTP.
 */
import type { Transport as CoreTransport } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { Transport } from "../base/definition.ts"
import type { Listening } from "../server/asyncServer.ts"
import { endpointOptions } from "../server/coreHttp.ts"
import type { HttpOptions } from "../server/httpOptions.ts"

/** Options of a bridge, and of its HTTP server. */
export interface BridgeOptions extends HttpOptions {
  /**
   * The number of sessions, each of which has a connection of its own: 32 by default. At the bound the session that was used least
   * recently ends. Raise it for servers that need few resources.
   */
  readonly maxServers?: number | undefined
}

/**
 * Serves the server of a transport over HTTP: each session has a connection of its own, and all stateless requests share one.
 * Messages are passed on as they are. Rejects if it cannot listen, for example because the port is in use.
 *
 * @example
 * const { close, url } = await bridge(Stdio.transport({ command: "node", args: ["server.js"] }), { port: 3000 })
 */
export const bridge = async (transport: Transport, options: BridgeOptions = {}): Promise<Listening> => {
  const { connect } = transport as unknown as CoreTransport
  const scope = Scope.makeUnsafe()
  const close = () => Effect.runPromise(Scope.close(scope, Exit.void))
  const { serve } = await import("@skein/server/NodeBridge")
  const serving = serve({ ...endpointOptions(options) as object, connect })
  try {
    const { host, port, url } = await Effect.runPromise(Scope.provide(serving, scope))
    return { host, port, url, close }
  } catch (error) {
    await close()
    throw error
  }
}
