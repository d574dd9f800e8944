/**
 * Prototype names as keys, secrets, and thousands of notifications: no prototype is changed, no secret leaks, nothing
 * is retained.
 */
import { assert, describe, it } from "@effect/vitest"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as References from "effect/References"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import { inspect } from "node:util"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { connect, Host } from "../input/kit.ts"
import { type Exchange, settle, until } from "../http/support/connection.ts"
import { handshakeOf, type Json, result } from "./kit.ts"
import { withCpuTime } from "../support/cpuTime.ts"
import { withBounds } from "../http/support/changedBounds.ts"

const complete = (body: string) => `{"resultType":"complete","ttlMs":60000,"cacheScope":"private",${body}}`
const evil =
  "\"__proto__\":{\"polluted\":1,\"toString\":1,\"then\":1},\"constructor\":{\"prototype\":{\"polluted\":1}},\"toJSON\":1,\"then\":1,\"hasOwnProperty\":1,\"valueOf\":null"

describe("keys that are names of prototypes", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.live(`${revision} · change no prototype and break nothing, in any place of a message`, () =>
      Effect.gen(function*() {
        const schema = `{"type":"object",${evil},"properties":{${
          evil.replaceAll(":1", ":{\"type\":\"string\"}").replace(":null", ":{}")
        }}}`
        const bodies: Record<string, string> = {
          "tools/list":
            `"tools":[{"name":"t","inputSchema":${schema},"outputSchema":{"type":"object",${evil}},"annotations":{${evil}},"_meta":{${evil}},${evil}}],${evil}`,
          "tools/call":
            `"content":[{"type":"text","text":"x","_meta":{${evil}},${evil}}],"structuredContent":{${evil}},"_meta":{${evil}},${evil}`,
          "resources/list": `"resources":[{"uri":"a:b","name":"x",${evil}}],${evil}`,
          "resources/read": `"contents":[{"uri":"a:b","text":"x",${evil}}],${evil}`,
          "prompts/get": `"messages":[{"role":"user","content":{"type":"text","text":"x",${evil}},${evil}}],${evil}`
        }
        const declared =
          `{"tools":{${evil}},"resources":{},"prompts":{},"experimental":{${evil}},"extensions":{${evil}},${evil}}`
        const server = ScriptedServer.make(
          handshakeOf(
            revision,
            ({ id, method }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
              sendText(result(id, complete(bodies[method]!))),
            declared
          )
        )
        const client = yield* Client.make(server.transport)
        for (let twice = 0; twice < 2; twice++) {
          yield* Effect.result(client.listTools())
          yield* Effect.result(client.callTool("t", JSON.parse(`{${evil}}`)))
          yield* client.listResources()
          yield* client.readResource("a:b")
          yield* client.getPrompt("p", JSON.parse("{\"__proto__\":\"x\"}"))
        }
        assert.deepEqual(Object.keys((server.requests("prompts/get")[0]!.params as Json).arguments), ["__proto__"])
        for (
          const method of [
            "message",
            "progress",
            "cancelled",
            "resources/updated",
            "subscriptions/acknowledged",
            "__proto__"
          ]
        ) {
          server.sendText(`{"jsonrpc":"2.0","method":"notifications/${method}","params":{${evil},"_meta":{${evil}}}}`)
        }
        server.sendText(`{"jsonrpc":"2.0","id":9,"method":"__proto__",${evil}}`)
        yield* client.ping().pipe(Effect.ignore)
        assert.isDefined(client.capabilities.tools)
        const clean = {} as Json
        assert.isUndefined(clean.polluted)
        assert.strictEqual(String(clean), "[object Object]")
      }).pipe(Effect.scoped))
  }

  it.live("2026-07-28 · are valid keys of input requests, each with its own response", () =>
    Effect.gen(function*() {
      const keys = ["__proto__", "constructor", "toString", "", "\u0000", "\ufffd", "1", "x".repeat(100_000)]
      const question = "{\"method\":\"roots/list\"}"
      let asked = 0
      const server = ScriptedServer.make(
        ScriptedServer.handshake("2026-07-28", ({ id }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
          sendText(
            asked++ === 0
              ? result(
                id,
                `{"resultType":"input_required","requestState":"s","inputRequests":{${
                  keys.map((key) => `${JSON.stringify(key)}:${question}`).join()
                }}}`
              )
              : result(id, complete("\"content\":[]"))
          ))
      )
      const client = yield* connect(server.transport, new Host().layer)
      yield* client.callTool("t")
      const { inputResponses, requestState } = server.requests("tools/call")[1]!.params as Json
      assert.sameMembers(Object.keys(inputResponses), keys)
      assert.strictEqual(requestState, "s")
    }).pipe(Effect.scoped))

  it.live("2026-07-28 · presents a duplicate key once, and bounds endless input requests", () =>
    Effect.gen(function*() {
      const host = new Host()
      const form =
        "{\"method\":\"elicitation/create\",\"params\":{\"message\":\"m\",\"requestedSchema\":{\"type\":\"object\",\"properties\":{}}}}"
      const server = ScriptedServer.make(
        ScriptedServer.handshake(
          "2026-07-28",
          ({ id }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
            sendText(result(
              id,
              `{"resultType":"input_required","inputRequests":{${
                Array.from({ length: 1_000 }, () => `"k":${form}`).join()
              }}}`
            ))
        )
      )
      const client = yield* connect(server.transport, host.layer, { limits: { maxRounds: 5 } })
      assert.strictEqual((yield* Effect.flip(client.callTool("t"))).reason._tag, "LimitExceeded")
      assert.strictEqual(host.seen.length, 5)
    }).pipe(Effect.scoped))

  it.live("2025-11-25 · stays responsive when a server with a huge name sends many requests", () =>
    Effect.gen(function*() {
      const host = new Host()
      const icons = Array.from({ length: 30_000 }, (_, at) => `{"src":"https://example.com/${at}.png"}`).join()
      const shake = ScriptedServer.handshake("2025-11-25", () => "no response")
      const server = ScriptedServer.make((message: Json, server: ScriptedServer.ScriptedServer) =>
        message.method === "initialize"
          ? server.sendText(result(
            message.id,
            `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1","icons":[${icons}]}}`
          ))
          : shake(message, server)
      )
      yield* connect(server.transport, host.layer, { revisions: ["2025-11-25"] })
      const [, took] = yield* withCpuTime(Effect.suspend(() => {
        for (let at = 0; at < 200; at++) server.sendText(`{"jsonrpc":"2.0","id":"q${at}","method":"roots/list"}`)
        return until(() => server.responses.length === 200)
      }))
      assert.isBelow(took, 2_500)
    }).pipe(Effect.scoped))

  it.live("reads a hundred thousand capabilities quickly, repeatedly", () =>
    Effect.gen(function*() {
      const many = Array.from({ length: 100_000 }, (_, at) => `"c${at}":1`).join()
      const server = ScriptedServer.make(handshakeOf("2026-07-28", () => {}, `{"tools":1,"logging":{},${many}}`))
      const client = yield* Client.make(server.transport)
      const [, took] = yield* withCpuTime(Effect.sync(() => {
        for (let at = 0; at < 20; at++) assert.isDefined(client.capabilities.logging)
      }))
      assert.isBelow(took, 5_000)
    }).pipe(Effect.scoped))
})

describe("thousands of notifications", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.live(`${revision} · use bounded memory and delay no calls, with a slow listener or without one`, () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(
          ScriptedServer.handshake(
            revision,
            ({ id }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
              sendText(result(id, complete("\"content\":[]")))
          )
        )
        const client = yield* Client.make(server.transport)
        const call = client.callTool("t", {}, { onProgress: () => {} })
        yield* call
        const note = (at: number) => [
          `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"${
            "x".repeat(1_000)
          }${at}"}}`,
          `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
          `{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a:${at}"}}`,
          `{"jsonrpc":"2.0","method":"notifications/unknown${at}","params":{}}`,
          `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${at},"progress":${at}}}`
        ]
        const flood = Effect.forEach(Array.from({ length: 20 }, (_, at) => at), (at) =>
          Effect.andThen(
            Effect.sync(() => {
              for (let n = 0; n < 500; n++) for (const text of note(500 * at + n)) server.sendText(text)
            }),
            Effect.yieldNow
          ), { discard: true })
        for (const listening of [false, true]) {
          if (listening) {
            yield* Effect.forkScoped(Stream.runForEach(client.notifications, () => Effect.never), {
              startImmediately: true
            })
            yield* Effect.forkScoped(Stream.runForEach(client.logs, () => Effect.never), { startImmediately: true })
            yield* Effect.forkScoped(
              Effect.ignore(Stream.runForEach(client.changes({ tools: true, uris: ["a:1"] }), () => Effect.never)),
              { startImmediately: true }
            )
          }
          yield* flood
          yield* settle
          globalThis.gc!()
          const before = process.memoryUsage().heapUsed
          const [, took] = yield* withCpuTime(flood)
          yield* call
          yield* settle
          globalThis.gc!()
          assert.isBelow(process.memoryUsage().heapUsed - before, 24 * 1024 * 1024)
          assert.isBelow(took, 5_000)
        }
      }).pipe(Effect.scoped))
  }

  it.effect("2025-11-25 · endless progress does not extend a call beyond maxTimeout", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
      const client = yield* Client.make(server.transport, { revisions: ["2025-11-25"] })

      const call = yield* Effect.forkScoped(
        Effect.flip(client.callTool("t", {}, { timeout: 1_000, maxTimeout: 10_000, onProgress: () => {} })),
        { startImmediately: true }
      )
      for (let at = 1; at < 100 && call.pollUnsafe() === undefined; at++) {
        server.sendText(
          `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${
            server.requests("tools/call")[0]!.id
          },"progress":${at}}}`
        )
        yield* Effect.promise(() => Promise.resolve())
        yield* TestClock.adjust(500)
      }
      assert.strictEqual((yield* Fiber.join(call)).reason._tag, "Timeout")
    }).pipe(Effect.scoped))
})

