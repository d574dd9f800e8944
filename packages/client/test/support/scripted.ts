/** A server that says what a test tells it to say, over a link. */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { Connection, Transport } from "@skein/runtime/Connection"
import * as InMemoryTransport from "@skein/runtime/InMemoryTransport"
import * as Effect from "effect/Effect"

/** What a script does with one request: a result, an error, silence, or the end of the connection. */
export type Reply =
  | { readonly result: JsonRpc.JsonObject }
  | { readonly error: JsonRpc.ErrorObject }
  | "silence"
  | "hang up"

export type Script = (request: JsonRpc.Request, server: Scripted) => Reply

export const ok = (result: JsonRpc.JsonObject): Reply => ({ result })
export const refuse = (code: number, message: string, data?: unknown): Reply => ({
  error: data === undefined ? { code, message } : { code, message, data }
})
export const unknown = (method: string): Reply => refuse(-32601, `Method not found: ${method}`)

export interface Scripted {
  readonly transport: Transport
  /** Whatever the client sent, over all connections, in order. */
  readonly received: Array<JsonRpc.Inbound>
  /** The methods of the requests and notifications that the client sent, in order. */
  readonly methods: ReadonlyArray<string>
  /** The requests of one method. */
  readonly requests: (method: string) => ReadonlyArray<JsonRpc.Request>
  /** How often the client has connected. */
  readonly connections: number
  readonly send: (message: JsonRpc.Outbound) => void
  readonly notify: (method: string, params?: JsonRpc.JsonObject) => void
  readonly hangUp: () => void
}

/** A server that answers each request as the script says. */
export const scripted = (script: Script): Scripted => {
  const received: Array<JsonRpc.Inbound> = []
  let side: Connection | undefined
  let connections = 0
  const server: Scripted = {
    received,
    get methods() {
      return received.flatMap((message) => "method" in message ? [message.method] : [])
    },
    requests: (method) =>
      received.flatMap((message) => message._tag === "Request" && message.method === method ? [message] : []),
    get connections() {
      return connections
    },
    send: (message) => void side!.send(message),
    notify: (method, params) => void side!.send(JsonRpc.notification(method, params)),
    hangUp: () => Effect.runSync(side!.close),
    transport: {
      connect: Effect.gen(function*() {
        const [client, mine] = yield* InMemoryTransport.make()
        connections++
        side = mine
        mine.open({
          message: (message) => {
            received.push(message)
            if (message._tag !== "Request") return
            const reply = script(message, server)
            if (reply === "silence") return
            if (reply === "hang up") return Effect.runSync(mine.close)
            mine.send(
              "result" in reply ? JsonRpc.success(message.id, reply.result) : JsonRpc.failure(message.id, reply.error)
            )
          },
          end: () => {}
        })
        return client
      })
    }
  }
  return server
}

const everything = {
  tools: { listChanged: true },
  resources: { listChanged: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {}
}

/** Answers the handshake of one revision with all capabilities, and everything else with the rest of the script. */
export const speaks = (
  revision: Revision.Revision,
  rest: Script = (request) => unknown(request.method),
  capabilities: JsonRpc.JsonObject = everything
): Script =>
(request, server) => {
  const serverInfo = { name: "scripted", version: "1.0.0" }
  if (request.method === "server/discover" && revision === "2026-07-28") {
    return ok({
      resultType: "complete",
      supportedVersions: [revision],
      capabilities,
      instructions: "Be kind.",
      _meta: { "io.modelcontextprotocol/serverInfo": serverInfo },
      ttlMs: 0,
      cacheScope: "private"
    })
  }
  if (request.method === "server/discover") return unknown(request.method)
  if (request.method === "initialize" && revision !== "2026-07-28") {
    return ok({ protocolVersion: revision, capabilities, serverInfo, instructions: "Be kind." })
  }
  if (request.method === "ping" && revision !== "2026-07-28") return ok({})
  return rest(request, server)
}
