/**
 * A session over Streamable HTTP: its id, its revision, the order of its messages, its standalone stream, and its end.
 */
import { describe, expect, it } from "@effect/vitest"
import * as ScriptedHttpServer from "@skein/testing/ScriptedHttpServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import {
  advanceUntil,
  answer,
  connected,
  entered,
  type Exchange,
  type Json,
  modern,
  note,
  settle,
  until
} from "./support/connection.ts"

const initialize = { protocolVersion: "2025-11-25", capabilities: {} }

describe("the session", () => {
  it.effect("2025-11-25 · clients MUST include MCP-Session-Id, and MCP-Protocol-Version, on all subsequent requests", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respondResult()))
      yield* Effect.scoped(Effect.gen(function*() {
        const { connection, request, received } = yield* entered({ url: server.url, shutdownTimeout: "1 second" })
        request(1, "tools/list")
        connection.send({ _tag: "Success", id: "q", result: {} })
        yield* until(() => received.answer(1) !== undefined && server.exchanges.length === 5)
      }))
      const [first, ...rest] = server.exchanges
      expect(first!.headers).not.toHaveProperty("mcp-session-id")
      expect(first!.headers).not.toHaveProperty("mcp-protocol-version")
      expect(rest.map(({ method }) => method).sort()).toEqual(["DELETE", "GET", "POST", "POST", "POST"])
      for (const hit of rest) {
        expect(hit.headers).toMatchObject({ "mcp-session-id": "s-1", "mcp-protocol-version": "2025-11-25" })
      }
      expect(server.byMethod("GET")[0]!.headers.accept).toBe("text/event-stream")
    }))

  it.effect("sends no session id and no DELETE to a server without sessions", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respondResult(), { id: null })
      )
      yield* Effect.scoped(Effect.gen(function*() {
        const { request, received } = yield* entered({ url: server.url, shutdownTimeout: "1 second" })
        request(1, "tools/list")
        yield* until(() => received.answer(1) !== undefined && server.byMethod("GET").length === 1)
      }))
      expect(server.byMethod("DELETE")).toEqual([])
      expect(server.exchanges.some(({ headers }) => "mcp-session-id" in headers)).toBe(false)
    }))

  for (
    const [what, id] of [["a space", "a b"], ["nothing", ""], [
      "more than 4,096 characters",
      "x".repeat(4_097)
    ]] as const
  ) {
    it.effect(`2025-11-25 · the session ID MUST only contain visible ASCII characters: rejects ${what}`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make<Json>((hit) =>
          hit.respondResult({ protocolVersion: "2025-11-25" }, { "mcp-session-id": id })
        )
        const { request, received } = yield* connected({ url: server.url })
        request("init", "initialize", initialize)
        yield* until(() => received.refusals.length === 1)
        expect(received.error("init")!.message).toContain("session id")
        if (id !== "") expect(received.error("init")!.message).not.toContain(id)
      }))
  }

  it.effect("2025-11-25 · queues messages after `notifications/initialized` until the server accepts it", () =>
    Effect.gen(function*() {
      let initialized: Exchange | undefined
      const script = ScriptedHttpServer.session<Json>((hit) => hit.respondResult())
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (hit.json?.method !== "notifications/initialized") return script(hit)
        initialized = hit
      })
      const { notify, request, received } = yield* entered({ url: server.url })
      request(1, "tools/list")
      request(2, "tools/list")
      notify("notifications/cancelled", { requestId: 2 })
      notify("notifications/roots/list_changed")
      yield* until(() => initialized !== undefined)
      yield* settle
      expect(server.exchanges.map(({ json }) => json.method)).toEqual(["initialize", "notifications/initialized"])
      initialized!.respond(202)
      yield* until(() => received.answer(1) !== undefined && server.exchanges.length === 5)
      yield* settle
      expect(server.byMethod("GET").length).toBe(1)
      // A request cancelled before it was sent is not sent, and neither is its cancellation.
      expect(server.byMethod("POST").slice(2).map(({ json }) => json.method).sort()).toEqual([
        "notifications/roots/list_changed",
        "tools/list"
      ])
    }))

  it.effect("sends notifications in order, each after the previous one was accepted, and responses without waiting", () =>
    Effect.gen(function*() {
      const held: Array<Exchange> = []
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => void held.push(hit)))
      const { connection, notify } = yield* entered({ url: server.url })
      yield* until(() => server.byMethod("GET").length === 1)
      for (const n of [1, 2, 3]) notify("notifications/test", { n })
      connection.send({ _tag: "Success", id: "q", result: {} })
      yield* until(() => held.length === 2)
      yield* settle
      expect(held.map(({ json }) => json.params?.n ?? json.id).sort()).toEqual([1, "q"])
      for (const hit of held) hit.respond(202)
      yield* until(() => held.length === 3)
      expect(held[2]!.json.params.n).toBe(2)
    }))

  it.effect("2025-11-25 · to cancel, the client SHOULD explicitly send a CancelledNotification", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) =>
          hit.json.id === 1 ? void hit.openStream(ScriptedHttpServer.event(note(1))) : hit.respond(202)
        )
      )
      const { notify, request, received } = yield* entered({ url: server.url })
      request(1, "tools/call", { name: "x" })
      yield* until(() => received.messages.length === 2)
      notify("notifications/cancelled", { requestId: 1 })
      yield* until(() => server.exchanges.some(({ json }) => json?.method === "notifications/cancelled"))
      yield* until(() => server.exchanges.find(({ json }) => json?.id === 1)!.closedByClient)
      expect(received.refusals).toEqual([])
    }))

  it.effect("sends a response to the server up to three times when the network fails, and a notification once", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.cut()))
      const { connection, notify } = yield* entered({ url: server.url })
      yield* until(() => server.byMethod("GET").length === 1)
      const posts = (match: (hit: Exchange) => boolean) => server.byMethod("POST").filter(match).length
      notify("notifications/test")
      connection.send({ _tag: "Success", id: "q", result: {} })
      for (const [n, wait] of [[1, 1_000], [2, 2_000], [3, 60_000]] as const) {
        yield* until(() => posts(({ json }) => json.id === "q") === n)
        yield* settle
        yield* TestClock.adjust(wait)
      }
      yield* settle
      expect([posts(({ json }) => json.id === "q"), posts(({ json }) => json.method === "notifications/test")]).toEqual(
        [3, 1]
      )
    }))

  it.effect("maxAnswerTries: bounds the attempts to send a response", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.cut()))
      const { connection } = yield* entered({ url: server.url }, { maxAnswerTries: 1 })
      yield* until(() => server.byMethod("GET").length === 1)
      connection.send({ _tag: "Success", id: "q", result: {} })
      const answers = () => server.byMethod("POST").filter(({ json }) => json.id === "q").length
      yield* until(() => answers() === 1)
      yield* settle
      yield* TestClock.adjust(60_000)
      yield* settle
      expect(answers()).toBe(1)
    }))

  it.effect("maxConcurrentPosts: applies back-pressure to further notifications until postTimeout", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>(() => {}))
      const { connection } = yield* entered({ url: server.url }, { maxConcurrentPosts: 3, postTimeout: 10_000 })
      yield* until(() => server.byMethod("GET").length === 1)
      const note = { _tag: "Notification", method: "notifications/test", params: {} } as const
      expect([1, 2, 3].map(() => connection.send(note))).toEqual([true, true, false])
      const drained = yield* Effect.forkChild(connection.drained, { startImmediately: true })
      yield* settle
      expect(drained.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(drained)
      expect(connection.send(note)).toBe(false)
    }))
})

