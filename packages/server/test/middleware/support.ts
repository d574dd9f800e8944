/** Helpers of the middleware tests: clients with a principal, and the eras. */
import type * as Revision from "@skein/protocol/Revision"
import type { Connection, Origin } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
import * as kit from "../kit.ts"

export const eras: ReadonlyArray<Revision.Revision> = ["2025-11-25", "2026-07-28"]

/** Builds a server for the duration of a test. */
export const build = (server: kit.Server): Effect.Effect<McpServer.McpServer["Service"], never, Scope.Scope> =>
  Effect.map(Effect.orDie(Layer.build(server)), (context) => Context.get(context, McpServer.McpServer))

/** A connection whose messages come with an origin. */
const from = (connection: Connection, origin: Origin): Connection => ({
  open: (receiver) =>
    connection.open({
      message: (inbound) => receiver.message(inbound, origin),
      end: (end) => receiver.end(end)
    }),
  send: (message, about) => connection.send(message, about),
  drained: connection.drained,
  close: connection.close
})

/** Connects a client to a server, and initializes a session in session-based revisions. */
export const connect = (
  server: McpServer.McpServer["Service"],
  revision: Revision.Revision,
  origin: Origin = {}
): Effect.Effect<kit.Client, never, Scope.Scope> =>
  Effect.gen(function*() {
    const [near, far] = yield* InMemoryTransport.make()
    const client = new kit.Client(far, yield* server.serve(from(near, origin)), revision)
    if (revision === "2026-07-28") return client
    yield* client.result("initialize", kit.hello(revision))
    client.notify("notifications/initialized")
    return client
  })

/** The origin of a principal with this id. */
export const as = (id: string): Origin => ({ principal: { id } })

/** The origin of an HTTP request with these headers. */
export const headers = (values: { readonly [name: string]: string }): Origin => ({ header: (name) => values[name] })
