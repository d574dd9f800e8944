/** A server over HTTP whose responses a test writes. */
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { bytes, call, initialize, messages, post, requestText, session } from "./rawClients.ts"

const portOf = ({ url }: { readonly url: URL }): number => Number(url.port)

describe("ScriptedHttpServer", () => {
  it.live("responds as the script decides and records the requests", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make((exchange, count) =>
        exchange.respond(503, "busy", { "retry-after": String(count) })
      )
      const response = yield* post(server.url.href, call(1, "echo"))
      expect([response.status, response.text, response.headers.get("retry-after")]).toEqual([503, "busy", "1"])
      expect(server.byMethod("POST")[0]).toMatchObject({ method: "POST", path: "/mcp", json: { id: 1 } })
      expect(server.byMethod("GET")).toEqual([])
    }))

  it.live("session · answers the handshake and passes other requests to the script", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session((exchange) =>
          exchange.openStream(ScriptedHttpServer.event({ id: "a" }, "e1")).end(ScriptedHttpServer.event({ id: "b" }))
        )
      )
      const url = server.url.href
      expect(yield* session(url)).toEqual({ "mcp-session-id": "s-1" })
      expect((yield* post(url, { jsonrpc: "2.0", method: "notifications/initialized" })).status).toBe(202)
      const { text } = yield* post(url, call(1, "echo"))
      expect(text).toMatch(/^id: e1\n/)
      expect(messages(text)).toEqual([{ id: "a" }, { id: "b" }])
      const opened = yield* bytes(portOf(server), requestText("GET", undefined))
      expect(opened.text).toMatch(/^HTTP\/1.1 405/)
    }))

  it.live("session · assigns no session id if it is null", () =>
    Effect.gen(function*() {
      const script = ScriptedHttpServer.session(() => {}, { id: null, revision: "2025-06-18" })
      const server = yield* ScriptedHttpServer.make(script)
      const response = yield* post(server.url.href, initialize())
      expect(response.headers.get("mcp-session-id")).toBeNull()
      expect(JSON.parse(response.text).result.protocolVersion).toBe("2025-06-18")
    }))

  it.live("cut · closes the connection without a response", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make((exchange) => exchange.cut())
      expect((yield* bytes(portOf(server), requestText("POST", call(1, "echo")))).text).toBe("")
    }))
})
