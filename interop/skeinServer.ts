/**
 * Starts Skein servers over HTTP in the test process, so that a test can check which sessions, requests and streams
 * remain.
 */
import type * as Inspect from "@skein/runtime/Inspect"
import type * as Http from "@skein/server/Http"
import * as LegacySse from "@skein/server/LegacySse"
import { McpServer } from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { Bounds, fixedBounds } from "../packages/server/src/internal/base/fixedBounds.ts"
import type { ServerAddress } from "./testClient.ts"

/** A server with sessions: one process, or several. */
export interface SessionServer {
  readonly http: ServerAddress
  readonly port: number
  readonly endpoint: Pick<Http.Endpoint, "sessions" | "streams">
  readonly inspect: () => Promise<Pick<Inspect.ServerInfo, "sessions">>
  readonly close: () => Promise<void>
}

export interface RunningServer extends SessionServer {
  readonly sse: ServerAddress
  readonly endpoint: Http.Endpoint
  readonly inspect: () => Promise<Inspect.ServerInfo>
}

/**
 * Serves on a free port, over Streamable HTTP and HTTP+SSE, with the services of the endpoint. Clients are asked to reconnect
 * after 10 ms.
 */
export const startServer = async <E>(
  server: Layer.Layer<McpServer, E>,
  options: NodeHttp.Options = {},
  services: Layer.Layer<never> = Layer.empty
): Promise<RunningServer> => {
  const scope = Scope.makeUnsafe()
  const layer = NodeHttp.layer({ port: 0, legacySse: LegacySse.make(), ...options }).pipe(
    Layer.provide([Layer.succeed(Bounds, { ...fixedBounds, retryDelay: 10 }), services])
  )
  const built = await Effect.runPromise(
    Effect.orDie(Layer.buildWithScope(Layer.provideMerge(layer, server), scope))
  )
  const { endpoint, port, url } = Context.get(built, NodeHttp.Server)
  const { inspect } = Context.get(built, McpServer)
  return {
    http: { transport: "http", url },
    sse: { transport: "sse", url: new URL("/sse", url).href },
    port,
    endpoint,
    inspect: () => Effect.runPromise(inspect),
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
