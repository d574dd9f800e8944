/**
 * Helpers of the tests of HTTP sessions: a server whose tools are controlled by the test, and a client with a session.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import { McpRequest } from "@skein/runtime/RequestContext"
import type { Peer } from "@skein/runtime/Peer"
import * as McpServer from "@skein/server/McpServer"
import type * as NodeHttp from "@skein/server/NodeHttp"
import * as Polling from "@skein/server/Polling"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Schema from "effect/Schema"
import type * as Scope from "effect/Scope"
import { type Json, open, posting, type Reply, type Request, send, serve as listen, type Stream } from "../kit.ts"

/** Controls the tools of a server, and records their outcome. */
export class Control {
  readonly #gates = new Map<string, Latch.Latch>()
  #released = false
  readonly interrupted: Array<string> = []
  readonly started: Array<string> = []
  readonly principals: Array<Json> = []
  readonly failures: Array<unknown> = []
  /** The number of messages that the `flood` tool has sent. */
  flooded = 0

  gate(key: string): Latch.Latch {
    let gate = this.#gates.get(key)
    if (gate === undefined) this.#gates.set(key, gate = Latch.makeUnsafe(this.#released))
    return gate
  }

  /** Lets every tool go on: on the test clock no timeout passes otherwise. */
  release(): void {
    this.#released = true
    for (const gate of this.#gates.values()) gate.openUnsafe()
  }

  /** Lets a waiting tool go on. */
  open(key: string): void {
    this.gate(key).openUnsafe()
  }
}

const key = { key: Schema.String }

/** Waits for the test, and records an interruption. */
const wait = (control: Control, key: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    control.started.push(key)
    return control.gate(key).await
  }).pipe(Effect.onInterrupt(() => Effect.sync(() => void control.interrupted.push(key))))

/** A request to the client that every session-based revision has. */
const question = (text: string): JsonRpc.JsonObject => ({
  messages: [{ role: "user", content: { type: "text", text } }],
  maxTokens: 1
})

/** The client's result for it. */
export const sampled = (model: string): Json => ({ role: "assistant", content: { type: "text", text: "" }, model })

/** The server. */
export const layer = (control: Control) =>
  McpServer.layer(
    { name: "sessions", version: "1" },
    Tool.layer(Tool.make("echo", { input: { text: Schema.String } }), ({ text }) => Effect.succeed(text)),
    Tool.layer(Tool.make("who"), () =>
      Effect.map(McpRequest, ({ caller, origin }) => {
        control.principals.push(caller.principal)
        return `${origin?.header?.("x-user")}`
      })),
    Tool.layer(Tool.make("hold", { input: key }), ({ key }) => Effect.as(wait(control, key), `${key} done`)),
    // Progress, a wait, progress, a wait, and the result.
    Tool.layer(Tool.make("steps", { input: key }), ({ key }) =>
      Effect.gen(function*() {
        yield* Progress.report({ progress: 1 })
        yield* wait(control, `${key} 1`)
        yield* Progress.report({ progress: 2 })
        yield* wait(control, `${key} 2`)
        return `${key} done`
      })),
    Tool.layer(Tool.make("ask", { input: key }), ({ key }) =>
      Effect.gen(function*() {
        const request = yield* McpRequest
        const answer = yield* Effect.orDie(request.request("sampling/createMessage", question(key)))
        return `${key} ${answer["model"]}`
      })),
    Tool.layer(Tool.make("ask_later", { input: key }), ({ key }) =>
      Effect.gen(function*() {
        const request = yield* McpRequest
        yield* wait(control, key)
        const failure = yield* Effect.orDie(Effect.flip(request.request("sampling/createMessage", question(key))))
        control.failures.push(failure)
        return "asked"
      })),
    Tool.layer(Tool.make("poll", { input: key }), ({ key }) =>
      Effect.gen(function*() {
        yield* Polling.disconnect("250 millis")
        yield* wait(control, key)
        return `${key} done`
      })),
    // A message that belongs to no request is sent to the peer.
    Tool.layer(Tool.make("announce", { input: { times: Schema.Int, same: Schema.Boolean } }), ({ same, times }) =>
      Effect.gen(function*() {
        const request = yield* McpRequest
        const peer = (request.caller as unknown as { readonly peer: Peer }).peer
        for (let n = 1; n <= times; n++) {
          yield* peer.notify("notifications/test", same ? {} : { n })
        }
        return "announced"
      })),
    // Messages of about 64 Ki characters, in the given number, as fast as the client reads them or without waiting.
    Tool.layer(Tool.make("flood", { input: { times: Schema.Int, waits: Schema.Boolean } }), ({ times, waits }) =>
      Effect.gen(function*() {
        const request = yield* McpRequest
        const padding = "x".repeat(64 * 1024)
        yield* request.notify("notifications/test", {})
        yield* wait(control, "flood")
        for (let n = 1; n <= times; n++) {
          const notified = request.notify("notifications/test", { n, padding })
          yield* waits ? notified : Effect.asVoid(Effect.forkChild(notified, { startImmediately: true }))
          control.flooded = n
        }
        return "flooded"
      }))
  )

