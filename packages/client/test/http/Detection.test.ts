/** Detection of a server's revision and transport over HTTP, against servers that behave like existing ones. */
import { assert, describe, it } from "@effect/vitest"
import type * as Revision from "@skein/protocol/Revision"
import type { Transport } from "@skein/runtime/Connection"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpServer from "@skein/server/McpServer"
import * as ServerHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as RawServer from "@skein/testing/RawServer"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import type { ClientError } from "../../src/ClientError.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { patient } from "./support/patient.ts"
import { type Exchange, type Json, settle, until } from "./support/connection.ts"
import * as Servers from "./support/servers.ts"
import { fieldsOf } from "../support/fields.ts"

const { asked } = Servers

const discover = "POST server/discover"
const initialize = "POST initialize"

const transports: ReadonlyArray<readonly [string, (url: string | URL) => Transport]> = [
  ["node:http", (url) => NodeHttp.transport({ url })],
  ["fetch", (url) => Http.transport({ url })]
]
const [[, transport]] = transports as [typeof transports[0]]

const failure = (url: URL, options?: Client.Options): Effect.Effect<ClientError, unknown> =>
  Effect.scoped(Effect.flip(Client.make(transport!(url), options))) as Effect.Effect<ClientError, unknown>

/** Opens a client, makes a call, and returns the client with its revision and httpMode. */
const used = (transport: Transport, options?: Client.Options) =>
  Effect.gen(function*() {
    const client = yield* Client.make(transport, options)
    const { content } = yield* client.callTool("echo", { text: "echo" })
    assert.deepInclude(content[0], { type: "text", text: "echo" })
    return { client, revision: client.revision, variant: client.serverProfile?.httpMode }
  })