describe("the end of a session", () => {
  it.effect("2025-11-25 · on 404 the client MUST start a new session: the request is undelivered, and the connection ends", () =>
    Effect.gen(function*() {
      const held: Array<Exchange> = []
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => void held.push(hit)))
      const { connection, request, received } = yield* entered({ url: server.url, shutdownTimeout: "1 second" })
      request(1, "tools/list")
      request(2, "tools/list")
      yield* until(() => held.length === 2)
      held[0]!.respondJson({ jsonrpc: "2.0", id: null, error: { code: -32001, message: "Session not found" } }, {}, 404)
      yield* until(() => received.refusals.length === 1)
      // Pending requests get up to shutdownTimeout, since the server will probably respond 404 to them too.
      yield* TestClock.adjust(999)
      expect(received.ends).toEqual([])
      yield* TestClock.adjust(1)
      yield* until(() => received.ends.length === 1)
      expect(received.refusals.map(([id]) => id)).toEqual([held[0]!.json.id])
      expect(received.refusals[0]![1]).toMatchObject({
        reason: { _tag: "MessageRejected" },
        status: 404,
        undelivered: true
      })
      expect(received.ends[0]).toMatchObject({
        _tag: "Lost",
        cause: { message: expect.stringContaining("no longer has the session") }
      })
      yield* until(() => held[1]!.closedByClient)
      yield* connection.close
      expect([server.byMethod("DELETE").length, received.ends.length]).toEqual([0, 1])
    }))

  it.effect("2025-11-25 · on 404 fails the pending requests as each gets its 404, and later requests without sending them", () =>
    Effect.gen(function*() {
      const held: Array<Exchange> = []
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => void held.push(hit)))
      const { request, received } = yield* entered({ url: server.url, shutdownTimeout: "1 second" })
      for (const id of [1, 2, 3]) request(id, "tools/list")
      yield* until(() => held.length === 3)
      held[0]!.respond(404)
      yield* until(() => received.refusals.length === 1)
      request(4, "tools/list")
      held[1]!.respond(404)
      yield* until(() => received.refusals.length === 3)
      expect(received.ends).toEqual([])
      held[2]!.respond(404)
      yield* until(() => received.ends.length === 1)
      expect(received.refusals.map(([, error]) => error.undelivered)).toEqual([true, true, true, true])
      expect(held.length).toBe(3)
    }))

  it.effect("ends on 404 to a notification too; 404 without a session fails only that request", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respond(404)))
      const { notify, received } = yield* entered({ url: server.url, shutdownTimeout: "1 second" })
      notify("notifications/roots/list_changed")
      yield* until(() => received.ends.length === 1)
      const stateless = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respond(404), { id: null })
      )
      const other = yield* entered({ url: stateless.url })
      other.request(1, "tools/list")
      yield* until(() => other.received.refusals.length === 1)
      expect(other.received.ends).toEqual([])
    }))

  it.effect("2025-11-25 · clients SHOULD send an HTTP DELETE, after the last message has arrived", () =>
    Effect.gen(function*() {
      let last: Exchange | undefined
      const server = yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => {
        last = hit
      }))
      const { connection, received } = yield* entered({ url: server.url, shutdownTimeout: "1 second" })
      connection.send({ _tag: "Success", id: "q", result: {} })
      yield* until(() => last !== undefined)
      const closing = yield* Effect.forkChild(Effect.all([connection.close, connection.close], { concurrency: 2 }))
      yield* settle
      expect(server.byMethod("DELETE")).toEqual([])
      last!.respond(202)
      yield* Fiber.join(closing)
      expect(server.byMethod("DELETE").length).toBe(1)
      expect(received.ends).toEqual([{ _tag: "ClosedByUs" }])
    }))

  it.effect("sends one DELETE if the server loses the session while the connection closes", () =>
    Effect.gen(function*() {
      const held: Array<Exchange> = []
      const script = ScriptedHttpServer.session<Json>((hit) => void held.push(hit))
      const server = yield* ScriptedHttpServer.make<Json>((hit) => {
        if (hit.method !== "DELETE") return script(hit)
        for (const other of held.splice(0)) other.respond(404)
        hit.respond(404)
      })
      const { connection, received, request } = yield* entered({ url: server.url, shutdownTimeout: "1 second" })
      request(1, "tools/list")
      request(2, "tools/list")
      yield* until(() => held.length === 2)
      yield* Effect.all([connection.close, connection.close], { concurrency: 2 })
      expect(server.byMethod("DELETE").length).toBe(1)
      expect(received.ends.length).toBe(1)
      expect(received.refusals.length).toBe(2)
    }))

  for (const status of [405, 500]) {
    it.effect(`2025-11-25 · the server MAY respond to it with 405: ${status} closes the session all the same`, () =>
      Effect.gen(function*() {
        const script = ScriptedHttpServer.session<Json>((hit) => hit.respondResult())
        const server = yield* ScriptedHttpServer.make<Json>((hit) =>
          hit.method === "DELETE" ? hit.respond(status) : script(hit)
        )
        const { connection, received } = yield* entered({ url: server.url, shutdownTimeout: "1 second" })
        yield* connection.close
        expect(received.ends).toEqual([{ _tag: "ClosedByUs" }])
      }))
  }

  it.effect("shutdownTimeout: closes without a response to DELETE, and aborts pending exchanges", () =>
    Effect.gen(function*() {
      const script = ScriptedHttpServer.session<Json>((hit) => void hit.openStream(ScriptedHttpServer.event(note(1))))
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.method === "DELETE" ? undefined : script(hit))
      const { connection, request, received } = yield* entered({ url: server.url, shutdownTimeout: "3 seconds" })
      request(1, "tools/list")
      yield* until(() => received.messages.length === 2)
      const closing = yield* Effect.forkChild(connection.close)
      yield* until(() => server.byMethod("DELETE").length === 1)
      yield* TestClock.adjust("2999 millis")
      expect(received.ends).toEqual([])
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(closing)
      expect(received.ends).toEqual([{ _tag: "ClosedByUs" }])
      yield* until(() => server.exchanges.filter(({ closedByClient }) => closedByClient).length === 2)
      expect(connection.send({ _tag: "Notification", method: "x", params: {} })).toBe(true)
    }))
})

