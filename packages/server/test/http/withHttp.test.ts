/** `McpError.withHttp`: an error of a handler with an HTTP status and headers. */
import { describe, expect, it } from "@effect/vitest"
import type * as Http from "@skein/server/Http"
import * as LegacySse from "@skein/server/LegacySse"
import * as McpError from "@skein/server/McpError"
import * as Middleware from "@skein/server/Middleware"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { adapters } from "./adapters.ts"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const data = { error: "insufficient_scope", scope: "tea:write" }
const challenge = "Bearer error=\"insufficient_scope\", scope=\"tea:write\""
const forbidden = McpError.withHttp(
  McpError.invalidRequest("Forbidden: tea:write is needed", data),
  { status: 403, headers: { "www-authenticate": challenge } }
)
const error = { code: -32600, message: "Forbidden: tea:write is needed", data }

const brew = Tool.layer(
  Tool.make("brew", { input: { reports: Schema.Boolean } }),
  ({ reports }) =>
    Effect.andThen(
      Effect.andThen(reports ? Progress.report({ progress: 1 }) : Effect.void, Effect.yieldNow),
      Effect.fail(forbidden)
    )
)
const refusing = Middleware.layer((next) => (request) =>
  request.method === "prompts/list" ? Effect.fail(forbidden) : next(request)
)
const call = (revision: string, reports: boolean, id = 1) => ({
  jsonrpc: "2.0",
  id,
  method: "tools/call",
  params: { name: "brew", arguments: { reports }, _meta: { progressToken: 1, ...revision === "" ? kit.meta() : {} } }
})

const serve = (options?: Http.Options) => kit.serve(fixtures.server(refusing, brew), options)

const enter = (server: { readonly port: number }, protocolVersion: string) =>
  Effect.gen(function*() {
    const params = { protocolVersion, capabilities: {}, clientInfo: { name: "t", version: "1" } }
    const opened = yield* kit.post(server, { jsonrpc: "2.0", id: 0, method: "initialize", params })
    return (body: unknown) => kit.post(server, body, { "mcp-session-id": opened.headers["mcp-session-id"] })
  })

const isForbidden = ({ headers, json, status }: kit.Reply) => {
  expect(status).toBe(403)
  expect(headers["www-authenticate"]).toBe(challenge)
  expect(json).toEqual({ jsonrpc: "2.0", id: 1, error })
}

describe("an error with an HTTP status", () => {
  for (const revision of ["2025-03-26", "2025-06-18", "2025-11-25"]) {
    it.live(`${revision} · is that status with its headers before anything was sent, and a message on a stream`, () =>
      Effect.scoped(Effect.gen(function*() {
        const post = yield* enter(yield* serve(), revision)
        isForbidden(yield* post(call(revision, false)))
        isForbidden(yield* post({ jsonrpc: "2.0", id: 1, method: "prompts/list" }))
        const streamed = yield* post(call(revision, true))
        expect(streamed.status).toBe(200)
        expect(streamed.messages.at(-1)).toEqual({ jsonrpc: "2.0", id: 1, error })
        const always = yield* enter(yield* serve({ alwaysStream: true }), revision)
        const first = yield* always(call(revision, false))
        expect([first.status, first.messages]).toEqual([200, [{ jsonrpc: "2.0", id: 1, error }]])
        const alone = yield* serve({ stateless: true })
        isForbidden(yield* kit.post(alone, call(revision, false), { "mcp-protocol-version": revision }))
      })))
  }

  it.live("2025-03-26 · is a member of the answer to a batch", () =>
    Effect.scoped(Effect.gen(function*() {
      const post = yield* enter(yield* serve(), "2025-03-26")
      const { json, status } = yield* post([call("2025-03-26", false), { jsonrpc: "2.0", id: 2, method: "ping" }])
      expect(status).toBe(200)
      expect(json).toEqual(expect.arrayContaining([{ jsonrpc: "2.0", id: 1, error }]))
    })))

  it.live("2024-11-05 · is a message over HTTP+SSE", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* serve({ legacySse: LegacySse.make() })
      const stream = yield* kit.open(server, { method: "GET", path: "/sse" })
      const path = (yield* stream.next).data!
      expect((yield* kit.send(server, { path, headers: kit.posting, body: call("x", false) })).status).toBe(202)
      expect(yield* stream.message).toEqual({ jsonrpc: "2.0", id: 1, error })
    })))

  for (const { name, serve } of adapters) {
    it.live(`2026-07-28 · is that status with its headers before anything was sent, and a message on a stream: ${name}`, () =>
      Effect.scoped(Effect.gen(function*() {
        const server = yield* serve(fixtures.server(refusing, brew))
        const call = (reports: boolean) =>
          kit.modern("tools/call", { name: "brew", arguments: { reports } }, { _meta: { progressToken: 1 } })
        isForbidden(yield* kit.send(server, call(false)))
        isForbidden(yield* kit.send(server, kit.modern("prompts/list")))
        const streamed = yield* kit.send(server, call(true))
        expect(streamed.status).toBe(200)
        expect(streamed.messages.at(-1)).toEqual({ jsonrpc: "2.0", id: 1, error })
      })))
  }
})
