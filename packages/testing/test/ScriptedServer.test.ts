/** A server in memory whose responses a test writes, seen by clients. */
import * as Client from "@skein/client/Client"
import { MessageRejected, TransportError } from "@skein/runtime/TransportError"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"

const options: Client.Options = { reconnect: false, limits: { maxRetries: 0 } }
const listing = ScriptedServer.success({ tools: [], resultType: "complete", ttlMs: 0, cacheScope: "private" })

const connected = (script: ScriptedServer.Script) =>
  Effect.gen(function*() {
    const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", script))
    return { server, client: yield* Client.make(server.transport, options) }
  })

describe("make", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.effect(`${revision} · answers the handshake and records the messages of the client`, () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(ScriptedServer.handshake(revision, () => listing))
        const client = yield* Client.make(server.transport, options)
        expect((yield* client.listToolsPage()).tools).toEqual([])
        expect(client.server).toEqual({ name: "scripted", version: "1.0.0" })
        expect(server.requests("tools/list")).toHaveLength(1)
        expect(server.methods.at(-1)).toBe("tools/list")
        expect([server.attempts, server.connections, server.openConnections]).toEqual([1, 1, 1])
      }))
  }

  it.effect("sends each response to the client that sent the request", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => listing))
      const one = yield* Client.make(server.transport, options)
      yield* Client.make(server.transport, options)
      expect((yield* one.listToolsPage()).tools).toEqual([])
      expect(server.maxOpenConnections).toBe(2)
    }))

  it.effect("sends errors, and refuses unknown methods by default", () =>
    Effect.gen(function*() {
      const { client } = yield* connected(({ method }) => ScriptedServer.methodNotFound(method))
      expect((yield* Effect.flip(client.listToolsPage())).reason).toMatchObject({
        _tag: "ProtocolError",
        error: { code: -32601 }
      })
    }))

  it.effect("ends the connection in place of a response", () =>
    Effect.gen(function*() {
      const { client } = yield* connected(() => "disconnect")
      expect((yield* Effect.flip(client.listToolsPage())).reason).toMatchObject({
        _tag: "Closed",
        end: { _tag: "ClosedByPeer" }
      })
    }))

  it.effect("sends any text", () =>
    Effect.gen(function*() {
      const { client } = yield* connected(({ id }, server) => {
        server.sendText("This is not JSON")
        server.sendText(`{"jsonrpc":"2.0","id":${id},"result":{"tools":[]}}`)
      })
      expect((yield* client.listToolsPage()).tools).toEqual([])
    }))

  it.effect("closes its connection with the scope, and then throws instead of sending", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const { server } = yield* Scope.provide(connected(() => listing), scope)
      yield* Scope.close(scope, Exit.void)
      expect(server.openConnections).toBe(0)
      expect(() => server.notify("notifications/test")).toThrow("No client is connected")
    }))
})

describe("faults", () => {
  const refused = new TransportError({ reason: new MessageRejected({ message: "No", status: 400 }) })

  it.effect("onConnect · fails an attempt to connect", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25"))
      server.onConnect = (attempt) => attempt === 1 ? ScriptedServer.lost("Not yet") : undefined
      expect((yield* Effect.flip(Client.make(server.transport, options))).message).toContain("Not yet")
      yield* Client.make(server.transport, options)
      expect([server.attempts, server.connections]).toEqual([2, 1])
    }))

  it.effect.each(
    [
      ["lose", "Closed", 0],
      [{ delivered: "lose" }, "Closed", 1],
      [refused, "HttpError", 0],
      [{ delivered: refused }, "HttpError", 1]
    ] as const satisfies ReadonlyArray<readonly [ScriptedServer.Delivery, string, number]>
  )("onRequest · %o", ([delivery, reason, count]) =>
    Effect.gen(function*() {
      const { client, server } = yield* connected(() => listing)
      server.onRequest = ({ method }) => method === "tools/list" ? delivery : undefined
      expect((yield* Effect.flip(client.listToolsPage())).reason._tag).toBe(reason)
      expect(server.requests("tools/list")).toHaveLength(count)
    }))
})
