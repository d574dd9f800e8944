/** A server that requests long waits. No wait exceeds the bound of the client. */
import { assert, describe, it } from "@effect/vitest"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import { connect, Host } from "../input/kit.ts"
import { entered, type Exchange, settle, until } from "../http/support/connection.ts"
import { deep, type Json, result } from "./kit.ts"

describe("Retry-After", () => {
  for (const after of ["999999999", "Fri, 31 Dec 9999 23:59:59 GMT", "-1", "1e9", "x".repeat(4_000)]) {
    it.effect(`of ${after.slice(0, 16)} delays the reopening of the server's own stream by ten minutes at most`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respondResult(), {
          standaloneStream: (hit) => hit.respond(503, "", { "retry-after": after })
        }))
        yield* entered({ url: server.url })
        yield* until(() => server.byMethod("GET").length === 1)
        yield* settle
        yield* TestClock.adjust("10 minutes")
        yield* until(() => server.byMethod("GET").length >= 2)
      }).pipe(Effect.scoped))

    it.effect(`of ${after.slice(0, 16)} delays no call beyond its timeout`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make(
          ScriptedHttpServer.session<Json>((hit) => hit.respond(503, "", { "retry-after": after }))
        )
        const client = yield* Client.make(Http.transport({ url: server.url, shutdownTimeout: 0 }), {
          revisions: ["2025-11-25"],
          enforceCapabilities: false
        })
        const call = yield* Effect.forkScoped(Effect.flip(client.listToolsPage({ timeout: "5 seconds" })), {
          startImmediately: true
        })
        for (let at = 0; at < 10 && call.pollUnsafe() === undefined; at++) {
          yield* settle
          yield* TestClock.adjust("1 second")
        }
        assert.include(["HttpError", "Timeout"], (yield* Fiber.join(call)).reason._tag)
        assert.isAtMost(server.exchanges.length, 8)
      }).pipe(Effect.scoped))
  }
})

describe("a response that arrives very slowly", () => {
  for (
    const [what, status, type] of [["an answer", 200, "application/json"], ["an error", 500, "text/plain"], [
      "a refusal",
      401,
      "text/html"
    ], ["no type", 200, ""]] as const
  ) {
    it.live(`${what}: ends the call and the exchange at the timeout`, () =>
      Effect.gen(function*() {
        const dripping: Array<Exchange> = []
        const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => {
          if (hit.json.id === undefined) return hit.respond(202)
          dripping.push(hit)
          hit.response.writeHead(status, type === "" ? {} : { "content-type": type })
          const timer = setInterval(() => hit.response.write(" "), 5)
          hit.response.once("close", () => clearInterval(timer))
        }))
        const client = yield* Client.make(Http.transport({ url: server.url, shutdownTimeout: 0 }), {
          revisions: ["2025-11-25"],
          enforceCapabilities: false
        })
        const error = yield* Effect.flip(client.callTool("t", {}, { timeout: 150 }))
        assert.strictEqual(error.reason._tag, "Timeout")
        yield* until(() => dripping.every(({ closedByClient }) => closedByClient))
      }).pipe(Effect.scoped))
  }
})

describe("input requests that are nested deeper than the stack", () => {
  const asks = (value: string): ReadonlyArray<readonly [string, string]> => [
    ["elicitation/create", `{"message":"m","requestedSchema":{"type":"object","properties":{"a":${value}}}}`],
    [
      "elicitation/create",
      `{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","default":${value}}}}}`
    ],
    [
      "elicitation/create",
      `{"message":"m","_meta":{"a":${value}},"requestedSchema":{"type":"object","properties":{},"x":${value}}}`
    ],
    ["elicitation/create", `{"mode":"url","message":"m","url":${value},"elicitationId":${value}}`],
    ["sampling/createMessage", `{"maxTokens":1,"messages":${value}}`],
    [
      "sampling/createMessage",
      `{"maxTokens":1,"messages":[{"role":"user","content":{"type":"text","text":"x","_meta":{"a":${value}}}}],"metadata":{"a":${value}}}`
    ],
    [
      "sampling/createMessage",
      `{"maxTokens":1,"messages":[{"role":"user","content":{"type":"text","text":"x"}}],"tools":[{"name":"t","inputSchema":{"type":"object","properties":{"a":${value}}}}]}`
    ],
    ["roots/list", `{"_meta":{"a":${value}}}`]
  ]

  it.live("2025-11-25 · get one response or refusal each", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
      yield* connect(server.transport, new Host().layer, { revisions: ["2025-11-25"] })
      let id = 0
      for (const value of Object.values(deep)) {
        for (const [method, params] of asks(value)) {
          server.sendText(`{"jsonrpc":"2.0","id":"q${id++}","method":"${method}","params":${params}}`)
        }
      }
      yield* until(() => server.responses.length === id)
      yield* settle
      assert.strictEqual(server.responses.length, id)
    }).pipe(Effect.scoped))

  it.live("2026-07-28 · continue the call, or fail it with a typed error", () =>
    Effect.gen(function*() {
      for (const value of Object.values(deep)) {
        for (const [method, params] of asks(value)) {
          let rounds = 0
          const server = ScriptedServer.make(
            ScriptedServer.handshake("2026-07-28", ({ id }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
              sendText(result(
                id,
                rounds++ === 0
                  ? `{"resultType":"input_required","inputRequests":{"k":{"method":"${method}","params":${params}}}}`
                  : "{\"resultType\":\"complete\",\"content\":[]}"
              )))
          )
          const client = yield* connect(server.transport, new Host().layer)
          const called = yield* Effect.result(client.callTool("t"))
          if (called._tag === "Failure") {
            assert.strictEqual(called.failure._tag, "ClientError")
          }
        }
      }
    }).pipe(Effect.scoped))
})

describe("the log", () => {
  it.live("2026-07-28 · contains only the beginning of the name of an excluded tool", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make(({ message }) => void lines.push(String(message)))
      const name = "x".repeat(1_000_000)
      const schema = { type: "object", properties: { a: { type: "object", "x-mcp-header": "A" } } }
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        const { id, method } = hit.json
        const result = method === "server/discover"
          ? { supportedVersions: ["2026-07-28"], capabilities: { tools: {} } }
          : { tools: [{ name, inputSchema: schema }] }
        hit.respondJson({
          jsonrpc: "2.0",
          id,
          result: { resultType: "complete", ttlMs: 0, cacheScope: "private", ...result }
        })
      })
      const client = yield* Effect.provide(Client.make(Http.transport({ url: server.url })), Logger.layer([logger]))
      assert.deepEqual((yield* client.listToolsPage()).tools, [])
      yield* until(() => lines.length > 0)
      assert.isBelow(lines.join("").length, 2_000)
    }).pipe(Effect.scoped))
})
