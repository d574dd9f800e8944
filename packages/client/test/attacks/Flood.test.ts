/** An HTTP server that sends without end, or never accepts requests. The cost is bounded. */
import { assert, describe, it } from "@effect/vitest"
import type { Transport } from "@skein/runtime/Connection"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { gzipSync } from "node:zlib"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { type Exchange, type Json, until } from "../http/support/connection.ts"
import { withBounds } from "../http/support/changedBounds.ts"

const wires: ReadonlyArray<readonly [string, (options: Http.Options) => Transport]> = [
  ["fetch", Http.transport],
  ["node:http", NodeHttp.transport]
]

const mib = 1024 * 1024
const revisions = ["2025-11-25"] as const
const repeated = (text: string, bytes: number) => text.repeat(Math.ceil(bytes / text.length))

/** Writes a text repeatedly for as long as the client reads, and returns the number of written bytes. */
const pour = (hit: Exchange, text: string) => {
  const poured = { bytes: 0, over: false }
  hit.response.once("close", () => {
    poured.over = true
  })
  const go = (): void => {
    while (!poured.over) {
      poured.bytes += text.length
      if (!hit.response.write(text)) return void hit.response.once("drain", go)
    }
  }
  go()
  return poured
}

for (const [wire, transport] of wires) {
  describe(`${wire} · floods`, () => {
    const called = (answer: (hit: Exchange) => void) =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make(
          ScriptedHttpServer.session<Json>(answer, { standaloneStream: (hit) => hit.respond(405) })
        )
        const client = yield* Client.make(transport({ url: server.url, shutdownTimeout: 0, maxMessageBytes: mib }), {
          revisions,
          enforceCapabilities: false,
          validateOutput: false,
          limits: { maxRetries: 0 }
        })
        return { server, client }
      })

    const endless: ReadonlyArray<readonly [string, string, string]> = [
      ["a body", "application/json", repeated(" ", 65_536)],
      ["an event", "text/event-stream", repeated("data: x\n", 65_536)],
      ["a line", "text/event-stream", repeated("x", 65_536)],
      ["id lines", "text/event-stream", repeated("id: 1\n", 65_536)],
      ["retry lines", "text/event-stream", repeated("retry: 1\n", 65_536)],
      ["lines with unknown fields", "text/event-stream", repeated("\u0000: 1\r", 65_536)],
      ["a comment", "text/event-stream", ":" + repeated("x", 65_536)],
      ["a body that is not JSON", "text/html", repeated("<p>", 65_536)]
    ]
    for (const [what, type, text] of endless) {
      it.live(`${what} without end fails its call at maxMessageBytes`, () =>
        Effect.gen(function*() {
          let poured = { bytes: 0, over: false }
          const { client } = yield* called((hit) => {
            hit.response.writeHead(200, { "content-type": type })
            poured = pour(hit, text)
          })
          const error = yield* Effect.flip(client.callTool("t"))
          assert.include(["Closed", "HttpError"], error.reason._tag)
          yield* until(() => poured.over)
          assert.isBelow(poured.bytes, 8 * mib)
        }).pipe(Effect.scoped))
    }

    for (
      const [what, text] of [
        ["comments", ":\n\n"],
        ["events without data", "event: x\nid: 1\n\n"],
        ["empty lines", "\n\n\n"],
        ["events that are not messages", "data: {}\n\n"],
        ["notifications with unknown methods", "data: {\"jsonrpc\":\"2.0\",\"method\":\"a\"}\n\n"],
        [
          "progress with an unknown token",
          "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":99,\"progress\":1}}\n\n"
        ],
        ["responses with an unknown id", "data: {\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":{}}\n\n"]
      ] as const
    ) {
      it.live(`${what} without end: ends the call at its timeout, with bounded memory`, () =>
        Effect.gen(function*() {
          let poured = { bytes: 0, over: false }
          const { client } = yield* called((hit) => {
            if (hit.json.id === undefined) return hit.respond(202)
            poured = pour(hit.openStream(), repeated(text, 65_536))
          })
          globalThis.gc!()
          const before = process.memoryUsage().heapUsed
          const error = yield* Effect.flip(client.callTool("t", {}, { timeout: 500 }))
          assert.strictEqual(error.reason._tag, "Timeout")
          globalThis.gc!()
          assert.isBelow(process.memoryUsage().heapUsed - before, 32 * mib)
          yield* until(() => poured.over)
        }).pipe(Effect.scoped))
    }

    it.live("fails the call for a gzip bomb", () =>
      Effect.gen(function*() {
        const bomb = gzipSync(Buffer.alloc(64 * mib, 0x20))
        const { client } = yield* called((hit) =>
          hit.response.writeHead(200, {
            "content-type": "application/json",
            "content-encoding": "gzip",
            "content-length": String(bomb.length)
          }).end(bomb)
        )
        const before = process.memoryUsage().rss
        const error = yield* Effect.flip(client.callTool("t"))
        assert.strictEqual(error.reason._tag, "Closed")
        assert.isBelow(process.memoryUsage().rss - before, 48 * mib)
      }).pipe(Effect.scoped))

    it.live("reads a body that arrives one byte at a time", () =>
      Effect.gen(function*() {
        const { client } = yield* called((hit) => {
          const text = JSON.stringify({
            jsonrpc: "2.0",
            id: hit.json.id,
            result: { content: [{ type: "text", text: "é€😀" }] }
          })
          const bytes = Buffer.from(text)
          hit.response.writeHead(200, { "content-type": "application/json" })
          hit.response.socket!.setNoDelay(true)
          let at = 0
          const next = (): void => {
            if (at === bytes.length) return void hit.response.end()
            hit.response.write(bytes.subarray(at, ++at), () => setImmediate(next))
          }
          next()
        })
        const { content } = yield* client.callTool("t")
        assert.deepEqual(content, [{ type: "text", text: "é€😀" }])
      }).pipe(Effect.scoped))

    it.live("closes the connection for endless pings whose responses are never accepted, and bounds the pending responses", () =>
      Effect.gen(function*() {
        let id = 0
        let over = false
        const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>(() => {}, {
          standaloneStream: (hit) => {
            hit.openStream()
            const burst = () =>
              Array.from({ length: 500 }, () => `data: {"jsonrpc":"2.0","id":${++id},"method":"ping"}\n\n`).join("")
            hit.response.once("close", () => {
              over = true
            })
            const go = (): void => {
              if (over || id > 100_000) return
              hit.response.write(burst())
              setImmediate(go)
            }
            go()
          }
        }))
        const client = yield* Client.make(transport({ url: server.url, shutdownTimeout: 0 }), {
          revisions,
          reconnect: false
        })
        const end = yield* Effect.timeout(client.ended, 60_000)
        assert.strictEqual(end._tag, "Lost")
        assert.isBelow(id, 100_000)
        assert.isAtMost(server.byMethod("POST").length, 1_024 + 2)
      }).pipe(Effect.scoped))
  })
}

