/**
 * A transport between a server and a client in one process, for tests and for applications that include their own
 * servers.
 *
 * @example
 * const server = yield* McpServer.McpServer
 * const client = yield* Client.make(InMemoryTransport.transport(server.serve))
 */
import type { Transport } from "@skein/runtime/Connection"
import { type Options, transport } from "@skein/runtime/InMemoryTransport"
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { McpServer } from "./McpServer.ts"

export * from "@skein/runtime/InMemoryTransport"

const notBuilt = (cause: unknown): TransportError => {
  const message = `the server cannot be built: ${cause instanceof Error ? cause.message : String(cause)}`
  return new TransportError({ reason: new OpenFailed({ message, cause }) })
}

/**
 * A transport to a server that it builds from a layer, and closes with the connection. Clients that are connected by the
 * same transport at the same time share one server: it is built for the first of them, and closes after the last one. A
 * server that cannot be built fails with `OpenFailed`.
 *
 * @example
 * const client = await AsyncClient.connect(InMemoryTransport.fromLayer(McpServer.layer({ name, version }, tools)))
 */
export const fromLayer = <A, E>(server: Layer.Layer<McpServer | A, E>, options?: Options): Transport => {
  const memoMap = Layer.makeMemoMapUnsafe()
  return {
    connect: Effect.gen(function*() {
      const built = Layer.buildWithMemoMap(server, memoMap, yield* Effect.scope)
      const context = yield* Effect.mapError(built, notBuilt)
      return yield* transport(Context.get(context as Context.Context<McpServer>, McpServer).serve, options).connect
    })
  }
}
