/** The HTTP+SSE transport of 2024-11-05 without a client, against raw servers. */
import { assert, describe, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type { End } from "@skein/runtime/Connection"
import * as RawServer from "@skein/testing/RawServer"
import type { TransportError } from "@skein/runtime/TransportError"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import type { IncomingMessage, ServerResponse } from "node:http"
import { CallClock } from "../../src/internal/base/callClock.ts"
import type { HttpChannel, HttpProtocol } from "../../src/internal/http/protocol.ts"
import * as LegacySse from "../../src/internal/http/legacySse.ts"
import * as NodeClient from "../../src/internal/http/nodeClient.ts"
import {
  ChangedBounds,
  type FixedBounds,
  resolve,
  type Resolved,
  type Settings
} from "../../src/internal/http/settings.ts"
import { fieldsOf } from "../support/fields.ts"

type Event =
  | { readonly delivered: JsonRpc.Inbound }
  | { readonly refused: JsonRpc.Id; readonly error: TransportError }
  | { readonly end: End }

/** An HTTP channel on real sockets. `next` returns the callbacks of the protocol one by one. */
const channelWith = (settings: Resolved) =>
  Effect.gen(function*() {
    const client = yield* Effect.acquireRelease(Effect.sync(() => NodeClient.make()), (client) => client.close)
    const events: Array<Event> = []
    let wake = () => {}
    const report = (event: Event) => {
      events.push(event)
      wake()
    }
    const fibers = new Set<Fiber.Fiber<void>>()
    yield* Effect.addFinalizer(() => Fiber.interruptAll(fibers))
    const made: HttpChannel = {
      settings,
      callClock: new CallClock(),
      exchanger: client,
      fork: (effect) => {
        const fiber = Effect.runFork(effect)
        fibers.add(fiber)
        return fiber
      },
      deliver: (delivered) => report({ delivered }),
      refused: (id, error) => report({ refused: id, error }),
      gap: () => {},
      end: (end) => report({ end })
    }
    const next = Effect.callback<Event>((resume) => {
      wake = () => {
        const first = events.shift()
        if (first === undefined) return
        wake = () => {}
        resume(Effect.succeed(first))
      }
      wake()
    })
    return { channel: made, next }
  })

type Handler = (request: IncomingMessage, response: ServerResponse, stream: () => ServerResponse) => void

/** A server of 2024-11-05: its stream starts with `beginning`, and POSTs go to the handler. */
const server = (beginning: string, handler: Handler = (_, response) => response.writeHead(202).end()) => {
  let stream: ServerResponse | undefined
  return RawServer.http((request, response) => {
    if (request.method !== "GET") return handler(request, response, () => stream!)
    if (request.headers.accept !== "text/event-stream") return response.writeHead(406).end()
    stream = response
    response.writeHead(200, { "Content-Type": "text/event-stream; charset=utf-8" })
    response.write(beginning)
  })
}

const endpoint = (at: string) => `event: endpoint\ndata: ${at}\n\n`
const open = (url: URL, bounds: Partial<FixedBounds> = {}, options: Omit<Settings, "url"> = {}) =>
  Effect.gen(function*() {
    const settings = resolve({ url, ...options }, Context.make(ChangedBounds, bounds)) as Resolved
    const made = yield* channelWith(settings)
    const protocol: HttpProtocol = yield* LegacySse.open(made.channel)
    return { ...made, protocol }
  })

describe("2024-11-05 · HTTP with SSE", () => {
  it.live("client messages MUST be sent as POST requests to the endpoint of the `endpoint` event; responses arrive as `message` events", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const { url } = yield* server(endpoint("/messages?sessionId=1"), async (request, response, stream) => {
        const body = await RawServer.readBody(request)
        seen.push([request.method, request.url, request.headers["content-type"], body])
        response.writeHead(202).end("Accepted")
        stream().write(`event: message\ndata: {"jsonrpc":"2.0","id":1,"result":{"a":"é"}}\n\n`)
      })
      const { protocol, next } = yield* open(url)
      protocol.send(JsonRpc.request(1, "ping"), undefined)
      assert.deepStrictEqual(yield* next, { delivered: JsonRpc.success(1, { a: "é" }) })
      assert.deepStrictEqual(seen, [
        ["POST", "/messages?sessionId=1", "application/json", `{"jsonrpc":"2.0","id":1,"method":"ping"}`]
      ])
    }))

  for (
    const [revision, named] of [
      ["2025-11-25", "2025-11-25"],
      ["2025-06-18", "2025-06-18"],
      ["2025-03-26", undefined],
      ["2024-11-05", undefined]
    ] as const
  ) {
    it.live(`${revision} · the client MUST include MCP-Protocol-Version on all subsequent requests, since 2025-06-18`, () =>
      Effect.gen(function*() {
        const seen: Array<unknown> = []
        const { url } = yield* server(endpoint("/messages"), async (request, response, stream) => {
          const { id, method } = JSON.parse(await RawServer.readBody(request)) as {
            readonly id?: number
            readonly method: string
          }
          seen.push([method, request.headers["mcp-protocol-version"]])
          response.writeHead(202).end()
          // The result of another request does not set the revision.
          const result = { protocolVersion: method === "initialize" ? revision : "2026-07-28" }
          if (id !== undefined) stream().write(`data: ${JSON.stringify({ jsonrpc: "2.0", id, result })}\n\n`)
        })
        const { protocol, next } = yield* open(url)
        protocol.send(JsonRpc.request(0, "initialize"), undefined)
        yield* next
        for (const id of [1, 2]) {
          protocol.send(JsonRpc.request(id, "ping"), undefined)
          yield* next
        }
        assert.deepStrictEqual(seen, [["initialize", undefined], ["ping", named], ["ping", named]])
      }))
  }

  for (
    const [name, at] of [
      ["an absolute URL", (url: URL) => `${url.origin}/messages`],
      ["a path", () => "/messages"],
      ["a relative path", () => "messages"]
    ] as const
  ) {
    it.live(`accepts ${name} as the endpoint`, () =>
      Effect.gen(function*() {
        let origin = new URL("http://unknown.test")
        const { url } = yield* RawServer.http((request, response) => {
          if (request.method === "POST") {
            response.writeHead(request.url === "/messages" ? 202 : 500).end()
            return void (stream as ServerResponse | undefined)?.write("data: {}\n\n")
          }
          stream = response
          response.writeHead(200, { "Content-Type": "text/event-stream" }).write(endpoint(at(origin)))
        })
        let stream: ServerResponse | undefined
        origin = url
        const { protocol, next } = yield* open(url)
        protocol.send(JsonRpc.request(1, "ping"), undefined)
        assert.property(yield* next, "delivered")
      }))
  }

  for (
    const [name, at] of [
      ["another host", "http://evil.test/messages"],
      ["another port", "http://127.0.0.1:1/messages"],
      ["another scheme", "https://127.0.0.1/messages"],
      ["no host", "javascript:alert(1)"],
      ["another host without a scheme", "//evil.test/messages"]
    ] as const
  ) {
    it.live(`rejects an endpoint of ${name}, which would receive the credentials, and sends nothing there`, () =>
      Effect.gen(function*() {
        const { closed, url } = yield* server(endpoint(at))
        const error = yield* Effect.flip(open(url))
        assert.strictEqual(error.reason._tag, "MessageRejected")
        assert.match(error.message, /endpoint at another origin/)
        yield* closed
      }))
  }

  it.live("rejects an endpoint with an invalid URL or with a password", () =>
    Effect.gen(function*() {
      for (const at of ["http://[", "http://user:secret@HOST/messages"]) {
        let data = at
        const { url } = yield* RawServer.http((_, response) =>
          void response.writeHead(200, { "Content-Type": "text/event-stream" }).write(endpoint(data))
        )
        data = at.replace("HOST", url.host)
        const error = yield* Effect.flip(open(url))
        assert.strictEqual(error.reason._tag, "MessageRejected")
        assert.notInclude(error.message, "secret")
      }
    }))

  it.live("ignores events before the endpoint, and a second endpoint", () =>
    Effect.gen(function*() {
      const beginning = `: hello\n\ndata: {}\n\nevent: ping\ndata: 1\n\n${endpoint("/one")}${
        endpoint("http://evil.test/two")
      }`
      const { url } = yield* server(beginning, (request, response, stream) => {
        response.writeHead(202).end()
        stream().write(`event: other\ndata: x\n\ndata: {"jsonrpc":"2.0","method":"${request.url}"}\n\n`)
      })
      const { protocol, next } = yield* open(url)
      protocol.send(JsonRpc.notification("notifications/initialized"), undefined)
      assert.deepStrictEqual(yield* next, { delivered: JsonRpc.notification("/one") })
    }))

  it.effect("waits 10 seconds for the endpoint by default, then closes the stream", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const { closed, url } = yield* RawServer.http((_, response) => {
        response.writeHead(200, { "Content-Type": "text/event-stream" }).write(": wait\n\n")
        Effect.runSync(Deferred.succeed(asked, undefined))
      })
      const fiber = yield* Effect.forkChild(Effect.flip(open(url)), { startImmediately: true })
      yield* Deferred.await(asked)
      yield* TestClock.adjust("9999 millis")
      assert.isUndefined(fiber.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      const error = yield* Fiber.join(fiber)
      assert.strictEqual(error.reason._tag, "ConnectionLost")
      assert.match(error.message, /no endpoint/)
      yield* closed
    }))

  it.live("fails with ConnectionLost if the stream ends before the endpoint", () =>
    Effect.gen(function*() {
      const { url } = yield* RawServer.http((_, response) =>
        void response.writeHead(200, { "Content-Type": "text/event-stream" }).end()
      )
      assert.strictEqual((yield* Effect.flip(open(url))).reason._tag, "ConnectionLost")
    }))

  for (
    const [status, type, text] of [[405, "text/plain", "No"], [404, "text/html", "<h1>"], [
      200,
      "text/html",
      "<h1>"
    ]] as const
  ) {
    it.live(`fails with MessageRejected if the server responds ${status} with ${type}`, () =>
      Effect.gen(function*() {
        const { url } = yield* RawServer.http((_, response) =>
          void response.writeHead(status, { "Content-Type": type }).end(text)
        )
        assert.deepInclude(fieldsOf(yield* Effect.flip(open(url))), { reason: "MessageRejected", status })
      }))
  }

  it.live("ends with Lost at the end of the stream, because a stream cannot be resumed", () =>
    Effect.gen(function*() {
      const { url } = yield* server(endpoint("/messages"), (_, response, stream) => {
        response.writeHead(202).end()
        stream().end()
      })
      const { protocol, next } = yield* open(url)
      protocol.send(JsonRpc.notification("notifications/initialized"), undefined)
      const event = yield* next as Effect.Effect<{ readonly end: End }>
      assert.strictEqual(event.end._tag, "Lost")
    }))

  it.live("ends with Lost on an event above maxMessageBytes", () =>
    Effect.gen(function*() {
      const gone = yield* Deferred.make<void>()
      const { url } = yield* server(endpoint("/messages"), (_, response, stream) => {
        response.writeHead(202).end()
        stream().once("close", () => Effect.runSync(Deferred.succeed(gone, undefined)))
        stream().write(`data: ${"x".repeat(200)}`)
      })
      const { protocol, next } = yield* open(url, {}, { maxMessageBytes: 150 })
      protocol.send(JsonRpc.notification("notifications/initialized"), undefined)
      const event = yield* next as Effect.Effect<{ readonly end: { readonly cause: TransportError } }>
      assert.match(event.end.cause.message, /exceeds maxMessageBytes \(150\)/)
      yield* Deferred.await(gone)
    }))

  it.live("delivers text that is not JSON-RPC as Invalid and continues", () =>
    Effect.gen(function*() {
      const { url } = yield* server(endpoint("/m") + "data: prose\n\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n")
      const { next } = yield* open(url)
      const first = yield* next as Effect.Effect<{ readonly delivered: JsonRpc.Inbound }>
      assert.strictEqual(first.delivered._tag, "Invalid")
      assert.deepStrictEqual(yield* next, { delivered: JsonRpc.notification("a") })
    }))

  for (const status of [401, 403, 404, 500]) {
    it.live(`fails only the request whose POST gets ${status}`, () =>
      Effect.gen(function*() {
        const { url } = yield* server(endpoint("/m"), (_, response) => void response.writeHead(status).end("why not"))
        const { protocol, next } = yield* open(url)
        protocol.send(JsonRpc.request(7, "ping"), undefined)
        const event = yield* next as Effect.Effect<{ readonly refused: JsonRpc.Id; readonly error: TransportError }>
        assert.strictEqual(event.refused, 7)
        assert.deepInclude(fieldsOf(event.error), { reason: "MessageRejected", status })
      }))
  }

  it.live("delivers a JSON-RPC error in the response to the POST as the response", () =>
    Effect.gen(function*() {
      const { url } = yield* server(endpoint("/m"), (_, response) => {
        response.writeHead(400, { "Content-Type": "application/json" })
        response.end(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"No session"}}`)
      })
      const { protocol, next } = yield* open(url)
      protocol.send(JsonRpc.request(7, "ping"), undefined)
      assert.deepStrictEqual(yield* next, {
        delivered: JsonRpc.failure(7, { code: -32600, message: "No session" })
      })
    }))

  it.live("fails the request if the connection of its POST breaks", () =>
    Effect.gen(function*() {
      const { url } = yield* server(endpoint("/m"), (request) => request.socket.destroy())
      const { protocol, next } = yield* open(url)
      protocol.send(JsonRpc.request(7, "ping"), undefined)
      const event = yield* next as Effect.Effect<{ readonly refused: JsonRpc.Id; readonly error: TransportError }>
      assert.deepInclude(fieldsOf(event.error), { reason: "ConnectionLost" })
    }))

  it.live("sends nothing before notifications/initialized is accepted, and no cancellation before its request", () =>
    Effect.gen(function*() {
      const order: Array<string> = []
      const held: Array<ServerResponse> = []
      const { url } = yield* server(endpoint("/m"), async (request, response, stream) => {
        const { method } = JSON.parse(await RawServer.readBody(request)) as { readonly method: string }
        order.push(method)
        held.push(response)
        stream().write(`data: {"jsonrpc":"2.0","method":"took/${method}"}\n\n`)
      })
      const { protocol, next } = yield* open(url)
      protocol.send(JsonRpc.notification("notifications/initialized"), undefined)
      protocol.send(JsonRpc.request(1, "tools/call"), undefined)
      protocol.send(JsonRpc.notification("notifications/cancelled", { requestId: 1 }), undefined)
      yield* next
      assert.deepStrictEqual(order, ["notifications/initialized"])
      held[0]!.writeHead(202).end()
      yield* next
      assert.deepStrictEqual(order, ["notifications/initialized", "tools/call"])
      held[1]!.writeHead(202).end()
      yield* next
      assert.deepStrictEqual(order, ["notifications/initialized", "tools/call", "notifications/cancelled"])
    }))

  it.effect("endpointTimeout: bounds the wait for the endpoint", () =>
    Effect.gen(function*() {
      const asked = yield* Deferred.make<void>()
      const { url } = yield* RawServer.http(() => Effect.runSync(Deferred.succeed(asked, undefined)))
      const fiber = yield* Effect.forkChild(Effect.flip(open(url, { endpointTimeout: 1_000 })), {
        startImmediately: true
      })
      yield* Deferred.await(asked)
      yield* TestClock.adjust("1 second")
      assert.match((yield* Fiber.join(fiber)).message, /within 1000 ms/)
    }))

  it.live("maxConcurrentPosts: reports back-pressure to the sender until a POST completes", () =>
    Effect.gen(function*() {
      const held: Array<ServerResponse> = []
      const { url } = yield* server(endpoint("/m"), (_, response, stream) => {
        held.push(response)
        stream().write(`data: {"jsonrpc":"2.0","method":"taken"}\n\n`)
      })
      const { protocol, next } = yield* open(url, { maxConcurrentPosts: 2 })
      protocol.send(JsonRpc.notification("notifications/progress"), undefined)
      assert.isFalse(protocol.queue.full)
      protocol.send(JsonRpc.success(1, {}), undefined)
      assert.isTrue(protocol.queue.full)
      yield* next
      yield* next
      held[0]!.writeHead(202).end()
      yield* protocol.queue.drained
      assert.isFalse(protocol.queue.full)
      held[1]!.writeHead(202).end()
      yield* protocol.close
    }))

  it.live("sends requests concurrently: a slow request delays no other", () =>
    Effect.gen(function*() {
      const { url } = yield* server(endpoint("/m"), async (request, response, stream) => {
        const { id } = JSON.parse(await RawServer.readBody(request)) as { readonly id: number }
        if (id === 1) return
        response.writeHead(202).end()
        stream().write(`data: {"jsonrpc":"2.0","id":${id},"result":{}}\n\n`)
      })
      const { protocol, next } = yield* open(url)
      protocol.send(JsonRpc.request(1, "tools/call"), undefined)
      protocol.send(JsonRpc.request(2, "tools/call"), undefined)
      assert.deepStrictEqual(yield* next, { delivered: JsonRpc.success(2, {}) })
    }))
})