for (const [wire, transport] of [["fetch", Http.transport], ["node:http", NodeHttp.transport]] as const) {
  describe(`${wire} · secrets`, () => {
    const secret = "hunter2-do-not-tell"

    it.live("appear in no error, log, status or serverProfile, for any behaviour of the server", () =>
      Effect.gen(function*() {
        const lines: Array<string> = []
        const logger = Logger.make(({ cause, message }) => void lines.push(inspect([message, cause], { depth: 12 })))
        const observed: Array<ClientError | unknown> = []
        const ways: ReadonlyArray<(hit: Exchange) => void> = [
          (hit) => hit.respond(500),
          (hit) => hit.respond(401, "", { "www-authenticate": "Bearer" }),
          (hit) => hit.respond(403),
          (hit) => hit.cut(),
          (hit) => hit.respond(307, "", { location: "http://127.0.0.1:1/" }),
          (hit) => hit.respond(200, "<html>", { "content-type": "text/html" }),
          (hit) => hit.respond(200, "{", { "content-type": "application/json" }),
          (hit) => hit.openStream("data: x\n\n").cut(),
          (hit) => hit.respond(404),
          ScriptedHttpServer.session<Json>((hit) => hit.cut())
        ]
        let way = ways[0]!
        const server = yield* ScriptedHttpServer.make<Json>((hit) => way(hit))
        for (way of ways) {
          yield* Effect.gen(function*() {
            const client = yield* Client.make(
              withBounds(
                transport({
                  url: server.url,
                  headers: { Authorization: `Bearer ${secret}`, "X-Key": secret },
                  shutdownTimeout: 0
                }),
                { endpointTimeout: 200 }
              ),
              { reconnect: { maxAttempts: 1, initialDelay: 1 }, enforceCapabilities: false }
            )
            observed.push(client.serverProfile, JSON.stringify(client.serverProfile))
            observed.push(yield* Effect.flip(client.callTool("t", {}, { timeout: 500 })))
          }).pipe(
            Effect.scoped,
            Effect.catch((error) => Effect.sync(() => void observed.push(error))),
            Effect.provide(Logger.layer([logger])),
            Effect.provideService(References.MinimumLogLevel, "All")
          )
        }
        assert.isAtLeast(observed.length, ways.length)
        assert.isTrue(server.exchanges.every(({ headers }) => headers.authorization === `Bearer ${secret}`))
        for (const each of [...observed.map((one) => inspect(one, { depth: 12 })), ...lines]) {
          assert.notInclude(each, secret)
        }
      }))

    it.live("headers that cannot be sent fail with an error that does not contain them", () =>
      Effect.gen(function*() {
        for (const value of [`${secret}\r\nX-Evil: 1`, `${secret}\u0000`, `${secret}€`]) {
          for (const headers of [{ Authorization: value }, Effect.succeed({ Authorization: value })]) {
            const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respond(500))
            const error = yield* Effect.flip(
              Effect.scoped(Client.make(transport({ url: server.url, headers, shutdownTimeout: 0 })))
            )
            assert.notInclude(inspect(error, { depth: 12 }), secret)
            assert.strictEqual(server.exchanges.length, 0)
          }
        }
        const dies = transport({ url: "http://127.0.0.1:1/", headers: Effect.die(new Error(secret)) })
        assert.notInclude((yield* Effect.flip(Effect.scoped(Client.make(dies)))).message, secret)
      }).pipe(Effect.scoped))

    it.live("leaves no socket and no timer that keeps the process alive after a hostile server", () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make(
          ScriptedHttpServer.session<Json>((hit) => void hit.openStream(":\n\n"), {
            standaloneStream: (hit) => void hit.openStream(":\n\n")
          })
        )
        const left = () =>
          process.getActiveResourcesInfo().filter((name) => /^(TCPSocketWrap|Timeout)$/.test(name)).length
        const life = Effect.scoped(Effect.gen(function*() {
          const client = yield* Client.make(transport({ url: server.url, shutdownTimeout: 0 }), {
            revisions: ["2025-11-25"],
            enforceCapabilities: false
          })
          const call = Effect.flip(client.callTool("t", {}, { timeout: 50 }))
          yield* Effect.all([call, call, call, call], { concurrency: 4 })
          yield* Effect.forkScoped(client.callTool("t"), { startImmediately: true })
        }))
        yield* life
        yield* life
        yield* settle
        const before = left()
        for (let at = 0; at < 8; at++) yield* life
        yield* until(() => server.exchanges.every(({ closedByClient, method }) => closedByClient || method !== "GET"))
        yield* until(() => left() <= before + 3)
      }).pipe(Effect.scoped))
  })
}