describe("the standalone stream", () => {
  for (const status of [400, 404, 405, 501]) {
    it.effect(`2025-11-25 · is not requested again after 405 or a similar status (${status})`, () =>
      Effect.gen(function*() {
        const server = yield* ScriptedHttpServer.make(
          ScriptedHttpServer.session<Json>((hit) => hit.respondResult(), {
            standaloneStream: (hit) => hit.respond(status)
          })
        )
        const { request, received } = yield* entered({ url: server.url })
        yield* until(() => server.byMethod("GET").length === 1)
        yield* settle
        yield* TestClock.adjust("1 hour")
        yield* settle
        expect(server.byMethod("GET").length).toBe(1)
        request(1, "tools/list")
        yield* until(() => received.answer(1) !== undefined)
        expect(received.ends).toEqual([])
      }))
  }

  it.effect("2025-11-25 · the server MAY send requests and notifications on it; is resumed with its last event id", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.openStream(), {
          standaloneStream: (hit) => hit.openStream("retry: 700\n\n")
        })
      )
      const { received } = yield* entered({ url: server.url })
      yield* until(() => server.byMethod("GET").length === 1)
      const [first] = server.byMethod("GET")
      first!.end(
        ScriptedHttpServer.event(note(1), "e1") +
          ScriptedHttpServer.event({ jsonrpc: "2.0", id: "q", method: "ping" }, "e2")
      )
      yield* until(() => received.messages.length === 3)
      yield* settle
      yield* TestClock.adjust(699)
      yield* settle
      expect(server.byMethod("GET").length).toBe(1)
      yield* TestClock.adjust(1)
      yield* until(() => server.byMethod("GET").length === 2)
      expect(server.byMethod("GET")[1]!.headers["last-event-id"]).toBe("e2")
      expect(received.messages.slice(1).map(({ _tag }) => _tag)).toEqual(["Notification", "Request"])
    }))

  it.effect("2025-11-25 · ends the session if its resumption gets 404", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respond(404), {
          standaloneStream: (hit) => hit.openStream("id: 1\nretry: 0\ndata:\n\n")
        })
      )
      const { received } = yield* entered({ url: server.url })
      yield* until(() => server.byMethod("GET").length === 1)
      server.byMethod("GET")[0]!.end()
      yield* settle
      // The default of `minRetry`.
      yield* TestClock.adjust(100)
      yield* until(() => received.ends.length === 1)
      expect(received.ends[0]).toMatchObject({ _tag: "Lost", cause: { status: 404 } })
    }))

  it.effect("ends the connection after maxAttempts if the server is unreachable", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respondResult(), {
          standaloneStream: (hit) => hit.openStream(":\n\n")
        })
      )
      const { received } = yield* entered({ url: server.url, resumption: { maxAttempts: 3 } })
      yield* until(() => server.byMethod("GET").length === 1)
      server.close()
      for (let n = 0; n < 40 && received.ends.length === 0; n++) {
        yield* settle
        yield* TestClock.adjust("5 seconds")
      }
      expect(received.ends[0]).toMatchObject({
        _tag: "Lost",
        cause: { message: expect.stringContaining("3 attempts") }
      })
    }))

  it.effect("is given up if the server closes it repeatedly, while the connection continues", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respondResult(), {
          standaloneStream: (hit) => hit.openStream().end()
        })
      )
      const { request, received } = yield* entered({ url: server.url, resumption: { maxAttempts: 4 } })
      yield* advanceUntil("5 minutes", () => server.byMethod("GET").length === 5)
      yield* TestClock.adjust("5 minutes")
      yield* settle
      expect(server.byMethod("GET").length).toBe(5)
      request(1, "tools/list")
      yield* until(() => received.answer(1) !== undefined)
      expect(received.ends).toEqual([])
    }))

  it.effect("2026-07-28 · removal of the GET stream endpoint and of sessions: uses neither", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make<Json>((hit) => hit.respondResult({}, { "mcp-session-id": "s-1" }))
      yield* Effect.scoped(Effect.gen(function*() {
        const { request, received } = yield* connected({ url: server.url, shutdownTimeout: "1 second" })
        for (const id of [1, 2]) request(id, "tools/list", modern())
        yield* until(() => received.messages.length === 2)
      }))
      expect(server.exchanges.map(({ headers, method }) => [method, headers["mcp-session-id"]])).toEqual([
        ["POST", undefined],
        ["POST", undefined]
      ])
    }))
})

