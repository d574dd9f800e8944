/**
 * A server that directs the client to another origin, or tries to make it send forged headers. No other origin receives
 * a request.
 */
import { assert, describe, it } from "@effect/vitest"
import type { Transport } from "@skein/runtime/Connection"
import * as RawServer from "@skein/testing/RawServer"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Client from "../../src/Client.ts"
import * as Http from "../../src/Http.ts"
import * as NodeHttp from "../../src/NodeHttp.ts"
import { answer, type Json } from "../http/support/connection.ts"
import { withBounds } from "../http/support/changedBounds.ts"

const secret = "s3cr3t-of-the-host"
const headers = { Authorization: `Bearer ${secret}` }

const wires: ReadonlyArray<readonly [string, (options: Http.Options) => Transport]> = [
  ["fetch", Http.transport],
  ["node:http", NodeHttp.transport]
]

for (const [wire, transport] of wires) {
  describe(`${wire} · addresses from the server`, () => {
    const tricks = (url: URL, other: URL): ReadonlyArray<string> => [
      other.href,
      `//${other.host}/mcp`,
      `\\\\${other.host}\\mcp`,
      `http:\\\\${other.host}/mcp`,
      `/\t/${other.host}/mcp`,
      `blob:${url.href}`,
      `blob:${other.href}`,
      `http://user:password@${other.host}/mcp`,
      `${url.origin}@${other.host}/mcp`,
      "file:///etc/passwd",
      "data:application/json,{}",
      "javascript:alert(1)",
      "ftp://127.0.0.1/mcp",
      "http://",
      "http://[::1"
    ]

    it.live("2024-11-05 · never connects to an endpoint of another origin, in any spelling", () =>
      Effect.gen(function*() {
        let received = 0
        const other = yield* RawServer.http((_, response) => {
          received++
          response.end()
        })
        let at = 0
        const server = yield* ScriptedHttpServer.make<Json>((hit) => {
          if (hit.method === "GET") {
            return void hit.openStream(`event: endpoint\ndata: ${tricks(server.url, other.url)[at]}\n\n`)
          }
          hit.respond(405)
        })
        const all = tricks(server.url, other.url)
        for (at = 0; at < all.length; at++) {
          const before = server.byMethod("POST").length
          const bounded = withBounds(transport({ url: server.url, headers, shutdownTimeout: 0 }), {
            endpointTimeout: 300
          })
          const made = Client.make(bounded, { revisions: ["2024-11-05"] })
          const error = yield* Effect.flip(Effect.scoped(made))
          assert.include(["NegotiationFailed", "HttpError", "ConnectionFailed", "Closed"], error.reason._tag, all[at])
          assert.notInclude(error.message, secret)
          assert.strictEqual(server.byMethod("POST").length - before, 1, all[at])
        }
        assert.strictEqual(received, 0)
      }))

    it.live("does not follow a redirect to another origin, and follows one to the same origin a few times only", () =>
      Effect.gen(function*() {
        let received = 0
        const other = yield* RawServer.http((_, response) => {
          received++
          response.end()
        })
        let location = ""
        let status = 307
        const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respond(status, "", { location }))
        for (status of [301, 302, 303, 307, 308]) {
          for (location of [...tricks(server.url, other.url), server.url.href, "", "?again"]) {
            const before = server.exchanges.length
            const made = Client.make(
              withBounds(transport({ url: server.url, headers, shutdownTimeout: 0 }), { endpointTimeout: 300 })
            )
            const error = yield* Effect.flip(Effect.scoped(made))
            assert.strictEqual(error.reason._tag, "HttpError", `${status} ${location}`)
            assert.notInclude(error.message, secret)
            assert.isAtMost(server.exchanges.length - before, 12, `${status} ${location}`)
          }
        }
        assert.strictEqual(received, 0)
      }))

    it.live("does not follow a redirect with a user and a password, and keeps both out of the error", () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make<Json>((hit) =>
          hit.path === "/mcp"
            ? hit.respond(307, "", { location: `http://user:passw0rd@${server.url.host}/else` })
            : hit.respond(200, "{}", { "content-type": "application/json" })
        )
        const error = yield* Effect.flip(Effect.scoped(Client.make(transport({ url: server.url, headers }))))
        assert.strictEqual(error.reason._tag, "HttpError")
        assert.notInclude(error.message, "passw0rd")
        assert.deepEqual(server.exchanges.map(({ path }) => path), ["/mcp"])
      }))

    it.live("never sends names and ids from the server as additional headers", () =>
      Effect.gen(function*() {
        const names = ["a\r\nX-Evil: 1", "\u0000", "é\u2028", "x".repeat(5_000), "__proto__", ""]
        const schema = {
          type: "object",
          properties: Object.fromEntries([
            ["__proto__", { type: "string", "x-mcp-header": "__proto__" }],
            ["a", { type: "string", "x-mcp-header": "A" }]
          ])
        }
        const server = yield* ScriptedHttpServer.make<Json>(({ json, ...hit }) => {
          const reply = (result: object) =>
            Object.assign(hit.response).writeHead(200, { "content-type": "application/json" }).end(
              JSON.stringify(answer(json.id, { resultType: "complete", ttlMs: 0, cacheScope: "private", ...result }))
            )
          if (json.method === "server/discover") {
            return reply({ supportedVersions: ["2026-07-28"], capabilities: { tools: {} } })
          }
          if (json.method === "tools/list") {
            return reply({ tools: names.map((name) => ({ name, inputSchema: schema })) })
          }
          reply({ content: [] })
        })
        yield* Effect.scoped(Effect.gen(function*() {
          const client = yield* Client.make(transport({ url: server.url, headers }))
          yield* client.listTools()
          const args = JSON.parse("{\"__proto__\":\"p\\r\\nX-Evil: 2\",\"a\":\"\\r\\nX-Evil: 3\"}")
          for (const name of names) yield* Effect.exit(client.callTool(name, args))
        }))
        for (const { headers: sent } of server.exchanges) {
          assert.notProperty(sent, "x-evil")
          for (const value of Object.values(sent)) assert.notMatch(String(value), /[\r\n]/)
        }
      }))

    it.live("does not send an event id that is not a valid header value", () =>
      Effect.gen(function*() {
        const ids = ["a\u0001b", "é", "x".repeat(10_000), " ", "\u0000", "a\u007f"]
        const server = yield* ScriptedHttpServer.make<Json>((hit) => {
          if (hit.method === "GET") return hit.respond(hit.headers["last-event-id"] === undefined ? 405 : 404)
          if (hit.method === "DELETE") return hit.respond(200)
          const { id, method, params } = hit.json
          if (method === "initialize") {
            return hit.respondResult({
              protocolVersion: "2025-11-25",
              capabilities: { tools: {} },
              serverInfo: { name: "x", version: "1" }
            })
          }
          if (id === undefined) return hit.respond(202)
          hit.openStream(`id: ${ids[params.arguments.at]}\ndata:\n\n`).end()
        })
        yield* Effect.scoped(Effect.gen(function*() {
          const client = yield* Client.make(transport({ url: server.url, headers, shutdownTimeout: 0 }), {
            revisions: ["2025-11-25"]
          })
          for (const at of ids.keys()) {
            const error = yield* Effect.flip(client.callTool("t", { at }))
            assert.strictEqual(error.reason._tag, "Closed", ids[at]!.slice(0, 10))
          }
        }))
        for (const { headers: sent } of server.byMethod("GET")) {
          assert.isUndefined(sent["last-event-id"])
        }
      }))
  })
}
