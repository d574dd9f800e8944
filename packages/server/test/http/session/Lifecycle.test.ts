/** How sessions are opened, to which principal they belong, and how they are closed. */
import { describe, expect, it } from "@effect/vitest"
import * as Http from "@skein/server/Http"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as TestClock from "effect/testing/TestClock"
import { post, posting, send } from "../kit.ts"
import { FakeAnswer, FakeRequest } from "./fake.ts"
import { call, enter, initialize, notification, request, revisions, serve, until } from "./kit.ts"

describe("initialization", () => {
  for (const revision of revisions) {
    it.effect(`${revision} · the server MAY assign a session ID by including it on the response with the InitializeResult`, () =>
      Effect.gen(function*() {
        const server = yield* serve()
        const opened = yield* post(server, initialize(revision))
        expect(opened.status).toBe(200)
        expect(opened.headers["content-type"]).toBe("application/json")
        expect(opened.json.result.protocolVersion).toBe(revision)
        // "globally unique and cryptographically secure", "visible ASCII": 128 bits in base64url.
        expect(opened.headers["mcp-session-id"]).toMatch(/^[A-Za-z0-9_-]{22}$/)
        const other = yield* post(server, initialize(revision))
        expect(other.headers["mcp-session-id"]).not.toBe(opened.headers["mcp-session-id"])
        expect(server.endpoint.sessions).toBe(2)
      }))
  }

  it.effect("opens no session and sends no id if initialize is refused", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const refused = yield* post(server, request(1, "initialize", { protocolVersion: 1 }))
      expect(refused.json).toMatchObject({ id: 1, error: { code: -32602 } })
      expect(refused.headers["mcp-session-id"]).toBeUndefined()
      expect(server.endpoint.sessions).toBe(0)
    }))

  it.effect("refuses a second initialize in a session, and the session stays open", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-11-25")
      expect((yield* client.post(initialize("2025-06-18"))).json).toMatchObject({ id: "init", error: { code: -32600 } })
      expect((yield* client.post(call(1, "echo", { text: "still" }))).json.result.content[0].text).toBe("still")
    }))

  it.effect("answers initialize with JSON and the id, also with alwaysStream", () =>
    Effect.gen(function*() {
      const server = yield* serve({ alwaysStream: true })
      const opened = yield* post(server, initialize("2025-11-25"))
      expect(opened.headers).toMatchObject({ "content-type": "application/json", "mcp-session-id": expect.any(String) })
    }))
})

describe("the session of a request", () => {
  it.effect("2025-11-25 · SHOULD respond to requests without an MCP-Session-Id with 400, on every verb", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* enter(server, "2025-11-25")
      for (const method of ["POST", "GET", "DELETE"]) {
        const body = method === "POST" ? request(7, "ping") : undefined
        const reply = yield* send(server, { method, headers: posting, body })
        expect([method, reply.status, reply.json.error.code]).toEqual([method, 400, -32600])
        expect(reply.json.id).toBe(method === "POST" ? 7 : undefined)
      }
    }))

  it.effect("2025-11-25 · MUST respond to requests containing that session ID with 404 after termination, on every verb", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      expect((yield* client.delete()).status).toBe(204)
      expect(server.endpoint.sessions).toBe(0)
      const replies = [yield* client.post(request(7, "ping")), yield* client.read(), yield* client.delete()]
      expect(replies.map(({ status }) => status)).toEqual([404, 404, 404])
      for (const { json } of replies) expect(json.error.code).toBe(-32600)
      expect(replies[0]!.json.id).toBe(7)
    }))

  it.effect("responds 404 to any other principal, on every verb", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25", { headers: { "x-user": "ada" } })
      for (const user of ["eve", undefined]) {
        const headers = { "x-user": user }
        const unknown = { "mcp-session-id": "0000000000000000000000", ...headers }
        for (
          const [theirs, nobodys] of [
            [yield* client.post(request(1, "ping"), headers), yield* client.post(request(1, "ping"), unknown)],
            [yield* client.read(headers), yield* client.read(unknown)],
            [yield* client.delete(headers), yield* client.delete(unknown)]
          ]
        ) {
          expect(theirs!.status).toBe(404)
          expect(theirs!.text).toBe(nobodys!.text)
        }
      }
      expect((yield* client.post(request(1, "ping"))).json.result).toEqual({})
      const open = yield* enter(server, "2025-11-25")
      expect((yield* open.post(request(1, "ping"), { "x-user": "eve" })).status).toBe(404)
    }))

  it.effect("provides a handler with the principal and the headers of its own request", () =>
    Effect.gen(function*() {
      let round = 0
      const server = yield* serve({ principal: () => ({ id: "ada", round: ++round }) })
      const client = yield* enter(server, "2025-11-25", { initialized: false })
      const reply = yield* client.post(call(1, "who"), { "x-user": "header" })
      expect(reply.json.result.content[0].text).toBe("header")
      expect(server.control.principals).toEqual([{ id: "ada", round: 2 }])
    }))
})

