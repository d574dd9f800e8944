/** The HTTP+SSE transport of 2024-11-05. */
import { describe, expect, it } from "@effect/vitest"
import * as LegacySse from "@skein/server/LegacySse"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import { open, post, posting, type Request, send } from "../kit.ts"
import { call, initialize, notification, request, sampled, serve, type Server, until } from "./kit.ts"

const legacy = { legacySse: LegacySse.make() }

const listen = (server: Server, headers?: Request["headers"]) =>
  Effect.gen(function*() {
    const stream = yield* open(server, {
      method: "GET",
      path: "/sse",
      headers: { accept: "text/event-stream", ...headers }
    })
    const endpoint = yield* stream.next
    const say = (body: unknown, more?: Request["headers"]) =>
      send(server, {
        path: endpoint.data!,
        headers: { "content-type": "application/json", ...headers, ...more },
        body
      })
    return { stream, endpoint, say }
  })

describe("HTTP+SSE", () => {
  it.effect("2024-11-05 · MUST send an endpoint event with a URI for sending messages; messages are SSE message events", () =>
    Effect.gen(function*() {
      const server = yield* serve(legacy)
      const { endpoint, say, stream } = yield* listen(server)
      expect(stream.headers["content-type"]).toBe("text/event-stream")
      expect(endpoint).toEqual({
        event: "endpoint",
        data: expect.stringMatching(/^\/messages\?sessionId=[A-Za-z0-9_-]{22}$/)
      })
      expect(yield* say(initialize("2024-11-05"))).toMatchObject({ status: 202, text: "" })
      expect(yield* stream.next).toMatchObject({
        event: "message",
        json: { id: "init", result: { protocolVersion: "2024-11-05" } }
      })
      yield* say(notification("notifications/initialized"))
      yield* say(call(1, "steps", { key: "a" }))
      expect((yield* stream.message).params).toMatchObject({ progress: 1 })
      for (const gate of ["a 1", "a 2"]) server.control.open(gate)
      yield* stream.message
      expect(yield* stream.message).toMatchObject({ id: 1, result: { content: [{ text: "a done" }] } })
      yield* say(call(2, "ask", { key: "q" }))
      const { id } = yield* stream.message
      yield* say({ jsonrpc: "2.0", id, result: sampled("accept") })
      expect(yield* stream.message).toMatchObject({ id: 2, result: { content: [{ text: "q accept" }] } })
    }))

  it.effect("answers a request that is too large in memory with an error, and does not handle it", () =>
    Effect.gen(function*() {
      const server = yield* serve({ ...legacy, limits: { maxRetainedBytes: 100_000 } })
      const { say, stream } = yield* listen(server)
      yield* say(initialize("2024-11-05"))
      yield* stream.message
      yield* say(call(1, "hold", { key: "a", padding: Array.from({ length: 5_000 }, () => []) }))
      expect((yield* stream.message).error.code).toBe(-32603)
      yield* say(call(2, "echo", { text: "hi" }))
      expect((yield* stream.message).id).toBe(2)
      expect(server.control.started).toEqual([])
    }))

  it.effect("serves a client that opens a new stream and goes on without initialize, as the oldest revision", () =>
    Effect.gen(function*() {
      const server = yield* serve(legacy)
      const { say, stream } = yield* listen(server)
      yield* say(request(1, "tools/list"))
      expect((yield* stream.message).result.tools.length).toBeGreaterThan(0)
      yield* say(call(2, "steps", { key: "a" }))
      expect((yield* stream.message).params).toMatchObject({ progress: 1 })
      for (const gate of ["a 1", "a 2"]) server.control.open(gate)
      yield* stream.message
      expect(yield* stream.message).toMatchObject({ id: 2, result: { content: [{ text: "a done" }] } })
    }))

  it.effect("refuses such a client with -32602 with assumeInitialized: false", () =>
    Effect.gen(function*() {
      const server = yield* serve({ legacySse: LegacySse.make({ assumeInitialized: false }) })
      const { say, stream } = yield* listen(server)
      yield* say(request(1, "tools/list"))
      expect((yield* stream.message).error.code).toBe(-32602)
    }))

  it.effect("closes the session when the client disconnects: interrupts its handlers and removes its path", () =>
    Effect.gen(function*() {
      const server = yield* serve(legacy)
      const { say, stream } = yield* listen(server)
      yield* say(initialize("2024-11-05"))
      yield* say(call(1, "hold", { key: "a" }))
      yield* until(() => server.control.started.length === 1)
      stream.leave()
      yield* until(() => server.control.interrupted.length === 1)
      expect([server.endpoint.sessions, server.endpoint.streams]).toEqual([0, 0])
      const gone = yield* say(request(2, "ping"))
      expect([gone.status, gone.json.error.code]).toEqual([404, -32600])
    }))

  it.effect("interrupts the remaining requests after shutdownTimeout, and answers them on the stream", () =>
    Effect.gen(function*() {
      const server = yield* serve({ ...legacy, shutdownTimeout: 0 })
      const { say, stream } = yield* listen(server)
      yield* say(initialize("2024-11-05"))
      yield* stream.message
      yield* say(call(1, "hold", { key: "a" }))
      yield* until(() => server.control.started.length === 1)
      const closing = yield* Effect.forkChild(server.endpoint.close, { startImmediately: true })
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(closing)
      expect(server.control.interrupted).toEqual(["a"])
      expect(yield* stream.message).toMatchObject({ id: 1, error: { code: -32603 } })
      expect(yield* stream.ended).toBe("end")
    }))

  it.effect("serves a session only to the principal that opened it, and not over Streamable HTTP", () =>
    Effect.gen(function*() {
      const server = yield* serve(legacy)
      const { endpoint, say } = yield* listen(server, { "x-user": "ada" })
      expect((yield* say(request(1, "ping"), { "x-user": "eve" })).status).toBe(404)
      expect((yield* say(request(1, "ping"), { "x-user": undefined })).status).toBe(404)
      expect((yield* say(request(1, "ping"))).status).toBe(202)
      const id = endpoint.data!.split("=")[1]
      const headers = { "x-user": "ada", "mcp-session-id": id }
      expect((yield* post(server, request(1, "ping"), headers)).status).toBe(404)
    }))

  it.effect("applies the same guards and bounds: Host, Origin, verbs, media types, size, JSON, sessions and streams", () =>
    Effect.gen(function*() {
      const server = yield* serve({ ...legacy, limits: { maxMessageBytes: 1000, maxSessions: 1 } })
      const statusOf = (request: Request) =>
        Effect.map(send(server, request), ({ json, status }) => [status, json?.error.code])
      const { say, stream } = yield* listen(server)
      // A session that is half open gives way to another one.
      yield* say(initialize("2024-11-05"))
      yield* stream.message
      yield* say(notification("notifications/initialized"))
      const accept = "text/event-stream"
      const sse = { method: "GET", path: "/sse" }
      expect(yield* statusOf({ ...sse, headers: { accept, host: "evil.example.com" } })).toEqual([403, -32600])
      expect(yield* statusOf({ ...sse, headers: { accept, origin: "http://evil.example.com" } })).toEqual([403, -32600])
      expect(yield* statusOf({ ...sse, headers: { accept: "application/json" } })).toEqual([406, -32600])
      expect(yield* statusOf({ ...sse, headers: { accept } })).toEqual([503, -32603])
      expect(yield* statusOf({ method: "POST", path: "/sse", headers: posting, body: {} })).toEqual([405, -32600])
      expect(yield* statusOf({ method: "GET", path: "/messages", headers: { accept } })).toEqual([405, -32600])
      expect(yield* statusOf({ path: "/messages", headers: posting, body: request(1, "ping") })).toEqual([400, -32600])
      expect((yield* say(request(1, "ping"), { "content-type": "text/plain" })).status).toBe(415)
      expect((yield* say(request(1, "ping"), { origin: "http://evil.example.com" })).status).toBe(403)
      expect((yield* say("x".repeat(1001))).status).toBe(413)
      const malformed = yield* say("{")
      expect([malformed.status, malformed.json.error.code]).toEqual([400, -32700])
    }))

  it.effect("is off by default", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const headers = { accept: "text/event-stream" }
      expect((yield* send(server, { method: "GET", path: "/sse", headers })).status).toBe(404)
    }))

  it.effect("ends streams cleanly at shutdown", () =>
    Effect.gen(function*() {
      const server = yield* serve(legacy)
      const { stream } = yield* listen(server)
      yield* server.endpoint.close
      expect(yield* stream.ended).toBe("end")
    }))
})