for (const [wire, over] of transports) {
  describe(`detection over ${wire}`, () => {
    it.live("2026-07-28 · uses the stateless revision after a DiscoverResult", () =>
      Effect.gen(function*() {
        const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.modern)
        const { revision, variant } = yield* used(over(url))
        assert.deepStrictEqual([revision, variant], ["2026-07-28", "streamable"])
        assert.deepStrictEqual(asked(exchanges), [discover, "POST tools/call"])
      }))

    for (
      const [name, script, revision] of [
        ["the SDK v1 with sessions: 400 with -32000", Servers.stateful, "2025-06-18"],
        ["the SDK v1 without sessions: 200 with -32601", Servers.stateless(false), "2025-11-25"],
        [
          "the SDK v1 without sessions and with a version check: 400 with -32000",
          Servers.stateless(true),
          "2025-11-25"
        ]
      ] as const
    ) {
      it.live(`2026-07-28 · anything but a recognized modern error: fall back to \`initialize\` · ${name}`, () =>
        Effect.gen(function*() {
          const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(script)
          assert.deepInclude(yield* used(over(url)), { revision, variant: "streamable" })
          assert.deepStrictEqual(asked(exchanges).filter((what) => what.startsWith("POST")), [
            discover,
            initialize,
            "POST notifications/initialized",
            "POST tools/call"
          ])
        }))
    }

    for (const status of [400, 404, 405] as const) {
      it.live(`2025-11-25 · \`initialize\` fails with ${status}: sends GET, waits for \`endpoint\`, and uses the old HTTP+SSE transport for all later requests`, () =>
        Effect.gen(function*() {
          const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.sseOnly(status))
          assert.deepInclude(yield* used(over(url)), { revision: "2024-11-05", variant: "sse" })
          assert.deepStrictEqual(asked(exchanges), [
            discover,
            initialize,
            "GET",
            initialize,
            "POST notifications/initialized",
            "POST tools/call"
          ])
          assert.deepStrictEqual(exchanges.slice(3).map(({ path }) => path), Array(3).fill("/messages?sessionId=1"))
        }))
    }

    for (
      const [revisions, expected] of [
        [undefined, "2026-07-28"],
        [["2026-07-28"], "2026-07-28"],
        [["2025-11-25"], "2025-11-25"],
        [["2025-06-18", "2025-11-25"], "2025-11-25"],
        [["2025-03-26"], "2025-03-26"],
        [["2024-11-05"], "2024-11-05"],
        [["2024-11-05", "2026-07-28"], "2026-07-28"]
      ] as ReadonlyArray<readonly [ReadonlyArray<Revision.Revision> | undefined, Revision.Revision]>
    ) {
      it.live(`negotiates with a Skein server of ${revisions?.join(" and ") ?? "all revisions"}`, () =>
        Effect.gen(function*() {
          const echo = Tool.make("echo", { input: { text: Schema.String } })
          const server = McpServer.layer(
            { name: "ours", version: "1", ...(revisions === undefined ? undefined : { revisions }) },
            Tool.layer(echo, ({ text }) => Effect.succeed(text))
          )
          const { url } = yield* ServerHttp.serve({ port: 0 }).pipe(
            Effect.provide(yield* Layer.build(server))
          )
          assert.strictEqual((yield* used(over(url))).revision, expected)
        }))
    }

    it.live("uses HTTP+SSE at a Skein server's HTTP+SSE URL", () =>
      Effect.gen(function*() {
        const echo = Tool.make("echo", { input: { text: Schema.String } })
        const server = McpServer.layer(
          { name: "ours", version: "1" },
          Tool.layer(echo, ({ text }) => Effect.succeed(text))
        )
        const { url } = yield* ServerHttp.serve({ port: 0, legacySse: LegacySse.make() }).pipe(
          Effect.provide(yield* Layer.build(server))
        )
        assert.strictEqual((yield* used(over(new URL("/sse", url)))).variant, "sse")
      }))

    for (
      const [name, script, status, seen] of [
        ["an Express 404 page", Servers.always(404, "<pre>Cannot POST /mcp</pre>"), 404, [discover, initialize, "GET"]],
        ["405", Servers.always(405, "Method Not Allowed", "text/plain"), 405, [discover, initialize, "GET"]],
        ["200 with an HTML page", Servers.always(200, "<html>Welcome"), 200, [discover, initialize]],
        ["500", Servers.always(500, "Oops", "text/plain"), 500, [discover, initialize]]
      ] as const
    ) {
      it.live(`fails with HttpError that quotes the body if the server is not an MCP server: ${name}`, () =>
        Effect.gen(function*() {
          const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(script)
          const error = yield* Effect.flip(Client.make(over(url)))
          assert.deepInclude(fieldsOf(error), { reason: "HttpError", status, method: "initialize" })
          assert.match(error.message, /Cannot POST|Method Not Allowed|Welcome|Oops/)
          assert.deepStrictEqual(asked(exchanges), seen)
        }))
    }

    for (const status of [401, 403]) {
      for (const body of ["no", JSON.stringify(Servers.fault(-32001, "Unauthorized"))]) {
        it.live(`${status} fails with Unauthorized and never causes a fallback: ${body}`, () =>
          Effect.gen(function*() {
            const type = body === "no" ? "text/plain" : "application/json"
            const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.always(status, body, type))
            assert.deepInclude(fieldsOf(yield* Effect.flip(Client.make(over(url)))), { reason: "Unauthorized", status })
            assert.deepStrictEqual(asked(exchanges), [discover])
          }))
      }
    }

    for (const status of [408, 429, 502, 503, 504]) {
      it.live(`${status} fails with HttpError at once and keeps Retry-After, because it does not reveal the revision`, () =>
        Effect.gen(function*() {
          const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(
            Servers.always(status, "later", "text/plain", { "retry-after": "7" })
          )
          const error = yield* Effect.flip(Client.make(over(url)))
          assert.deepInclude(fieldsOf(error), { reason: "HttpError", status })
          assert.deepInclude(error.cause, { retryAfter: 7_000 })
          assert.deepStrictEqual(asked(exchanges), [discover])
        }))
    }

    it.live("fails with ConnectionFailed and undelivered at once if no server listens", () =>
      Effect.gen(function*() {
        const { url } = yield* Effect.scoped(RawServer.tcp(() => {}))
        assert.deepInclude(fieldsOf(yield* Effect.flip(Client.make(over(url)))), {
          reason: "ConnectionFailed",
          undelivered: true
        })
      }))

    it.live("fails with the failure of the probe if the server closes the connection on it and on initialize", () =>
      Effect.gen(function*() {
        const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) => hit.cut())
        const error = yield* Effect.flip(Client.make(over(url)))
        assert.deepInclude(fieldsOf(error), { reason: "Closed", method: "server/discover" })
        assert.deepStrictEqual(asked(exchanges), [discover, discover, initialize, initialize])
      }))

    it.live("fails with the failure of a lost probe if the server then refuses initialize", () =>
      Effect.gen(function*() {
        const { url } = yield* ScriptedHttpServer.make<Json>((hit) =>
          hit.json?.method === "server/discover" ? hit.openStream().end() : hit.respond(500, "Oops")
        )
        const error = yield* Effect.flip(Client.make(over(url)))
        assert.deepInclude(fieldsOf(error), { reason: "Closed", method: "server/discover" })
        assert.include(error.message, "The stream ended without the response")
      }))

    it.live("fails with the failure of a lost probe if it has no session-based revision", () =>
      Effect.gen(function*() {
        const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) => hit.openStream().end())
        const error = yield* Effect.flip(Client.make(over(url), { revisions: ["2026-07-28"] }))
        assert.deepInclude(fieldsOf(error), { reason: "Closed", method: "server/discover" })
        assert.deepStrictEqual(asked(exchanges), [discover, discover])
      }))

    for (
      const [name, answer] of [
        ["an empty stream", (hit) => hit.openStream().end()],
        ["a stream with a comment only", (hit) => hit.openStream(": ping\n\n").end()],
        ["an event with empty data", (hit) => hit.openStream("event: message\ndata: \n\n").end()],
        ["an event that is not JSON", (hit) => hit.openStream("data: <p>\n\n").end()],
        ["a stream that is cut off", (hit) => void hit.openStream("data: {\"json").cut()],
        ["a closed connection", (hit) => hit.cut()],
        ["a body that is shorter than its length", (hit) => {
          const { response } = hit
          response.writeHead(200, { "content-type": "application/json", "content-length": "100" })
          response.write("{", () => hit.cut())
        }],
        ["an empty body", (hit) => hit.respond(200)],
        ["an empty JSON body", (hit) => hit.respond(200, "", { "content-type": "application/json" })],
        ["202", (hit) => hit.respond(202)],
        ["204", (hit) => hit.respond(204)],
        ["an object that is not a message", (hit) => hit.respondJson({})],
        ["null", (hit) => hit.respondJson(null)],
        ["a result of null", (hit) => hit.respondResult(null)],
        ["a response to another request", (hit) => hit.respondJson({ jsonrpc: "2.0", id: "other", result: {} })]
      ] as ReadonlyArray<readonly [string, (hit: Exchange) => void]>
    ) {
      it.live(`2026-07-28 · sends initialize if the answer to the probe is ${name}`, () =>
        Effect.gen(function*() {
          const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) =>
            hit.json?.method === "server/discover" ? answer(hit) : Servers.stateful(hit)
          )
          assert.strictEqual((yield* used(over(url))).revision, "2025-06-18")
          assert.include(asked(exchanges), initialize)
        }))
    }

    it.live("retries a probe or an initialize whose connection closed, because the server may have closed an idle socket", () =>
      Effect.gen(function*() {
        const cut = new Set<string>()
        const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) => {
          const { method } = hit.json ?? {}
          if (typeof method !== "string" || cut.has(method)) return Servers.stateless(true)(hit)
          cut.add(method)
          hit.cut()
        })
        const client = yield* Client.make(over(url))
        assert.strictEqual(client.revision, "2025-11-25")
        assert.deepStrictEqual(asked(exchanges).slice(0, 4), [discover, discover, initialize, initialize])
      }))
  })
}