describe("a gap in the standalone stream", () => {
  const listening = (first: string) =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.openStream(), {
          standaloneStream: (hit) => hit.openStream(first)
        })
      )
      const side = yield* entered({ url: server.url, resumption: { maxAttempts: 2, initialDelay: 10, maxDelay: 10 } })
      yield* until(() => server.byMethod("GET").length === 1)
      server.byMethod("GET")[0]!.end()
      yield* settle
      yield* TestClock.adjust(10)
      yield* until(() => server.byMethod("GET").length === 2)
      yield* settle
      return { ...side, server }
    })

  it.effect("is reported if the stream reopens without a last event id, and not with one", () =>
    Effect.gen(function*() {
      expect((yield* listening(ScriptedHttpServer.event(note(1)))).received.gaps).toEqual([undefined])
      expect((yield* listening(ScriptedHttpServer.event(note(1), "e1"))).received.gaps).toEqual([])
    }))

  it.effect("is reported once as permanent when the stream is given up, or if the server has none", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respondResult(), {
          standaloneStream: (hit) => hit.openStream().end()
        })
      )
      const { received } = yield* entered({ url: server.url, resumption: { maxAttempts: 1 } })
      yield* advanceUntil("1 minute", () => received.gaps.length === 2)
      expect(received.gaps[0]).toBeUndefined()
      expect(received.gaps[1]).toMatchObject({
        reason: { _tag: "ConnectionLost" },
        message: expect.stringContaining("maxAttempts")
      })
      const without = yield* entered({
        url: (yield* ScriptedHttpServer.make(ScriptedHttpServer.session<Json>((hit) => hit.respondResult()))).url
      })
      yield* until(() => without.received.gaps.length === 1)
      expect(without.received.gaps[0]).toMatchObject({ reason: { _tag: "MessageRejected" }, status: 405 })
    }))

  it.effect("is reported for `standaloneStream: false`, which sends no GET", () =>
    Effect.gen(function*() {
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => hit.respondResult(), { standaloneStream: (hit) => hit.openStream() })
      )
      const { request, received } = yield* entered({ url: server.url, standaloneStream: false })
      request(1, "tools/list")
      yield* until(() => received.answer(1) !== undefined)
      yield* TestClock.adjust("1 hour")
      yield* settle
      expect(server.byMethod("GET")).toEqual([])
      expect(received.gaps).toMatchObject([{
        reason: { _tag: "MessageRejected" },
        message: "the standalone SSE stream is turned off (standaloneStream: false)"
      }])
    }))
})

describe("a response on the stream of another request", () => {
  it.effect("is ignored while its own request has a stream", () =>
    Effect.gen(function*() {
      const held: Array<Exchange> = []
      const server = yield* ScriptedHttpServer.make(
        ScriptedHttpServer.session<Json>((hit) => void held.push(hit.openStream()))
      )
      const { request, received } = yield* entered({ url: server.url })
      request(1, "tools/list")
      yield* until(() => held.length === 1)
      request(2, "tools/list")
      yield* until(() => held.length === 2)
      held[1]!.end(ScriptedHttpServer.event(answer(1, { forged: true })) + ScriptedHttpServer.event(answer(2)))
      yield* until(() => received.answer(2) !== undefined)
      yield* settle
      expect(received.answer(1)).toBeUndefined()
      held[0]!.end(ScriptedHttpServer.event(answer(1, { forged: false })))
      yield* until(() => received.answer(1) !== undefined)
      expect(received.answer(1).result).toEqual({ forged: false })
    }))
})
