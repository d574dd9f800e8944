/** An endpoint without sessions for clients of session-based revisions. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { post, posting, send } from "../kit.ts"
import { call, initialize, notification, request, serve, until } from "./kit.ts"

const stateless = { stateless: true }

describe("stateless", () => {
  it.effect("answers initialize without a session id, and stores nothing", () =>
    Effect.gen(function*() {
      const server = yield* serve(stateless)
      const opened = yield* post(server, initialize("2025-06-18"))
      expect(opened.json.result.protocolVersion).toBe("2025-06-18")
      expect(opened.headers["mcp-session-id"]).toBeUndefined()
      expect(server.endpoint.sessions).toBe(0)
      const reply = yield* post(server, notification("notifications/initialized"))
      expect([reply.status, reply.text]).toEqual([202, ""])
    }))

  it.effect("2025-06-18 · without MCP-Protocol-Version the server SHOULD assume 2025-03-26, and applies that revision", () =>
    Effect.gen(function*() {
      const server = yield* serve(stateless)
      const batch = [call(1, "echo", { text: "a" }), call(2, "echo", { text: "b" })]
      expect((yield* post(server, batch)).json).toHaveLength(2)
      const newer = { "mcp-protocol-version": "2025-06-18" }
      expect((yield* post(server, batch, newer)).status).toBe(400)
      expect((yield* post(server, batch[0], newer)).json.result.content[0].text).toBe("a")
      expect((yield* post(server, batch[0], { "mcp-protocol-version": "1999-01-01" })).status).toBe(400)
      yield* until(() => server.endpoint.sessions === 0)
    }))

  it.effect("separates clients: equal ids at the same time are two requests", () =>
    Effect.gen(function*() {
      const server = yield* serve(stateless)
      const both = yield* Effect.forEach(["a", "b"], (key) => Effect.forkChild(post(server, call(1, "hold", { key }))))
      yield* until(() => server.control.started.length === 2)
      server.control.open("b")
      server.control.open("a")
      const replies = yield* Effect.forEach(both, (fiber) => Fiber.join(fiber))
      expect(replies.map(({ json }) => json.result.content[0].text)).toEqual(["a done", "b done"])
      yield* until(() => server.endpoint.sessions === 0)
    }))

  it.effect("sends progress on a stream, without event ids, because a client cannot resume it", () =>
    Effect.gen(function*() {
      const server = yield* serve(stateless)
      for (const gate of ["a 1", "a 2"]) server.control.open(gate)
      const reply = yield* post(server, call(1, "steps", { key: "a" }), { "mcp-protocol-version": "2025-11-25" })
      expect(reply.events.map(({ id, json }) => [id, json.id ?? json.params.progress])).toEqual([
        [undefined, 1],
        [undefined, 2],
        [undefined, 1]
      ])
    }))

  it.effect("fails a request to the client at once", () =>
    Effect.gen(function*() {
      const server = yield* serve(stateless)
      const reply = yield* post(server, call(1, "ask", { key: "q" }))
      expect(reply.headers["content-type"]).toBe("application/json")
      expect(reply.json).toMatchObject({ id: 1, result: { isError: true } })
    }))

  it.effect("responds to GET and DELETE with 405 and Allow", () =>
    Effect.gen(function*() {
      const server = yield* serve(stateless)
      for (const method of ["GET", "DELETE"]) {
        const refused = yield* send(server, { method, headers: posting })
        expect([method, refused.status, refused.headers.allow]).toEqual([method, 405, "POST"])
      }
    }))

  it.effect("responds with 503 beyond the bound of concurrent requests", () =>
    Effect.gen(function*() {
      const server = yield* serve({ stateless: true, limits: { maxSessions: 1 } })
      const held = yield* Effect.forkChild(post(server, call(1, "hold", { key: "a" })))
      yield* until(() => server.control.started.length === 1)
      const refused = yield* post(server, request(2, "ping"))
      expect([refused.status, refused.json.id]).toEqual([503, 2])
      server.control.open("a")
      yield* Fiber.join(held)
      expect((yield* post(server, request(2, "ping"))).status).toBe(200)
    }))
})