describe("the services of the fiber that carried a request", () => {
  class User extends Context.Service<User, string>()("test/User") {}
  const whoami = Tool.layer(
    Tool.make("whoami"),
    () => Effect.map(Effect.serviceOption(User), Option.getOrElse(() => "nobody"))
  )

  it.effect("provides the services to the request's handler, and to no other handler of the session", () =>
    Effect.gen(function*() {
      const endpoint = yield* Http.make()
      const say = (headers: { readonly [name: string]: string }, body: unknown, user?: string): FakeAnswer => {
        const answer = new FakeAnswer()
        const context = user === undefined ? undefined : Context.make(User, user)
        endpoint.handle(Object.assign(new FakeRequest("POST", headers, body), { context }), answer)
        return answer
      }
      const session = { "mcp-session-id": say({}, initialize("2025-11-25"), "ada").headers["mcp-session-id"]! }
      const replies = ["ada", "eve", undefined].map((user) => JSON.parse(say(session, call(1, "whoami"), user).text))
      expect(replies.map(({ result }) => result.content[0].text)).toEqual(["ada", "eve", "nobody"])
    }).pipe(Effect.provide(McpServer.layer({ name: "users", version: "1" }, whoami))))
})

describe("MCP-Protocol-Version", () => {
  it.effect("2025-06-18 · an invalid or unsupported MCP-Protocol-Version MUST be answered with 400, on every verb", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-06-18")
      for (const version of ["2025-11-25", "1999-01-01", "nonsense"]) {
        const headers = { "mcp-protocol-version": version }
        const replies = [
          yield* client.post(request(1, "ping"), headers),
          yield* client.read(headers),
          yield* client.delete(headers)
        ]
        expect([version, ...replies.map(({ status }) => status)]).toEqual([version, 400, 400, 400])
      }
      const right = { "mcp-protocol-version": "2025-06-18" }
      expect((yield* client.post(request(1, "ping"), right)).json.result).toEqual({})
    }))

  it.effect("2025-03-26 · uses the negotiated version if the header is missing", () =>
    Effect.gen(function*() {
      const client = yield* enter(yield* serve(), "2025-11-25")
      expect((yield* client.post(request(1, "ping"))).json.result).toEqual({})
    }))
})

