/** A server profile that is out of date. */
import { assert, describe, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import { MessageRejected, OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Client from "../../src/Client.ts"
import type { ServerProfile } from "../../src/ServerProfile.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { quiet } from "./support.ts"
import { fieldsOf } from "../support/fields.ts"

const serverProfile: ServerProfile = { revision: "2026-07-28", capabilities: { tools: {}, logging: {} } }

const answer = (request: JsonRpc.Request): ScriptedServer.Reply =>
  ScriptedServer.success(
    request.method === "tools/call"
      ? { content: [], resultType: "complete" }
      : { tools: [], resultType: "complete", ttlMs: 0, cacheScope: "private" }
  )

/** A session-based server that rejects requests with `reply` on a connection that did not start with `initialize`. */
const legacy = (reply: ScriptedServer.Reply, ready = () => false) => {
  let opened = 0
  const script = ScriptedServer.handshake(
    "2025-11-25",
    (request, server) => opened === server.connections || ready() ? answer(request) : reply
  )
  return ScriptedServer.make((request, server) => {
    if (request.method === "initialize") opened = server.connections
    return opened === server.connections || request.method === "initialize" ? script(request, server) : reply
  })
}

describe("2026-07-28 · a client with a stored server profile, re-probing if the cached assumption later fails", () => {
  it.effect("sends nothing before the first call, and a result confirms the profile", () =>
    Effect.gen(function*() {
      const line = ScriptedServer.make(ScriptedServer.handshake("2026-07-28", answer))
      const client = yield* Client.make(line.transport, { serverProfile })
      assert.deepStrictEqual([client.revision, line.methods], ["2026-07-28", []])
      yield* client.listToolsPage()
      yield* client.callTool("add")
      assert.deepStrictEqual(line.methods, ["tools/list", "tools/call"])
    }))

  const unsupported = ScriptedServer.failure(-32022, "Unsupported protocol version", {
    supported: ["2025-11-25"],
    requested: "2026-07-28"
  })
  for (
    const [name, reply] of [
      ["an unknown method", ScriptedServer.failure(-32601, "Method not found")],
      ["an unsupported version", unsupported],
      [
        "a request before initialize",
        ScriptedServer.failure(-32602, "Received request before initialization was complete")
      ],
      ["an error of its own", ScriptedServer.failure(-32000, "Bad Request: Server not initialized")]
    ] as const
  ) {
    it.effect(`detects the server again after ${name}, and retries the call even if it is not repeatable`, () =>
      Effect.gen(function*() {
        for (const reconnect of [false, true]) {
          const line = legacy(reply)
          const client = yield* Client.make(line.transport, { serverProfile, reconnect })
          assert.deepStrictEqual((yield* client.callTool("pay")).content, [])
          assert.strictEqual(client.revision, "2025-11-25")
          assert.strictEqual(line.requests("tools/call").length, 2)
          // The next server profile is correct.
          assert.strictEqual(client.serverProfile?.revision, "2025-11-25")
          assert.strictEqual(line.openConnections, 1)
        }
      }))
  }

  it.effect("detects the server again after an HTTP error", () =>
    Effect.gen(function*() {
      const line = legacy(ScriptedServer.failure(-32601, "Method not found"))
      line.onRequest = () =>
        line.attempts === 1
          ? new TransportError({ reason: new MessageRejected({ message: "HTTP 400", status: 400 }) })
          : undefined
      const client = yield* Client.make(line.transport, { serverProfile })
      assert.deepStrictEqual((yield* client.callTool("pay")).content, [])
      assert.deepStrictEqual([client.revision, line.openConnections], ["2025-11-25", 1])
    }))

  it.effect("detects the server again once for several first calls, and retries each", () =>
    Effect.gen(function*() {
      const line = legacy(ScriptedServer.failure(-32601, "Method not found"))
      const client = yield* Client.make(line.transport, { serverProfile })
      const all = yield* Effect.all(Array.from({ length: 5 }, () => client.callTool("pay")), { concurrency: 5 })
      assert.strictEqual(all.length, 5)
      assert.strictEqual(line.openConnections, 1)
      assert.strictEqual(line.requests("initialize").length, 1)
      assert.strictEqual(line.requests("tools/call").length, 10)
    }))

  it.effect("fails with an error about the call, after a probe on the same connection confirms the revision", () =>
    Effect.gen(function*() {
      const line = ScriptedServer.make(
        ScriptedServer.handshake("2026-07-28", () => ScriptedServer.failure(-32602, "Unknown tool: pay"))
      )
      const client = yield* Client.make(line.transport, { serverProfile })
      for (let i = 0; i < 2; i++) {
        const error = yield* Effect.flip(client.callTool("pay"))
        assert.deepStrictEqual([error.reason._tag, fieldsOf(error).error?.reason], ["ProtocolError", "InvalidParams"])
      }
      assert.strictEqual(line.attempts, 1)
      assert.deepStrictEqual(line.methods, ["tools/call", "server/discover", "tools/call"])
    }))

  it.effect("fails with an internal error without a retry, because the call may have started", () =>
    Effect.gen(function*() {
      const line = legacy(ScriptedServer.failure(-32603, "Oops"))
      const client = yield* Client.make(line.transport, { serverProfile })
      const error = yield* Effect.flip(client.callTool("pay"))
      assert.strictEqual(fieldsOf(error).error?.reason, "InternalError")
      yield* quiet
      assert.deepStrictEqual([line.attempts, line.requests("tools/call").length], [1, 1])
    }))

  it.effect("detects the server again only once", () =>
    Effect.gen(function*() {
      const line = ScriptedServer.make((request, server) =>
        request.method === "tools/call" || server.connections === 1
          ? ScriptedServer.failure(-32601, "Method not found")
          : ScriptedServer.handshake("2026-07-28", answer)(request, server)
      )
      const client = yield* Client.make(line.transport, { serverProfile })
      const error = yield* Effect.flip(client.callTool("pay"))
      assert.strictEqual(fieldsOf(error).error?.reason, "MethodNotFound")
      yield* Effect.flip(client.callTool("pay"))
      assert.strictEqual(line.attempts, 2)
    }))

  it.effect("fails the call and ends the client if the server cannot be reached again", () =>
    Effect.gen(function*() {
      const line = legacy(ScriptedServer.failure(-32601, "Method not found"))
      line.onConnect = (attempt) =>
        attempt === 1 ? undefined : new TransportError({ reason: new OpenFailed({ message: "gone" }) })
      const client = yield* Client.make(line.transport, { serverProfile })
      const error = yield* Effect.flip(client.callTool("pay"))
      assert.strictEqual(error.reason._tag, "Closed")
      assert.match(error.message, /gone$/)
      assert.strictEqual((yield* client.ended)._tag, "Lost")
    }))

  it.effect("remains usable after the call is interrupted during the detection", () =>
    Effect.gen(function*() {
      const line = legacy(ScriptedServer.failure(-32601, "Method not found"))
      const client = yield* Client.make(line.transport, { serverProfile })
      const fiber = yield* Effect.forkChild(client.callTool("pay"), { startImmediately: true })
      yield* Effect.yieldNow
      yield* Fiber.interrupt(fiber)
      assert.deepStrictEqual((yield* client.callTool("pay")).content, [])
      assert.strictEqual(line.openConnections, 1)
    }))
})
