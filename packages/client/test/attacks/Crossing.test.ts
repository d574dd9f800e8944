/**
 * Responses, notifications and requests under another message's id or token: none reaches the wrong caller, and none
 * gets two responses.
 */
import { assert, describe, it } from "@effect/vitest"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import * as Client from "../../src/Client.ts"
import * as Elicitation from "../../src/Elicitation.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { connect, Host } from "../input/kit.ts"
import { answer, type Exchange, settle, until } from "../http/support/connection.ts"
import { type Json, result } from "./kit.ts"
import { withBounds } from "../http/support/changedBounds.ts"

const text = (text: string) => ({ content: [{ type: "text" as const, text }] })
const revisions = ["2025-11-25"] as const

describe("misaddressed responses on one connection", () => {
  for (const revision of ["2025-11-25", "2026-07-28"] as const) {
    it.live(`${revision} · ignores responses with a malformed id, an unknown id, or the id of a cancelled request`, () =>
      Effect.gen(function*() {
        const server = ScriptedServer.make(ScriptedServer.handshake(revision, () => "no response"))
        const client = yield* Client.make(server.transport)
        const one = yield* Effect.forkScoped(client.callTool("one"), { startImmediately: true })
        const two = yield* Effect.forkScoped(client.callTool("two"), { startImmediately: true })
        const [first, second] = server.requests("tools/call").map(({ id }) => id) as [number, number]
        yield* Fiber.interrupt(two)
        const evil = JSON.stringify({ resultType: "complete", ...text("evil") })
        for (
          const id of [`0${first}`, ` ${first}`, `${first}.0`, -first, 0, 999, "", "__proto__", "constructor", second]
        ) {
          server.sendText(result(id, evil))
          server.sendText(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-1,"message":"evil"}}`)
        }
        for (const id of ["null", "[1]", "{}", "true", "1.5", "1e400", `[${first}]`, `{"toString":${first}}`]) {
          server.sendText(`{"jsonrpc":"2.0","id":${id},"result":${evil}}`)
        }
        yield* settle
        assert.isUndefined(one.pollUnsafe())
        server.sendText(result(first, JSON.stringify({ resultType: "complete", ...text("good") })))
        server.sendText(result(first, evil))
        assert.deepEqual((yield* Fiber.join(one)).content, text("good").content)
        assert.strictEqual(server.notifications("notifications/cancelled").length, 1)
        // The client sent no response to any of them.
        assert.deepEqual(server.responses, [])
      }).pipe(Effect.scoped))

    it.live(`${revision} · ignores progress with an unknown or malformed token`, () =>
      Effect.gen(function*() {
        const seen: Array<number> = []
        const server = ScriptedServer.make(ScriptedServer.handshake(revision, () => "no response"))
        const client = yield* Client.make(server.transport)
        const onProgress = ({ progress }: { readonly progress: number }) => void seen.push(progress)
        const one = yield* Effect.forkScoped(client.callTool("one", {}, { onProgress }), { startImmediately: true })
        yield* Effect.forkScoped(client.callTool("two"), { startImmediately: true })
        const [{ id: first, params }, { id: second }] = server.requests("tools/call") as [Json, Json]
        const token = params._meta.progressToken
        const say = (token: string, progress: string) =>
          server.sendText(
            `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${token},"progress":${progress}}}`
          )
        for (
          const other of [`"${token}.0"`, `"0${token}"`, String(second), "null", "[]", "{}", "\"__proto__\"", "999"]
        ) say(other, "1")
        for (const progress of ["1e999", "-1e999", "\"2\"", "null", "{}"]) say(String(token), progress)
        say(String(token), "5")
        say(String(token), "5")
        say(String(token), "4")
        server.sendText(result(first, JSON.stringify({ resultType: "complete", ...text("good") })))
        yield* Fiber.join(one)
        say(String(token), "6")
        yield* settle
        assert.deepEqual(seen, [5])
      }).pipe(Effect.scoped))
  }

  it.live("2026-07-28 · ignores a notification with an unknown subscription id, or with that of another subscription", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2026-07-28", () => "no response"))
      const client = yield* Client.make(server.transport)
      const seen: Array<string> = []
      yield* Effect.forkScoped(
        Stream.runForEach(client.changes({ tools: true }), ({ _tag }) => Effect.sync(() => void seen.push(_tag))),
        { startImmediately: true }
      )
      yield* until(() => server.requests("subscriptions/listen").length === 1)
      const id = server.requests("subscriptions/listen")[0]!.id as number
      const say = (method: string, subscription: string, more = "") =>
        server.sendText(
          `{"jsonrpc":"2.0","method":"notifications/${method}","params":{${more}"_meta":{"io.modelcontextprotocol/subscriptionId":${subscription}}}}`
        )
      const agreed = "\"notifications\":{\"toolsListChanged\":true},"
      for (const other of [`"0${id}"`, "0", "999", "null", "{}", "\"__proto__\""]) {
        say("subscriptions/acknowledged", other, agreed)
        say("tools/list_changed", other)
      }
      // Not before the acknowledgment.
      say("tools/list_changed", String(id))
      yield* settle
      assert.deepEqual(seen, [])
      say("subscriptions/acknowledged", String(id), agreed)
      say("tools/list_changed", String(id + 1))
      say("tools/list_changed", String(id))
      yield* until(() => seen.length === 2)
      yield* settle
      assert.deepEqual(seen, ["Subscribed", "ToolListChanged"])
    }).pipe(Effect.scoped))

  it.live("2025-11-25 · elicitation/complete with another id does not resume a call", () =>
    Effect.gen(function*() {
      const data = { elicitations: [{ mode: "url", url: "https://example.com/", message: "m", elicitationId: "mine" }] }
      const server = ScriptedServer.make(
        ScriptedServer.handshake("2025-11-25", ({ id }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
          sendText(JSON.stringify({ jsonrpc: "2.0", id, error: { code: -32042, message: "visit", data } })))
      )
      const client = yield* connect(server.transport, new Host().layer, { revisions })
      const call = yield* Effect.forkScoped(Effect.result(client.callTool("t")), { startImmediately: true })
      yield* settle
      for (const id of ["\"other\"", "null", "[\"mine\"]", "{}", "\"__proto__\"", "1"]) {
        server.sendText(
          `{"jsonrpc":"2.0","method":"notifications/elicitation/complete","params":{"elicitationId":${id}}}`
        )
      }
      yield* settle
      assert.isUndefined(call.pollUnsafe())
      assert.strictEqual(server.requests("tools/call").length, 1)
      server.sendText(
        "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/elicitation/complete\",\"params\":{\"elicitationId\":\"mine\"}}"
      )
      // The call is retried once and refused again. Then it fails.
      yield* until(() =>
        server.requests("tools/call").length >= 2
      )
      yield* settle
      assert.isAtMost(server.requests("tools/call").length, 2)
    }).pipe(Effect.scoped))
})

describe("misaddressed requests from the server", () => {
  const ask = (id: string, method = "elicitation/create") =>
    `{"jsonrpc":"2.0","id":${id},"method":"${method}","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}`

  it.live("2026-07-28 · MUST NOT write requests: runs no handler for them, and sends no response", () =>
    Effect.gen(function*() {
      const host = new Host()
      const server = ScriptedServer.make(
        ScriptedServer.handshake(
          "2026-07-28",
          ({ id }: Json, { sendText }: ScriptedServer.ScriptedServer) =>
            sendText(result(id, JSON.stringify({ resultType: "complete", ...text("x") })))
        )
      )
      const client = yield* connect(server.transport, host.layer)
      for (
        const method of [
          "elicitation/create",
          "sampling/createMessage",
          "roots/list",
          "ping",
          "initialize",
          "tools/list"
        ]
      ) {
        server.sendText(ask("\"q\"", method))
        server.sendText(`[${ask("\"b\"", method)}]`)
      }
      yield* client.callTool("t")
      assert.deepEqual(host.seen, [])
      assert.deepEqual(server.responses, [])
    }).pipe(Effect.scoped))

  it.live("2025-11-25 · responds once to each request with any id, and refuses a duplicate id while the first is pending", () =>
    Effect.gen(function*() {
      const host = new Host()
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
      yield* connect(server.transport, host.layer, { revisions })
      const ids = [
        "1",
        "\"1\"",
        "0",
        "-1",
        "9007199254740991",
        "\"\"",
        "\"__proto__\"",
        JSON.stringify("x".repeat(100_000))
      ]
      for (const id of ids) server.sendText(ask(id))
      yield* until(() => server.responses.filter(({ _tag }) => _tag === "Success").length === ids.length)
      for (const id of ["9007199254740993", "1.5", "null", "[]", "{}", "true", "1e400"]) server.sendText(ask(id))
      yield* settle
      const answered = server.responses
      assert.strictEqual(answered.filter(({ _tag }) => _tag === "Success").length, ids.length)
      assert.strictEqual(host.seen.length, ids.length)
    }).pipe(Effect.scoped))

  it.live("2025-11-25 · bounds the concurrent handlers of thousands of requests, and responds once to each", () =>
    Effect.gen(function*() {
      const host = new Host()
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))
      yield* connect(server.transport, host.layer, {
        revisions,
        limits: { maxInFlightRequests: 8, maxQueuedRequests: 8 }
      })
      for (let at = 0; at < 5_000; at++) {
        server.sendText(ask(String(at), at % 2 === 0 ? "elicitation/create" : "sampling/createMessage"))
      }
      yield* until(() => server.responses.length === 5_000)
      yield* settle
      const ids = server.responses.map(({ id }) => id)
      assert.strictEqual(new Set(ids).size, 5_000)
      assert.strictEqual(ids.length, 5_000)
    }).pipe(Effect.scoped))

  it.live("2025-11-25 · interrupts the handler of a cancelled request, and sends no response", () =>
    Effect.gen(function*() {
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response"))

      let asked = 0
      let left = 0
      const slow = Elicitation.layer({
        form: () =>
          Effect.onInterrupt(
            Effect.suspend(() => {
              asked++
              return Effect.never
            }),
            () => Effect.sync(() => void left++)
          )
      })
      yield* connect(server.transport, slow, { revisions })
      for (let at = 0; at < 100; at++) {
        server.sendText(ask(`"c${at}"`))
        server.sendText(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c${at}"}}`)
        server.sendText(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c${at}"}}`)
      }
      yield* until(() => asked === left && asked > 0)
      yield* settle
      assert.deepEqual(server.responses.filter(({ id }) => String(id).startsWith("c")), [])
    }).pipe(Effect.scoped))

  it.live("2025-11-25 · responds at most once to requests that arrive before the initialize response", () =>
    Effect.gen(function*() {
      const host = new Host()
      const shake = ScriptedServer.handshake("2025-11-25", () => "no response")
      const server = ScriptedServer.make((message, server) => {
        if (message.method === "initialize") {
          for (const method of ["elicitation/create", "sampling/createMessage", "roots/list", "ping", "x"]) {
            server.sendText(ask(`"${method}"`, method))
          }
          server.sendText("[]")
          server.sendText("null")
        }
        return shake(message, server)
      })
      const client = yield* connect(server.transport, host.layer, { revisions })
      yield* client.ping()
      const answers = server.responses
      assert.strictEqual(new Set(answers.map(({ id }) => id)).size, answers.length)
    }).pipe(Effect.scoped))
})

for (const [wire, transport] of [["fetch", Http.transport], ["node:http", NodeHttp.transport]] as const) {
  describe(`${wire} · responses on the stream of another request`, () => {
    it.live("2025-11-25 · ignores responses on another request's stream, repeated ones, and those on the server's own stream", () =>
      Effect.gen(function*() {
        const waiting: Array<Exchange> = []
        let own: Exchange | undefined
        const server = yield* ScriptedHttpServer.make(
          ScriptedHttpServer.session<Json>((hit) => void waiting.push(hit.openStream()), {
            standaloneStream: (hit) => void (own = hit.openStream())
          })
        )
        const client = yield* Client.make(transport({ url: server.url, shutdownTimeout: 0 }), {
          revisions,
          enforceCapabilities: false
        })
        yield* until(() => own !== undefined)
        const one = yield* Effect.forkScoped(client.callTool("one"), { startImmediately: true })
        const two = yield* Effect.forkScoped(client.callTool("two"), { startImmediately: true })
        yield* until(() => waiting.length === 2)
        const [first, second] = waiting.sort((a, b) => a.json.id - b.json.id) as [Exchange, Exchange]
        first.write(ScriptedHttpServer.event(answer(second.json.id, text("evil"))))
        first.write(
          ScriptedHttpServer.event({ jsonrpc: "2.0", id: second.json.id, error: { code: 1, message: "evil" } })
        )
        yield* settle
        assert.isUndefined(two.pollUnsafe())
        first.write(
          ScriptedHttpServer.event(answer(first.json.id, text("one"))) +
            ScriptedHttpServer.event(answer(first.json.id, text("again")))
        )
        second.write(ScriptedHttpServer.event(answer(second.json.id, text("two"))))
        own!.write(
          ScriptedHttpServer.event(answer(first.json.id, text("late"))) +
            ScriptedHttpServer.event(answer(second.json.id, text("late")))
        )
        assert.deepEqual((yield* Fiber.join(one)).content, text("one").content)
        assert.deepEqual((yield* Fiber.join(two)).content, text("two").content)
      }).pipe(Effect.scoped))

    it.live("2025-11-25 · ignores a session id that changes later, or that is malformed", () =>
      Effect.gen(function*() {
        let at = 0
        const ids = ["s-2", "a b", "", "x".repeat(8_000)]
        const server = yield* ScriptedHttpServer.make(
          ScriptedHttpServer.session<Json>((hit) =>
            hit.respondResult(text("x"), { "mcp-session-id": ids[at++ % ids.length]! })
          )
        )
        const client = yield* Client.make(transport({ url: server.url, shutdownTimeout: 0 }), {
          revisions,
          enforceCapabilities: false
        })
        for (let n = 0; n < 8; n++) yield* client.callTool("t")
        for (const hit of server.exchanges.slice(1)) assert.strictEqual(hit.headers["mcp-session-id"], "s-1")
      }).pipe(Effect.scoped))

    for (const id of ["a\u0001b", "é", "\t", "x".repeat(5_000), "x".repeat(1_000_000)]) {
      it.live(`2025-11-25 · the session id ${JSON.stringify(id.slice(0, 4))} (${id.length}) fails with a typed error`, () =>
        Effect.gen(function*() {
          const server = yield* ScriptedHttpServer.make<Json>((hit) => {
            const body = JSON.stringify(
              answer(hit.json?.id, {
                protocolVersion: "2025-11-25",
                capabilities: {},
                serverInfo: { name: "x", version: "1" }
              })
            )
            hit.response.socket!.write(
              `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMCP-Session-Id: ${id}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
            )
          })
          const error = yield* Effect.flip(Effect.scoped(
            Client.make(transport({ url: server.url, shutdownTimeout: 0 }), { revisions })
          ))
          assert.include(["HttpError", "Closed"], error.reason._tag)
          assert.isBelow(error.message.length, 1_000)
        }))
    }

    it.live("2025-11-25 · bounds the connections to a server that completes initialize and forgets the session at once", () =>
      Effect.gen(function*() {
        let sessions = 0
        const server = yield* ScriptedHttpServer.make<Json>((hit) => {
          if (hit.method !== "POST") return hit.respond(404)
          if (hit.json.method === "initialize") {
            sessions++
            return hit.respondResult({
              protocolVersion: "2025-11-25",
              capabilities: {},
              serverInfo: { name: "x", version: "1" }
            }, { "mcp-session-id": `s${sessions}` })
          }
          hit.respond(404)
        })
        const client = yield* Client.make(transport({ url: server.url, shutdownTimeout: 0 }), {
          revisions,
          enforceCapabilities: false,
          reconnect: { initialDelay: 1, maxDelay: 2, maxAttempts: 5 }
        })
        const results = yield* Effect.forEach(
          Array.from({ length: 20 }),
          () => Effect.flip(client.callTool("t", {}, { timeout: 2_000 })),
          { concurrency: "unbounded" }
        )
        for (const { reason } of results) assert.include(["Closed", "HttpError", "Timeout"], reason._tag)
        assert.strictEqual((yield* client.ended)._tag, "Lost")
        assert.isAtMost(sessions, 6)
        assert.isBelow(server.exchanges.length, 400)
      }).pipe(Effect.scoped))

    for (const retry of ["0", "1000000000000000", "-1", "1e3", "999999999999999999999", "1.5", ""]) {
      it.live(`2025-11-25 · retry: ${retry} bounds the attempts and ends within the timeout of the call`, () =>
        Effect.gen(function*() {
          const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) =>
            hit.method === "GET"
              ? hit.openStream("id: 2\ndata:\n\n").end()
              : hit.openStream(`id: 1\nretry: ${retry}\ndata:\n\n`).end()
          ))
          const client = yield* Client.make(
            withBounds(
              transport({ url: server.url, shutdownTimeout: 0, resumption: { initialDelay: 10, maxDelay: 20 } }),
              { maxReconnects: 50 }
            ),
            { revisions, enforceCapabilities: false, limits: { maxRetries: 0 } }
          )
          const error = yield* Effect.flip(client.callTool("t", {}, { timeout: 200 }))
          assert.include(["Closed", "Timeout"], error.reason._tag)
          assert.isAtMost(server.byMethod("GET").length, 52)
        }).pipe(Effect.scoped))
    }
  })
}