describe("a session", () => {
  it.effect("interrupts its handlers, ends its streams, and answers pending requests on DELETE", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const listening = yield* client.get()
      const streaming = yield* client.stream(call(1, "steps", { key: "a" }))
      yield* streaming.message
      const waiting = yield* Effect.forkChild(client.post(call(2, "hold", { key: "b" })), { startImmediately: true })
      yield* until(() => server.control.started.length === 2)
      expect((yield* client.delete()).status).toBe(204)
      expect(yield* listening.ended).toBe("end")
      expect(yield* streaming.ended).toBe("end")
      const answered = yield* Fiber.join(waiting)
      // Not 404, after which a client may repeat the call in a new session: the call may have run.
      expect(answered.status).toBe(200)
      const message = expect.stringMatching(/^Interrupted: the session ended while .* may have run: check that before/)
      expect(answered.json).toMatchObject({ id: 2, error: { code: -32603, message } })
      expect(server.control.interrupted.toSorted()).toEqual(["a 1", "b"])
      expect(server.endpoint.streams).toBe(0)
    }))

  it.effect("ends once when several DELETE, POST and GET requests arrive at the same time", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const ping = (id: number) => Effect.map(client.post(request(id, "ping")), ({ status }) => status)
      const end = Effect.map(client.delete(), ({ status }) => status)
      const statuses = yield* Effect.all([ping(1), end, end, ping(2), end], { concurrency: "unbounded" })
      expect(statuses.filter((status) => status === 204)).toHaveLength(1)
      expect(statuses.filter((status) => ![200, 204, 404].includes(status))).toEqual([])
      expect(server.endpoint.sessions).toBe(0)
      expect(server.endpoint.streams).toBe(0)
      expect(yield* ping(3)).toBe(404)
    }))

  it.effect("expires 30 minutes after the end of its last request", () =>
    Effect.gen(function*() {
      const server = yield* serve({ streamAfter: 0 })
      const client = yield* enter(server, "2025-11-25")
      const held = yield* Effect.forkChild(client.post(call(1, "hold", { key: "long" })), { startImmediately: true })
      yield* until(() => server.control.started.length === 1)
      yield* TestClock.adjust("2 hours")
      expect(server.endpoint.sessions).toBe(1)
      server.control.open("long")
      expect((yield* Fiber.join(held)).json.result.content[0].text).toBe("long done")
      yield* TestClock.adjust("29 minutes")
      expect(server.endpoint.sessions).toBe(1)
      yield* TestClock.adjust("61 seconds")
      expect(server.endpoint.sessions).toBe(0)
      expect((yield* client.post(request(1, "ping"))).status).toBe(404)
    }))

  it.effect("does not expire while a client listens, and expires after the end of the stream", () =>
    Effect.gen(function*() {
      const server = yield* serve({ limits: { idleTimeout: "10 minutes" } })
      const client = yield* enter(server, "2025-11-25")
      const listening = yield* client.get()
      yield* TestClock.adjust("30 minutes")
      expect(server.endpoint.sessions).toBe(1)
      listening.leave()
      yield* until(() => server.endpoint.streams === 0)
      yield* TestClock.adjust("10 minutes")
      expect(server.endpoint.sessions).toBe(0)
    }))

  it.effect("expires on time, also if the deadline of initialization was later", () =>
    Effect.gen(function*() {
      const server = yield* serve({ limits: { idleTimeout: "10 seconds" } })
      yield* enter(server, "2025-11-25")
      const late = yield* enter(server, "2025-11-25", { initialized: false })
      yield* TestClock.adjust("10 seconds")
      expect(server.endpoint.sessions).toBe(1)
      yield* TestClock.adjust("5 seconds")
      yield* late.post(notification("notifications/initialized"))
      yield* TestClock.adjust("9 seconds")
      expect(server.endpoint.sessions).toBe(1)
      yield* TestClock.adjust("1 seconds")
      expect(server.endpoint.sessions).toBe(0)
    }))

  it.effect("ends after a minute without notifications/initialized, unless it is used", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      yield* enter(server, "2025-11-25", { initialized: false })
      const used = yield* enter(server, "2025-11-25", { initialized: false })
      yield* used.post(call(1, "echo", { text: "x" }))
      yield* TestClock.adjust("59 seconds")
      expect(server.endpoint.sessions).toBe(2)
      yield* TestClock.adjust("1 second")
      expect(server.endpoint.sessions).toBe(1)
      expect((yield* used.post(request(1, "ping"))).status).toBe(200)
    }))

  it.effect("ends after a minute without notifications/initialized, however often its client listens", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25", { initialized: false })
      for (let n = 1; n <= 3; n++) {
        yield* TestClock.adjust("15 seconds")
        const listening = yield* client.get()
        listening.leave()
        yield* until(() => server.endpoint.streams === 0)
      }
      expect(server.endpoint.sessions).toBe(1)
      yield* client.get()
      yield* TestClock.adjust("15 seconds")
      expect(server.endpoint.sessions).toBe(0)
      yield* until(() => server.endpoint.streams === 0)
    }))
})