describe("2024-11-05 · a server that never responds to a POST", () => {
  it.live("ends the HTTP exchange of a cancelled request", () =>
    Effect.gen(function*() {
      let left = 0
      let cancelled = 0
      let stream: Exchange | undefined
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (hit.method === "GET") return void (stream = hit.openStream("event: endpoint\ndata: /messages\n\n"))
        if (hit.path === "/mcp") return hit.respond(405)
        if (hit.json.method === "initialize") {
          hit.respond(202)
          const result = { protocolVersion: "2024-11-05", capabilities: {}, serverInfo: { name: "x", version: "1" } }
          return void stream!.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id: hit.json.id, result })}\n\n`)
        }
        if (hit.json.method === "notifications/cancelled") cancelled++
        if (hit.json.id === undefined) return hit.respond(202)
        hit.response.once("close", () => left++)
      })
      const client = yield* Client.make(Http.transport({ url: server.url, shutdownTimeout: 50 }), {
        revisions: ["2024-11-05"],
        enforceCapabilities: false
      })
      const calls = yield* Effect.forEach(Array.from({ length: 10 }), () =>
        Effect.forkScoped(Effect.flip(client.callTool("t", {}, { timeout: 1_000 })), { startImmediately: true }))
      const errors = yield* Effect.forEach(calls, Fiber.join)
      assert.isTrue(errors.every(({ reason }) =>
        reason._tag === "Timeout"
      ))
      yield* until(() => left === 10 && cancelled === 10)
    }).pipe(Effect.scoped))

  it.live("closes the connection at maxUndeliveredMessages when the server pings without end and accepts nothing", () =>
    Effect.gen(function*() {
      let id = 0
      let over = false
      let stream: Exchange | undefined
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (hit.method === "GET") {
          stream = hit.openStream("event: endpoint\ndata: /messages\n\n")
          return void hit.response.once("close", () => {
            over = true
          })
        }
        if (hit.path === "/mcp") return hit.respond(405)
        if (hit.json.method !== "initialize") return
        hit.respond(202)
        const result = { protocolVersion: "2024-11-05", capabilities: {}, serverInfo: { name: "x", version: "1" } }
        stream!.write(`data: ${JSON.stringify({ jsonrpc: "2.0", id: hit.json.id, result })}\n\n`)
        const go = (): void => {
          if (over || id > 20_000) return
          let more = ""
          for (let n = 0; n < 100; n++) more += `data: {"jsonrpc":"2.0","id":${++id},"method":"ping"}\n\n`
          stream!.write(more)
          setImmediate(go)
        }
        setImmediate(go)
      })
      const client = yield* Client.make(
        withBounds(Http.transport({ url: server.url, shutdownTimeout: 0 }), { maxUndeliveredMessages: 50 }),
        {
          revisions: ["2024-11-05"],
          reconnect: false
        }
      )
      const end = yield* Effect.timeout(client.ended, 60_000)
      assert.include(end._tag === "Lost" ? end.cause.message : "", "has not accepted 50 messages")
      // Messages that waited for `notifications/initialized` to be accepted count too, and were never sent.
      assert.isBelow(server.byMethod("POST").length, 60)
    }).pipe(Effect.scoped))
})

describe("2025-03-26 · batches", () => {
  it.live("gives each call one result for batches of repeated and unknown responses, requests and malformed messages", () =>
    Effect.gen(function*() {
      const questions = Array.from({ length: 90 }, (_, at) => ({ jsonrpc: "2.0", id: at % 3, method: "ping" }))
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => {
        if (hit.json.method !== "tools/call") return hit.respond(202)
        const answer = (text: string) => ({
          jsonrpc: "2.0",
          id: hit.json.id,
          result: { content: [{ type: "text", text }] }
        })
        hit.respondJson([
          null,
          [],
          1,
          { jsonrpc: "2.0", id: "1", result: {} },
          answer("first"),
          answer("second"),
          ...questions
        ])
      }, { revision: "2025-03-26" }))
      const client = yield* Client.make(Http.transport({ url: server.url, shutdownTimeout: 0 }), {
        revisions: ["2025-03-26"],
        enforceCapabilities: false
      })
      for (let at = 0; at < 5; at++) {
        const { content } = yield* client.callTool("t")
        assert.deepEqual(content, [{ type: "text", text: "first" }])
      }
    }).pipe(Effect.scoped))
})
