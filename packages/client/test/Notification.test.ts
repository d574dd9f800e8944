/** Messages that a server sends unasked: notifications, requests and malformed input. */
import { assert, describe, it } from "@effect/vitest"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as Revision from "@skein/protocol/Revision"
import type { Connection, Receiver } from "@skein/runtime/Connection"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Stream from "effect/Stream"
import * as Client from "../src/Client.ts"
import type { Notification } from "../src/Notification.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"

const open = (revision: Revision.Revision, options?: Client.Options) =>
  Effect.gen(function*() {
    const server = ScriptedServer.make(
      ScriptedServer.handshake(revision, () => ScriptedServer.success({ content: [] }))
    )
    const client = yield* Client.make(server.transport, options)
    yield* client.ping()
    return { server, client }
  })

const at = ({ params }: Notification) => (params as { readonly at?: number }).at

const listen = (client: Client.Client, count: number) =>
  Effect.forkChild(Stream.runCollect(Stream.take(client.notifications, count)), { startImmediately: true })

describe("notifications", () => {
  for (const revision of Revision.all) {
    it.effect(`${revision} · decodes notifications and delivers them in order to each subscriber`, () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(revision)
        const fibers = [yield* listen(client, 4), yield* listen(client, 4)]
        server.notify("notifications/message", { level: "info", data: { a: 1 } })
        server.notify("notifications/resources/updated", { uri: "file:///x" })
        server.notify("notifications/tools/list_changed")
        server.notify("notifications/vendor/thing", { b: 2 })
        const expected: ReadonlyArray<Notification> = [
          { _tag: "LoggingMessage", method: "notifications/message", params: { level: "info", data: { a: 1 } } },
          { _tag: "ResourceUpdated", method: "notifications/resources/updated", params: { uri: "file:///x" } },
          { _tag: "ToolListChanged", method: "notifications/tools/list_changed", params: {} },
          { _tag: "Other", method: "notifications/vendor/thing", params: { b: 2 } }
        ]
        for (const fiber of fibers) assert.deepStrictEqual(yield* Fiber.join(fiber), [...expected])
      }))
  }

  it.effect("drops a malformed notification", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2025-11-25")
      const fiber = yield* listen(client, 1)
      server.notify("notifications/message", { level: "shout", data: 1 })
      server.notify("notifications/message", { level: "info", data: 2 })
      const [first] = yield* Fiber.join(fiber)
      assert.deepStrictEqual(first?.params, { level: "info", data: 2 })
    }))

  it.effect("drops the oldest of more than maxBufferedNotifications notifications (default 256)", () =>
    Effect.gen(function*() {
      for (const [options, size] of [[{ limits: { maxBufferedNotifications: 2 } }, 2], [{}, 256]] as const) {
        const { client, server } = yield* open("2025-11-25", options)
        const started = client.notifications.pipe(
          Stream.mapEffect((notice) =>
            // The first notification blocks the subscriber until all the others have arrived.
            at(notice) === 0 ? Effect.as(client.ping(), notice) : Effect.succeed(notice), { concurrency: 1 }),
          Stream.takeUntil((notice) => at(notice) === 600),
          Stream.runCollect
        )
        const fiber = yield* Effect.forkChild(started, { startImmediately: true })
        server.notify("notifications/x", { at: 0 })
        yield* client.callTool("t")
        for (let n = 1; n <= 600; n++) server.notify("notifications/x", { at: n })
        const seen = (yield* Fiber.join(fiber)).map(at)
        assert.strictEqual(seen.at(-1), 600)
        // The first was taken before the others arrived. One more may already have left the buffer.
        assert.isAtMost(seen.length, size + 2)
        assert.isAtLeast(seen.length, size)
      }
    }))

  it.effect("ends the stream with the session", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2025-11-25")
      const fiber = yield* Effect.forkChild(Stream.runCollect(client.notifications), { startImmediately: true })
      server.notify("notifications/x")
      server.disconnect()
      assert.strictEqual((yield* Fiber.join(fiber)).length, 1)
      assert.deepStrictEqual(yield* Stream.runCollect(client.notifications), [])
    }))

  it.effect("decodes no notifications after the last subscriber ends", () => {
    const warnings: Array<unknown> = []
    const logger = Logger.make(({ logLevel, message }) => {
      if (logLevel === "Warn") warnings.push(message)
    })
    return Effect.gen(function*() {
      const { client, server } = yield* open("2025-11-25")
      const malformed = Effect.suspend(() => {
        server.notify("notifications/message", { level: "shout" })
        return client.callTool("t")
      })
      yield* malformed
      assert.strictEqual(warnings.length, 0)
      const fiber = yield* listen(client, 1)
      yield* malformed
      assert.strictEqual(warnings.length, 1)
      yield* Fiber.interrupt(fiber)
      yield* malformed
      assert.strictEqual(warnings.length, 1)
    }).pipe(Effect.provide(Logger.layer([logger])))
  })
})

