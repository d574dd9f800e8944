/** Skein's servers in memory, for the programs of clients. */
import * as Client from "@skein/client/Client"
import type { Connection, Transport } from "@skein/runtime/Connection"
import type * as Catalog from "@skein/server/Catalog"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import { join } from "node:path"

export type Server<E> = Layer.Layer<McpServer.McpServer | Catalog.Catalog, E>

export const serving = <E>(server: Server<E>): Effect.Effect<McpServer.McpServer["Service"], never, Scope.Scope> =>
  Effect.orDie(Effect.map(Layer.build(server), (context) => Context.get(context, McpServer.McpServer)))

export const inMemory = <E>(server: Server<E>): Effect.Effect<Transport, never, Scope.Scope> =>
  Effect.map(serving(server), ({ serve }) => InMemoryTransport.transport(serve))

export const connect = <E>(
  server: Server<E>,
  options?: Client.Options
): Effect.Effect<Client.Client, never, Scope.Scope> =>
  Effect.flatMap(inMemory(server), (transport) => Effect.orDie(Client.make(transport, options)))

/** A transport that records the methods of the requests that it sends. */
export const counted = ({ connect }: Transport) => {
  const sent: Array<string> = []
  const transport: Transport = {
    connect: Effect.map(connect, (connection): Connection => ({
      open: (receiver) => connection.open(receiver),
      drained: connection.drained,
      close: connection.close,
      send: (message) => {
        if (message._tag === "Request") sent.push(message.method)
        return connection.send(message)
      }
    }))
  }
  return { sent, transport }
}

/** A transport whose connections the server side can close. */
export const breakable = ({ serve }: McpServer.McpServer["Service"]) => {
  let end: Effect.Effect<void> = Effect.void
  const transport: Transport = {
    connect: Effect.flatMap(InMemoryTransport.make(), ([near, far]) => {
      end = far.close
      return Effect.as(serve(far), near)
    })
  }
  return { transport, end: Effect.suspend(() => end) }
}

/** The arguments that start the server of `examples/hello` on stdio. */
export const hello = ["--conditions=@skein/source", join(import.meta.dirname, "../../examples/hello/server.ts")]

export const testedRevisions = ["2025-11-25", "2026-07-28"] as const
