/**
 * A server in memory whose responses a test writes, for tests that need to know every message of a client. It can send
 * any text, lose connections, refuse them, and drop requests.
 *
 * Use {@link FaultyServer} if the faults should happen on a real transport, and `ScriptedHttpServer` if HTTP itself is
 * tested.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { Transport } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import { type Delivery, lost, ScriptedConnection } from "./internal/scriptedConnection.ts"

/** The reply to a request: a result, an error, no response at all, or the end of the connection. */
export type Reply =
  | { readonly result: JsonRpc.JsonObject }
  | { readonly error: JsonRpc.ErrorObject }
  | "no response"
  | "disconnect"

/** Decides the reply to a request. A function that returns nothing sends no response; it may send messages itself. */
export type Script = (request: JsonRpc.Request, server: ScriptedServer) => Reply | void

/** A server in memory, the messages that it received, and ways to misbehave. The counts are getters. */
export interface ScriptedServer {
  /** Connects a client to this server. */
  readonly transport: Transport
  /** The messages of the client over all connections, in order. */
  readonly received: ReadonlyArray<JsonRpc.Inbound>
  /** The methods of the requests and notifications that it received, in order. */
  readonly methods: ReadonlyArray<string>
  /** The requests of one method, in order. */
  readonly requests: (method: string) => ReadonlyArray<JsonRpc.Request>
  /** The notifications of one method, in order. */
  readonly notifications: (method: string) => ReadonlyArray<JsonRpc.Notification>
  /** The responses of the client, in order. */
  readonly responses: ReadonlyArray<JsonRpc.Success | JsonRpc.Failure>
  /** How often a client tried to connect. */
  readonly attempts: number
  /** How often a client has connected. */
  readonly connections: number
  /** The connections whose scope is open. */
  readonly openConnections: number
  /** The largest value that `openConnections` had. */
  readonly maxOpenConnections: number
  /** Sends a message. Throws while no client is connected. */
  readonly send: (message: JsonRpc.Outbound) => void
  /** Sends a notification. Throws while no client is connected. */
  readonly notify: (method: string, params?: JsonRpc.JsonObject | undefined) => void
  /** Sends a text, which need not be JSON. Throws while no client is connected. */
  readonly sendText: (text: string) => void
  /** Ends the connection in order, after the messages that were sent. */
  readonly disconnect: () => void
  /** Loses the connection immediately, with the messages that were not received yet. */
  readonly lose: (cause?: TransportError | undefined) => void
  /** Refuses one request of the client, as a transport does when it receives an error for the request. */
  readonly refuse: (id: JsonRpc.Id, error: TransportError) => void
  /**
   * Reports that the client may have missed messages of the server's own stream. With an error, it reports that the
   * stream will not be opened again.
   */
  readonly reportGap: (error?: TransportError | undefined) => void
  /**
   * Decides whether an attempt to connect, counted from 1, fails. A test may replace it. Default: every attempt
   * succeeds.
   */
  onConnect: (attempt: number) => TransportError | undefined
  /** Decides what happens to a request of the client. A test may replace it. Default: every request is delivered. */
  onRequest: (request: JsonRpc.Request) => Delivery
}

/** Options of a scripted server. */
export interface Options {
  /** Whether the transport asks clients to reconnect automatically, as HTTP does. Default: not declared. */
  readonly reconnects?: boolean | undefined
}

/**
 * A reply with a result.
 *
 * @example
 * ScriptedServer.success({ content: [{ type: "text", text: "Hello" }] })
 */
export const success = (result: JsonRpc.JsonObject): Reply => ({ result })

/**
 * A reply with an error.
 *
 * @example
 * ScriptedServer.failure(-32602, "Unknown tool: echo")
 */
export const failure = (code: number, message: string, data?: unknown): Reply => ({
  error: data === undefined ? { code, message } : { code, message, data }
})

/** The reply to a request whose method the server does not implement: error -32601. */
export const methodNotFound = (method: string): Reply => failure(-32601, `Method not found: ${method}`)

export { type Delivery, lost }

/**
 * Makes a server in memory that replies to each request as the script decides. A script that throws fails the `send` of
 * the client.
 *
 * @example
 * const server = ScriptedServer.make(
 *   ScriptedServer.handshake("2025-11-25", () => ScriptedServer.success({ tools: [] }))
 * )
 * const client = yield* Client.make(server.transport)
 * yield* client.listTools()
 * expect(server.requests("tools/list")).toHaveLength(1)
 */