describe("requests from the server", () => {
  const answerTo = (server: ReturnType<typeof ScriptedServer.make>, id: JsonRpc.Id) =>
    server.received.find((message) => (message._tag === "Success" || message._tag === "Failure") && message.id === id)

  for (const revision of Revision.sessionBased) {
    it.effect(`${revision} · ping MUST be answered with an empty response; responds -32601 to requests of undeclared capabilities`, () =>
      Effect.gen(function*() {
        const { client, server } = yield* open(revision)
        server.send(JsonRpc.request("p", "ping"))
        server.send(JsonRpc.request("r", "roots/list"))
        server.send(JsonRpc.request("s", "sampling/createMessage", { messages: [], maxTokens: 1 }))
        yield* client.ping()
        yield* client.ping()
        assert.deepStrictEqual(answerTo(server, "p"), JsonRpc.success("p", {}))
        for (const id of ["r", "s"]) {
          const answer = answerTo(server, id)
          assert.strictEqual(answer?._tag === "Failure" ? answer.error.code : undefined, -32601)
        }
      }))
  }

  it.effect("2025-11-25 · responds to a ping before the session is initialized", () =>
    Effect.gen(function*() {
      const legacy = ScriptedServer.handshake("2025-11-25")
      const server = ScriptedServer.make((request, server) => {
        if (request.method === "initialize") server.send(JsonRpc.request("early", "ping"))
        return legacy(request, server)
      })
      const client = yield* Client.make(server.transport)
      yield* client.ping()
      assert.deepStrictEqual(answerTo(server, "early"), JsonRpc.success("early", {}))
    }))

  it.effect("2026-07-28 · stdio · the client MUST NOT write JSON-RPC responses", () =>
    Effect.gen(function*() {
      const { client, server } = yield* open("2026-07-28")
      server.send(JsonRpc.request("p", "ping"))
      server.send(JsonRpc.request("r", "roots/list"))
      server.send({ _tag: "Batch", members: [JsonRpc.request("b", "ping")] })
      yield* client.ping()
      yield* client.callTool("t")
      assert.deepStrictEqual(server.received.filter(({ _tag }) => _tag === "Success" || _tag === "Failure"), [])
    }))

  it.effect("2026-07-28 · stdio · writes no JSON-RPC response during the probe if session-based revisions are disabled", () =>
    Effect.gen(function*() {
      const script = ScriptedServer.handshake("2026-07-28")
      const server = ScriptedServer.make((request, server) => {
        server.send(JsonRpc.request("early", "ping"))
        return script(request, server)
      })
      yield* (yield* Client.make(server.transport, { revisions: ["2026-07-28"] })).ping()
      assert.deepStrictEqual(server.received.filter(({ _tag }) => _tag === "Success" || _tag === "Failure"), [])
    }))
})

describe("malformed input", () => {
  /** A connection that can also receive text that no MCP server sends. */
  const noisy = (revision: Revision.Revision) =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake(revision, () => "no response"))
      let receiver: Receiver | undefined
      const connect = Effect.map(server.transport.connect, (connection): Connection => ({
        open: (opened) => {
          receiver = opened
          connection.open(opened)
        },
        send: (message) => connection.send(message),
        drained: connection.drained,
        close: connection.close
      }))
      const client = yield* Client.make({ connect })
      return { client, server, read: (text: string) => receiver!.message(JsonRpc.parseText(text)) }
    })

  for (const revision of Revision.all) {
    it.effect(`${revision} · ignores text that is not a JSON-RPC message and does not respond to it`, () =>
      Effect.gen(function*() {
        const { client, read, server } = yield* noisy(revision)
        for (const text of ["Listening on port 3000", "{}", "[]", "[1]", "{\"jsonrpc\":\"2.0\"}", "7"]) read(text)
        yield* client.ping()
        assert.deepStrictEqual(server.received.filter(({ _tag }) => _tag === "Failure" || _tag === "Batch"), [])
      }))
  }

  it.effect("fails the request of a malformed response with InvalidResponse", () =>
    Effect.gen(function*() {
      const { client, read, server } = yield* noisy("2025-11-25")
      const fiber = yield* Effect.forkChild(Effect.flip(client.callTool("t")), { startImmediately: true })
      yield* client.ping()
      read(`{"jsonrpc":"2.0","id":${server.requests("tools/call")[0]!.id},"result":"oops"}`)
      assert.strictEqual((yield* Fiber.join(fiber)).reason._tag, "InvalidResponse")
    }))

  it.effect("2025-03-26 · reads a batch and responds to its requests in one batch", () =>
    Effect.gen(function*() {
      const { client, read, server } = yield* noisy("2025-03-26")
      read(`[{"jsonrpc":"2.0","id":"a","method":"ping"},{"jsonrpc":"2.0","id":"b","method":"ping"},7]`)
      yield* client.ping()
      const batch = server.received.find(({ _tag }) => _tag === "Batch")
      assert.deepStrictEqual(batch, { _tag: "Batch", members: [JsonRpc.success("a", {}), JsonRpc.success("b", {})] })
    }))

  it.effect("reads a batch message by message in a revision without batches", () =>
    Effect.gen(function*() {
      const { client, read, server } = yield* noisy("2025-11-25")
      const fiber = yield* Effect.forkChild(client.callTool("t"), { startImmediately: true })
      yield* client.ping()
      read(`[{"jsonrpc":"2.0","id":${server.requests("tools/call")[0]!.id},"result":{"content":[]}}]`)
      assert.deepStrictEqual((yield* Fiber.join(fiber)).content, [])
    }))
})