/** Serves on a free port. The `x-user` header names the principal of a request. */
export const serve = (
  options?: NodeHttp.Options
): Effect.Effect<NodeHttp.Server["Service"] & { readonly control: Control }, never, Scope.Scope> =>
  Effect.suspend(() => {
    const control = new Control()
    const listening = Effect.map(
      listen(layer(control), {
        principal: ({ headers }) => headers["x-user"] === undefined ? undefined : { id: String(headers["x-user"]) },
        ...options
      }),
      (listening) => ({ ...listening, control })
    )
    return Effect.acquireRelease(listening, () => Effect.sync(() => control.release()))
  })

export type Server = Effect.Success<ReturnType<typeof serve>>

/** A request of JSON-RPC. */
export const request = (id: JsonRpc.Id, method: string, params: Json = {}): Json => ({
  jsonrpc: "2.0",
  id,
  method,
  params
})

export const notification = (method: string, params?: Json): Json => ({ jsonrpc: "2.0", method, params })

export const call = (id: JsonRpc.Id, name: string, args: Json = {}): Json =>
  request(id, "tools/call", { name, arguments: args, _meta: { progressToken: id } })

export const initialize = (protocolVersion: string, capabilities: Json = { sampling: {} }): Json =>
  request("init", "initialize", { protocolVersion, capabilities, clientInfo: { name: "test", version: "1" } })

/** A client in a session. */
export class Client {
  readonly server: Server
  readonly id: string
  readonly headers: Request["headers"]

  constructor(server: Server, id: string, headers: Request["headers"]) {
    this.server = server
    this.id = id
    this.headers = headers
  }

  #request(method: string, body: Json, headers?: Request["headers"]): Request {
    const content = method === "POST" ? posting : { accept: "text/event-stream" }
    return {
      method,
      headers: { ...content, ...this.headers, ...headers },
      ...(body === undefined ? undefined : { body })
    }
  }

  /** Posts and reads the complete response. */
  post(body: Json, headers?: Request["headers"]): Effect.Effect<Reply> {
    return send(this.server, this.#request("POST", body, headers))
  }

  /** Posts and reads the response as it arrives. */
  stream(body: Json, headers?: Request["headers"]): Effect.Effect<Stream, never, Scope.Scope> {
    return open(this.server, this.#request("POST", body, headers))
  }

  get(headers?: Request["headers"]): Effect.Effect<Stream, never, Scope.Scope> {
    return open(this.server, this.#request("GET", undefined, headers))
  }

  /** Reads the complete response to a GET. */
  read(headers?: Request["headers"]): Effect.Effect<Reply> {
    return send(this.server, this.#request("GET", undefined, headers))
  }

  delete(headers?: Request["headers"]): Effect.Effect<Reply> {
    return send(this.server, this.#request("DELETE", undefined, headers))
  }
}

/** Initializes a session. */
export const enter = (
  server: Server,
  revision: string,
  { headers, initialized = true }: { readonly headers?: Request["headers"]; readonly initialized?: boolean } = {}
): Effect.Effect<Client> =>
  Effect.gen(function*() {
    const opened = yield* send(server, { headers: { ...posting, ...headers }, body: initialize(revision) })
    const id = opened.headers["mcp-session-id"]
    if (opened.status !== 200 || typeof id !== "string") throw new Error(`${opened.status} ${opened.text}`)
    const client = new Client(server, id, { "mcp-session-id": id, ...headers })
    if (initialized) yield* client.post(notification("notifications/initialized"))
    return client
  })

/** Waits until the condition holds for the server's state, which changes asynchronously. */
export const until = (holds: () => boolean, end = performance.now() + 60_000): Effect.Effect<void> =>
  Effect.suspend(() => {
    if (holds()) return Effect.void
    if (performance.now() > end) return Effect.die(new Error(`It never holds: ${holds}`))
    return Effect.andThen(
      Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void))),
      until(holds, end)
    )
  })

/** The session-based revisions that have Streamable HTTP. */
export const revisions = ["2025-03-26", "2025-06-18", "2025-11-25"] as const