describe("detection over HTTP", () => {
  it.live("2026-07-28 · -32022 that lists session-based revisions: sends initialize with the newest of those", () =>
    Effect.gen(function*() {
      const supported = ["2024-11-05", "2025-06-18", "2025-03-26", "1999-01-01"]
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) =>
        hit.json?.method === "server/discover"
          ? hit.respondJson(Servers.fault(-32022, "Unsupported", { supported, requested: "2026-07-28" }), {}, 400)
          : Servers.stateful(hit)
      )
      assert.strictEqual((yield* used(transport!(url))).revision, "2025-06-18")
      assert.strictEqual(exchanges[1]!.json.params.protocolVersion, "2025-06-18")
    }))

  it.live("2026-07-28 · probes once more, and not again, if -32022 lists the requested revision", () =>
    Effect.gen(function*() {
      const data = { supported: ["2026-07-28"], requested: "2026-07-28" }
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) =>
        hit.respondJson(Servers.fault(-32022, "Unsupported", data), {}, 400)
      )
      assert.strictEqual((yield* failure(url)).reason._tag, "NegotiationFailed")
      assert.deepStrictEqual(asked(exchanges), [discover, discover])
    }))

  it.live("sends three requests at most to a server that responds to each with -32022 and lists all revisions", () =>
    Effect.gen(function*() {
      const data = { supported: ["2026-07-28", "2025-11-25", "2025-06-18"], requested: "2026-07-28" }
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) =>
        hit.respondJson(Servers.fault(-32022, "Unsupported", data), {}, 400)
      )
      assert.strictEqual((yield* failure(url)).reason._tag, "NegotiationFailed")
      assert.deepStrictEqual(asked(exchanges), [discover, discover, initialize])
    }))

  for (const [code, reason] of [[-32020, "HeaderMismatch"], [-32021, "MissingRequiredClientCapability"]] as const) {
    it.live(`2026-07-28 · a recognized modern JSON-RPC error (${code}) in a 400: fails without initialize, since the server is modern`, () =>
      Effect.gen(function*() {
        const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) =>
          hit.respondJson(Servers.fault(code, "no"), {}, 400)
        )
        const error = yield* failure(url)
        assert.strictEqual(error.reason._tag, "ProtocolError")
        assert.strictEqual(fieldsOf(error).error?.reason, reason)
        assert.deepStrictEqual(asked(exchanges), [discover])
      }))
  }

  it.live("2026-07-28 · a modern server's error for `initialize` (404, -32601): fails without a GET for a stream", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) =>
        hit.respondJson({ ...Servers.fault(-32601, "Method not found"), id: hit.json.id }, {}, 404)
      )
      assert.strictEqual((yield* failure(url)).reason._tag, "NegotiationFailed")
      assert.deepStrictEqual(asked(exchanges), [discover, initialize])
    }))

  it.live("sends nothing but the probe if no session-based revision is enabled", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.stateful)
      assert.strictEqual((yield* failure(url, { revisions: ["2026-07-28"] })).reason._tag, "NegotiationFailed")
      assert.deepStrictEqual(asked(exchanges), [discover])
    }))

  it.live("sends no probe if no stateless revision is enabled", () =>
    Effect.gen(function*() {
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(Servers.sseOnly())
      yield* used(transport!(url), { revisions: ["2024-11-05"] })
      assert.deepStrictEqual(asked(exchanges).slice(0, 2), [initialize, "GET"])
      assert.strictEqual(exchanges[0]!.json.params.protocolVersion, "2024-11-05")
    }))

  for (const [name, script] of [["stateless", Servers.modern], ["stateful", Servers.stateful]] as const) {
    it.live(`reads responses whose id is the text of a number: ${name}`, () =>
      Effect.gen(function*() {
        const { url } = yield* ScriptedHttpServer.make<Json>((hit) => {
          const { id } = hit.json ?? {}
          return id === undefined ? script(hit) : script(
            Object.create(hit, { json: { value: { ...hit.json, id: String(id) } } }) as typeof hit
          )
        })
        const client = yield* Client.make(transport!(url))
        const { content } = yield* client.callTool("echo", {})
        assert.strictEqual(content.length, 1)
      }))
  }

  it.effect("sends `initialize` after probeTimeout while the probe waits, and abandons the probe when the client closes", () =>
    Effect.gen(function*() {
      const [script, held] = Servers.holding("server/discover", Servers.stateful)
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(script)
      const scope = yield* Scope.make()
      const made = Client.make(transport!(url)).pipe(Scope.provide(scope))
      const fiber = yield* Effect.forkChild(made, { startImmediately: true })
      const probe: Exchange = yield* held
      yield* TestClock.adjust("2999 millis")
      yield* settle
      assert.deepStrictEqual(asked(exchanges), [discover])
      yield* TestClock.adjust("1 millis")
      const client = yield* Fiber.join(fiber)
      assert.strictEqual(client.revision, "2025-06-18")
      assert.isFalse(probe.closedByClient)
      yield* Scope.close(scope, Exit.void)
      yield* until(() => probe.closedByClient)
      // The client aborts the exchange of the probe and sends no cancellation in the session.
      assert.notInclude(asked(exchanges), "POST notifications/cancelled")
    }))

  it.effect("waits for a slow probe of a modern server once the refusal of `initialize` reveals its revision", () =>
    Effect.gen(function*() {
      const [script, held] = Servers.holding("server/discover", Servers.modern)
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>(script)
      const fiber = yield* Effect.forkChild(Client.make(transport!(url)), { startImmediately: true })
      const probe = yield* held
      yield* TestClock.adjust("3 seconds")
      yield* until(() => exchanges.length === 2)
      yield* settle
      assert.isUndefined(fiber.pollUnsafe())
      probe.respondResult(Servers.discovered())
      assert.strictEqual((yield* Fiber.join(fiber)).revision, "2026-07-28")
      assert.deepStrictEqual(asked(exchanges), [discover, initialize])
    }))

  it.live("never sends to an endpoint of another origin, logs it, and fails with the refusal of `initialize`", () =>
    Effect.gen(function*() {
      const lines: Array<string> = []
      const logger = Logger.make<unknown, void>(({ message }) => void lines.push(String(message)))
      const thief = yield* ScriptedHttpServer.make<Json>(Servers.always(202, ""))
      const { exchanges, url } = yield* ScriptedHttpServer.make<Json>((hit) =>
        hit.method === "GET"
          ? void hit.openStream(`event: endpoint\ndata: ${thief.url.href}\n\n`)
          : hit.respond(404)
      )
      const error = yield* Effect.provide(failure(url), Logger.layer([logger]))
      assert.deepInclude(fieldsOf(error), { reason: "HttpError", status: 404 })
      assert.deepStrictEqual(asked(exchanges), [discover, initialize, "GET"])
      assert.strictEqual(thief.exchanges.length, 0)
      assert.match(lines.join(), /an endpoint at another origin/)
    }))

  it.live("closes the sockets of a failed handshake", () =>
    Effect.gen(function*() {
      const { closed, sockets, url } = yield* RawServer.tcp((socket) =>
        socket.on("data", () => socket.write("HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"))
      )
      assert.strictEqual((yield* Effect.flip(Client.make(patient(url)))).reason._tag, "HttpError")
      assert.isAbove(sockets.length, 0)
      yield* closed
    }))
})