export const make = (script: Script, options: Options = {}): ScriptedServer => {
  const received: Array<JsonRpc.Inbound> = []
  let connection: ScriptedConnection | undefined
  const current = (): ScriptedConnection => {
    if (connection === undefined) throw new Error("No client is connected")
    return connection
  }
  const receive = (message: JsonRpc.Inbound, sender: ScriptedConnection): void => {
    received.push(message)
    if (message._tag !== "Request") return
    const reply = script(message, server)
    if (reply === undefined || reply === "no response") return
    if (reply === "disconnect") return sender.end({ _tag: "ClosedByPeer" })
    const { id } = message
    // Several clients may be connected: the response goes to the one that asked.
    sender.deliver(
      JsonRpc.encode("result" in reply ? JsonRpc.success(id, reply.result) : JsonRpc.failure(id, reply.error))
    )
  }
  const connect = Effect.suspend(() => {
    const error = server.onConnect(++server.attempts)
    if (error !== undefined) return Effect.fail(error)
    return Effect.acquireRelease(
      Effect.sync(() => {
        server.connections++
        server.maxOpenConnections = Math.max(server.maxOpenConnections, ++server.openConnections)
        const opened = new ScriptedConnection({ receive, onRequest: (request) => server.onRequest(request) })
        connection = opened
        return opened
      }),
      (opened) =>
        Effect.andThen(
          opened.close,
          Effect.sync(() => {
            server.openConnections--
            // A closed connection is not retained.
            if (connection === opened) connection = undefined
          })
        )
    )
  })
  const server: { -readonly [K in keyof ScriptedServer]: ScriptedServer[K] } = {
    transport: options.reconnects === undefined ? { connect } : { connect, reconnects: options.reconnects },
    received,
    get methods() {
      return received.flatMap((message) => "method" in message ? [message.method] : [])
    },
    requests: (method) =>
      received.flatMap((message) => message._tag === "Request" && message.method === method ? [message] : []),
    notifications: (method) =>
      received.flatMap((message) => message._tag === "Notification" && message.method === method ? [message] : []),
    get responses() {
      return received.flatMap((message) => message._tag === "Success" || message._tag === "Failure" ? [message] : [])
    },
    attempts: 0,
    connections: 0,
    openConnections: 0,
    maxOpenConnections: 0,
    send: (message) => current().deliver(JsonRpc.encode(message)),
    notify: (method, params) => server.send(JsonRpc.notification(method, params)),
    sendText: (text) => current().deliver(text),
    disconnect: () => current().end({ _tag: "ClosedByPeer" }),
    lose: (cause = lost()) => current().lose(cause),
    refuse: (id, error) => current().refuse(id, error),
    reportGap: (error) => current().reportGap(error),
    onConnect: () => undefined,
    onRequest: () => undefined
  }
  return server
}

/** The capabilities that a scripted server declares by default. */
const defaultCapabilities: JsonRpc.JsonObject = {
  tools: { listChanged: true },
  resources: { listChanged: true },
  prompts: { listChanged: true },
  completions: {},
  logging: {}
}

/**
 * A script that answers the handshake and the pings of one revision, and passes every other request to `script`. By
 * default every other request fails with -32601. The server is named `scripted` and declares `capabilities`; by default
 * tools, resources and prompts with `listChanged`, completions, and logging.
 *
 * @example
 * const silent = ScriptedServer.make(ScriptedServer.handshake("2026-07-28", () => "no response"))
 */
export const handshake = (
  revision: Revision.Revision,
  script: Script = ({ method }) => methodNotFound(method),
  capabilities: JsonRpc.JsonObject = defaultCapabilities
): Script => {
  const serverInfo = { name: "scripted", version: "1.0.0" }
  const instructions = "Read the script."
  const isStateless = revision === "2026-07-28"
  return (request, server) => {
    switch (request.method) {
      case "server/discover":
        if (!isStateless) return methodNotFound(request.method)
        return success({
          resultType: "complete",
          supportedVersions: [revision],
          capabilities,
          instructions,
          _meta: { "io.modelcontextprotocol/serverInfo": serverInfo },
          ttlMs: 0,
          cacheScope: "private"
        })
      case "initialize":
        if (isStateless) break
        return success({ protocolVersion: revision, capabilities, serverInfo, instructions })
      case "ping":
        if (isStateless) break
        return success({})
    }
    return script(request, server)
  }
}
