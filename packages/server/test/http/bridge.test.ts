/** A bridge over real HTTP, to servers whose messages the test writes. */
import { assert, describe, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Connection, Receiver } from "@skein/runtime/Connection"
import { ConnectionLost, TransportError } from "@skein/runtime/TransportError"
import * as NodeBridge from "@skein/server/NodeBridge"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"

/** A server behind the bridge, with the messages that it has received. */
class Scripted implements Connection {
  readonly received: Array<JsonRpc.Outbound> = []
  readonly drained = Effect.void
  readonly close = Effect.void
  receiver!: Receiver
  readonly #awaited = new Map<string, Deferred.Deferred<JsonRpc.Request>>()

  open(receiver: Receiver): void {
    this.receiver = receiver
  }

  send(message: JsonRpc.Outbound): boolean {
    this.received.push(message)
    if (message._tag !== "Request") return true
    if (message.method === "initialize") {
      this.receiver.message(JsonRpc.success(message.id, { protocolVersion: "2025-11-25", capabilities: {} }))
    } else Deferred.doneUnsafe(this.#of(message.method), Effect.succeed(message))
    return true
  }

  /** The request with this method, once it arrives. */
  request(method: string): Effect.Effect<JsonRpc.Request> {
    return Effect.suspend(() => Deferred.await(this.#of(method)))
  }

  #of(method: string): Deferred.Deferred<JsonRpc.Request> {
    const deferred = this.#awaited.get(method) ?? Deferred.makeUnsafe<JsonRpc.Request>()
    this.#awaited.set(method, deferred)
    return deferred
  }
}

const headersOf = { "content-type": "application/json", accept: "application/json, text/event-stream" }

const serve = Effect.gen(function*() {
  const servers: Array<Scripted> = []
  const { url } = yield* NodeBridge.serve({
    port: 0,
    connect: Effect.sync(() => {
      const server = new Scripted()
      servers.push(server)
      return server
    }),
    shutdownTimeout: 0
  })
  const send = (message: object, headers: Readonly<Record<string, string>> = {}, signal?: AbortSignal) =>
    fetch(url, {
      method: "POST",
      headers: { ...headersOf, ...headers },
      body: JSON.stringify({ jsonrpc: "2.0", ...message }),
      ...signal === undefined ? {} : { signal }
    })
  /** Posts a message. Returns the status, the headers and the messages of the response. */
  const post = (message: object, headers?: Readonly<Record<string, string>>) =>
    Effect.promise(async () => {
      const response = await send(message, headers)
      const text = await response.text()
      const events = Array.from(text.matchAll(/^data: (.+)$/gm), ([, data]) => JSON.parse(data!) as unknown)
      const messages = events.length > 0 ? events : text === "" ? [] : [JSON.parse(text) as unknown]
      return { status: response.status, headers: response.headers, messages }
    })
  /** Opens a session. Returns the headers of its requests. */
  const session = Effect.gen(function*() {
    const { headers } = yield* post({ id: 0, method: "initialize", params: { protocolVersion: "2025-11-25" } })
    const id = { "mcp-session-id": headers.get("mcp-session-id")! }
    yield* post({ method: "notifications/initialized" }, id)
    return id
  })
  return { post, send, servers, session }
})

const until = (condition: () => boolean) =>
  Effect.gen(function*() {
    while (!condition()) yield* Effect.sleep(5)
  }).pipe(Effect.timeout("20 seconds"), Effect.orDie)

const version = "2026-07-28"

const stateless = (id: number, method: string, meta: object = {}) => ({
  id,
  method,
  params: { _meta: { "io.modelcontextprotocol/protocolVersion": version, ...meta } }
})

const modern = (method: string) => ({ "mcp-protocol-version": version, "mcp-method": method })

const notifications = (server: Scripted): ReadonlyArray<JsonRpc.Notification> =>
  server.received.filter((message) => message._tag === "Notification")

describe("NodeBridge", () => {
  it.live("2025-11-25 · passes progress and requests of the server on the stream of the request", () =>
    Effect.gen(function*() {
      const { post, servers, session } = yield* serve
      const id = yield* session
      const [server] = servers as [Scripted]
      const calling = yield* Effect.forkChild(
        post({ id: 1, method: "x/slow", params: { _meta: { progressToken: "mine" } } }, id)
      )
      const request = yield* server.request("x/slow")
      server.receiver.message(JsonRpc.notification("notifications/progress", { progressToken: "mine", progress: 1 }))
      server.receiver.message(JsonRpc.request("q", "elicitation/create", { message: "Which tea?" }))
      // The first request of the bridge to this client.
      yield* post({ id: 1, result: { action: "accept" } }, id)
      yield* until(() => server.received.some((message) => message._tag === "Success"))
      assert.deepInclude(server.received, JsonRpc.success("q", { action: "accept" }))
      server.receiver.message(JsonRpc.success(request.id, { done: true }))
      assert.deepStrictEqual((yield* Fiber.join(calling)).messages, [
        { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: "mine", progress: 1 } },
        { jsonrpc: "2.0", id: 1, method: "elicitation/create", params: { message: "Which tea?" } },
        { jsonrpc: "2.0", id: 1, result: { done: true } }
      ])
      assert.deepStrictEqual(notifications(server).map(({ method }) => method), ["notifications/initialized"])
    }))

  it.live("2025-11-25 · passes cancellations on, of the client and of the server", () =>
    Effect.gen(function*() {
      const { post, servers, session } = yield* serve
      const id = yield* session
      const [server] = servers as [Scripted]
      const calling = yield* Effect.forkChild(post({ id: 5, method: "x/slow" }, id))
      yield* server.request("x/slow")
      server.receiver.message(JsonRpc.request("q", "elicitation/create"))
      server.receiver.message(JsonRpc.notification("notifications/cancelled", { requestId: "q" }))
      yield* post({ method: "notifications/cancelled", params: { requestId: 5 } }, id)
      const { messages } = yield* Fiber.join(calling)
      assert.deepStrictEqual(
        messages.map((message) => (message as { readonly method?: string }).method),
        ["elicitation/create", "notifications/cancelled"]
      )
      yield* until(() => notifications(server).length === 2)
      assert.deepInclude(notifications(server), JsonRpc.notification("notifications/cancelled", { requestId: 5 }))
    }))

  it.live("fails the requests of a session when its server ends, and then responds 404", () =>
    Effect.gen(function*() {
      const { post, servers, session } = yield* serve
      const id = yield* session
      const [server] = servers as [Scripted]
      const calling = yield* Effect.forkChild(post({ id: 5, method: "x/slow" }, id))
      yield* server.request("x/slow")
      server.receiver.end({
        _tag: "Lost",
        cause: new TransportError({ reason: new ConnectionLost({ message: "The server has crashed" }) })
      })
      assert.deepStrictEqual((yield* Fiber.join(calling)).messages, [
        { jsonrpc: "2.0", id: 5, error: { code: -32603, message: "The server has crashed" } }
      ])
      assert.strictEqual((yield* post({ id: 6, method: "ping" }, id)).status, 404)
    }))

  it.live("2026-07-28 · keeps clients with equal ids and tokens apart, which share one server", () =>
    Effect.gen(function*() {
      const { post, send, servers } = yield* serve
      const call = (method: string) => post(stateless(1, method, { progressToken: 1 }), modern(method))
      const one = yield* Effect.forkChild(call("x/one"))
      yield* until(() => servers.length === 1)
      const [server] = servers as [Scripted]
      const first = yield* server.request("x/one")
      const other = yield* Effect.forkChild(call("x/other"))
      const second = yield* server.request("x/other")
      assert.notStrictEqual(first.id, second.id)
      for (const { id, params } of [first, second]) {
        const { progressToken } = params!["_meta"] as { readonly progressToken: JsonRpc.Id }
        assert.strictEqual(progressToken, id)
        server.receiver.message(JsonRpc.notification("notifications/progress", { progressToken, progress: 1 }))
      }
      server.receiver.message(JsonRpc.success(second.id, { name: "other" }))
      server.receiver.message(JsonRpc.success(first.id, { name: "one" }))
      for (const [calling, name] of [[one, "one"], [other, "other"]] as const) {
        assert.deepStrictEqual((yield* Fiber.join(calling)).messages, [
          { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 1, progress: 1 } },
          { jsonrpc: "2.0", id: 1, result: { name } }
        ])
      }
      // A client that disconnects cancels its request.
      const controller = new AbortController()
      const sent = send(stateless(1, "x/left"), modern("x/left"), controller.signal).catch(() => {})
      const left = yield* server.request("x/left")
      controller.abort()
      yield* Effect.promise(() => sent)
      yield* until(() => notifications(server).length > 0)
      assert.deepStrictEqual(notifications(server), [
        JsonRpc.notification("notifications/cancelled", { requestId: left.id })
      ])
      assert.strictEqual(servers.length, 1)
    }))

  it.live("2026-07-28 · responds with the statuses of errors, and fails requests whose server does not start", () =>
    Effect.gen(function*() {
      const { post, servers } = yield* serve
      for (const [code, status] of [[-32601, 404], [-32021, 400], [-32022, 400], [-32602, 200]] as const) {
        const method = `x/${-code}`
        const calling = yield* Effect.forkChild(post(stateless(1, method), modern(method)))
        yield* until(() => servers.length === 1)
        const { id } = yield* servers[0]!.request(method)
        servers[0]!.receiver.message(JsonRpc.failure(id, { code, message: "No" }))
        const refused = yield* Fiber.join(calling)
        assert.deepStrictEqual(
          [refused.status, refused.messages],
          [status, [{ jsonrpc: "2.0", id: 1, error: { code, message: "No" } }]]
        )
      }
      const { url } = yield* NodeBridge.serve({
        port: 0,
        connect: Effect.fail({ message: "There is no such program" })
      })
      const { error } = yield* Effect.promise(async () => {
        const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params: {} })
        return (await fetch(url, { method: "POST", headers: headersOf, body })).json() as Promise<{ error: unknown }>
      })
      assert.deepStrictEqual(error, { code: -32603, message: "There is no such program" })
    }))
})
