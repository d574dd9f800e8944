/**
 * A server in memory whose responses a test writes.
 */
import * as Core from "@skein/testing/ScriptedServer"
import type { Transport } from "../base/definition.ts"
import type { JsonObject, Revision } from "../base/messages.ts"
import type { TransportError } from "../client/errors.ts"

/** A JSON-RPC request. */
export interface RpcRequest {
  readonly _tag: "Request"
  readonly id: string | number
  readonly method: string
  readonly params: JsonObject | undefined
}

/** A JSON-RPC notification. */
export interface RpcNotification {
  readonly _tag: "Notification"
  readonly method: string
  readonly params: JsonObject | undefined
}

/** A JSON-RPC error. */
export interface RpcError {
  readonly code: number
  readonly message: string
  readonly data?: unknown
}

/** A JSON-RPC response. */
export type RpcResponse =
  | { readonly _tag: "Success"; readonly id: string | number; readonly result: JsonObject }
  | { readonly _tag: "Failure"; readonly id: string | number | undefined; readonly error: RpcError }

/** A message that the test sends to the client. */
export type RpcMessage = RpcRequest | RpcNotification | RpcResponse

/** The reply to a request: a result, an error, no response at all, or the end of the connection. */
export type ScriptedReply =
  | { readonly result: JsonObject }
  | { readonly error: RpcError }
  | "no response"
  | "disconnect"

/** Decides the reply to a request. A function that returns nothing sends no response; it may send messages itself. */
export type Script = (request: RpcRequest, server: ScriptedServer) => ScriptedReply | void

/**
 * The delivery of a request of the client: `drop` discards it, `lose` loses the connection in place of it, and an error refuses
 * the request alone. With `delivered` the server receives the request first. `undefined` delivers it.
 */
export type Delivery =
  | TransportError
  | "drop"
  | "lose"
  | { readonly delivered: TransportError | "lose" }
  | undefined

/** A server in memory, the messages that it received, and ways to misbehave. The counts are getters. */
export interface ScriptedServer {
  /** Connects a client to this server. */
  readonly transport: Transport
  /** The methods of the requests and notifications that it received, in order. */
  readonly methods: ReadonlyArray<string>
  /** The requests of one method, in order. */
  readonly requests: (method: string) => ReadonlyArray<RpcRequest>
  /** The notifications of one method, in order. */
  readonly notifications: (method: string) => ReadonlyArray<RpcNotification>
  /** The responses of the client, in order. */
  readonly responses: ReadonlyArray<RpcResponse>
  /** How often a client tried to connect. */
  readonly attempts: number
  /** How often a client has connected. */
  readonly connections: number
  /** The connections that are open. */
  readonly openConnections: number
  /** The largest value that `openConnections` had. */
  readonly maxOpenConnections: number
  /** Sends a message. Throws while no client is connected. */
  readonly send: (message: RpcMessage) => void
  /** Sends a notification. Throws while no client is connected. */
  readonly notify: (method: string, params?: JsonObject) => void
  /** Sends a text, which need not be JSON. Throws while no client is connected. */
  readonly sendText: (text: string) => void
  /** Ends the connection in order, after the messages that were sent. */
  readonly disconnect: () => void
  /** Loses the connection immediately, with the messages that were not received yet. */
  readonly lose: (cause?: TransportError) => void
  /** Refuses one request of the client, as a transport does when it receives an error for the request. */
  readonly refuse: (id: string | number, error: TransportError) => void
  /** Reports that the client may have missed messages that belong to no request; with an error, that no further ones follow. */
  readonly reportGap: (error?: TransportError) => void
  /** Decides whether an attempt to connect, counted from 1, fails. Every attempt succeeds by default. */
  onConnect: (attempt: number) => TransportError | undefined
  /** Decides what happens to a request of the client. Every request is delivered by default. */
  onRequest: (request: RpcRequest) => Delivery
}

/** Makes servers in memory, and the replies of their scripts. */
export const ScriptedServer: {
  /**
   * Makes a server in memory that replies to each request as the script decides. `reconnects`: whether clients reconnect
   * automatically, as over HTTP.
   *
   * @example
   * const server = ScriptedServer.make(
   *   ScriptedServer.handshake("2025-11-25", () => ScriptedServer.success({ tools: [] }))
   * )
   * const client = await AsyncClient.connect(server.transport)
   * await client.listTools()
   * expect(server.requests("tools/list")).toHaveLength(1)
   */
  readonly make: (script: Script, options?: { readonly reconnects?: boolean | undefined }) => ScriptedServer
  /**
   * A script that answers the handshake and the pings of one revision, and passes every other request to `script`. The server
   * declares `capabilities`: by default tools, resources and prompts with `listChanged`, completions, and logging.
   */
  readonly handshake: (revision: Revision, script?: Script, capabilities?: JsonObject) => Script
  /** A reply with a result. */
  readonly success: (result: JsonObject) => ScriptedReply
  /** A reply with an error. */
  readonly failure: (code: number, message: string, data?: unknown) => ScriptedReply
  /** The reply to a request whose method the server does not implement: error -32601. */
  readonly methodNotFound: (method: string) => ScriptedReply
  /** The error of a lost connection. `retryAfter` is in milliseconds. */
  readonly lost: (message?: string, retryAfter?: number) => TransportError
} = {
  make: Core.make as never,
  handshake: Core.handshake as never,
  success: Core.success,
  failure: Core.failure,
  methodNotFound: Core.methodNotFound,
  lost: Core.lost
}