describe("the number of sessions", () => {
  it.effect("responds to initialize with 503 and Retry-After at the bound, until a session was idle for a minute", () =>
    Effect.gen(function*() {
      const server = yield* serve({ limits: { maxSessions: 2 } })
      const first = yield* enter(server, "2025-11-25")
      const second = yield* enter(server, "2025-11-25")
      const refused = yield* post(server, initialize("2025-11-25"))
      expect(refused.status).toBe(503)
      expect(Number(refused.headers["retry-after"])).toBe(60)
      expect(refused.json).toMatchObject({ id: "init", error: { code: -32603 } })
      expect(refused.headers["mcp-session-id"]).toBeUndefined()
      expect((yield* first.post(request(1, "ping"))).status).toBe(200)
      yield* TestClock.adjust("59 seconds")
      expect((yield* first.post(request(2, "ping"))).status).toBe(200)
      yield* TestClock.adjust("1 seconds")
      const third = yield* enter(server, "2025-11-25")
      expect((yield* second.post(request(1, "ping"))).status).toBe(404)
      expect((yield* post(server, initialize("2025-11-25"))).status).toBe(503)
      expect((yield* first.delete()).status).toBe(204)
      expect((yield* post(server, initialize("2025-11-25"))).status).toBe(200)
      expect((yield* third.post(request(1, "ping"))).status).toBe(200)
    }))

  it.effect("ends the oldest half-open session at the bound", () =>
    Effect.gen(function*() {
      const server = yield* serve({ limits: { maxSessions: 2 } })
      const first = yield* enter(server, "2025-11-25")
      const [second, third] = [
        yield* enter(server, "2025-11-25", { initialized: false }),
        yield* enter(server, "2025-11-25", { initialized: false })
      ]
      expect(server.endpoint.sessions).toBe(2)
      expect((yield* second.post(request(1, "ping"))).status).toBe(404)
      for (const client of [first, third]) expect((yield* client.post(request(1, "ping"))).status).toBe(200)
    }))

  it.effect("returns to zero after 240 sessions that were opened and disconnected", () =>
    Effect.gen(function*() {
      const server = yield* serve()
      const inspect = () => [server.endpoint.sessions, server.endpoint.streams]
      const one = (n: number) =>
        Effect.scoped(Effect.gen(function*() {
          const client = yield* enter(server, "2025-11-25", { initialized: n % 3 !== 0 })
          const listening = yield* client.get()
          const streaming = yield* client.stream(call(1, "steps", { key: String(n) }))
          yield* streaming.message
          listening.leave()
          streaming.leave()
          // Some clients send a DELETE, others never do.
          if (n % 2 === 0) yield* client.delete()
          else for (const gate of [1, 2]) server.control.open(`${n} ${gate}`)
        }))
      yield* Effect.forEach(Array.from({ length: 240 }, (_, n) => n), one, { concurrency: 16, discard: true })
      yield* until(() => server.endpoint.streams === 0)
      expect(server.endpoint.sessions).toBe(120)
      yield* until(() => server.control.interrupted.length === 120)
      yield* TestClock.adjust("31 minutes")
      yield* until(() => server.endpoint.sessions === 0)
      expect(inspect()).toEqual([0, 0])
    }))
})
