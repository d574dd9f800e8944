/** Attacks on sessions: on their memory, their ownership, and the messages in them. */
import { describe, expect, it } from "@effect/vitest"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Catalog from "@skein/server/Catalog"
import * as LegacySse from "@skein/server/LegacySse"
import * as Middleware from "@skein/server/Middleware"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import { Bounds, fixedBounds } from "../../../src/internal/base/fixedBounds.ts"
import * as fixtures from "../fixtures.ts"
import * as kit from "../kit.ts"
import { call, enter, initialize, notification, request, sampled, serve } from "../session/kit.ts"

const opening = (clientInfo: object, capabilities: object = {}) => ({
  ...initialize("2025-11-25"),
  params: { protocolVersion: "2025-11-25", capabilities, clientInfo: { name: "x", version: "1", ...clientInfo } }
})

describe("the client's own description", () => {
  it.live("is stored as long as its session, and bounded in characters and in values", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* serve({ legacySse: LegacySse.make() })
      const most = 65_536 - JSON.stringify(opening({ title: "" })).length
      expect((yield* kit.post(server, opening({ title: "x".repeat(most) }))).status).toBe(200)
      expect(server.endpoint.sessions).toBe(1)
      const bombs = [
        opening({ title: "x".repeat(most + 1) }),
        opening({}, { experimental: { x: { y: Array.from({ length: 1_000 }, () => ({})) } } })
      ]
      for (const bomb of bombs) {
        const { json, status } = yield* kit.post(server, bomb)
        expect([status, json.error.code, json.id]).toEqual([413, -32600, "init"])
      }
      expect(server.endpoint.sessions).toBe(1)
      // The endpoint of 2024-11-05 has the same bound.
      const stream = yield* kit.open(server, { method: "GET", path: "/sse" })
      const path = (yield* stream.next).data!
      const legacy = yield* kit.send(server, { path, headers: kit.posting, body: bombs[1] })
      expect(legacy.status).toBe(413)
      const small = yield* Effect.provideService(serve(), Bounds, { ...fixedBounds, maxInitializeChars: 100 })
      expect((yield* kit.post(small, initialize("2025-11-25"))).status).toBe(413)
    })))
})

describe("sessions", () => {
  it.live("of one principal are bounded, so that it cannot lock other principals out", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* serve({ legacySse: LegacySse.make(), limits: { maxSessionsPerPrincipal: 3 } })
      const open = (user: string | undefined) => kit.post(server, initialize("2025-11-25"), { "x-user": user })
      const ids: Array<string> = []
      for (let n = 0; n < 3; n++) ids.push((yield* open("eve")).headers["mcp-session-id"] as string)
      const refused = yield* open("eve")
      expect([refused.status, refused.headers["retry-after"], refused.json.error.code]).toEqual([503, "1", -32603])
      expect((yield* kit.send(server, { method: "GET", path: "/sse", headers: { "x-user": "eve" } })).status).toBe(503)
      for (const user of ["ada", "bob", undefined, undefined, undefined, undefined]) {
        expect((yield* open(user)).status).toBe(200)
      }
      const ended = { method: "DELETE", headers: { "x-user": "eve", "mcp-session-id": ids[0] } }
      expect((yield* kit.send(server, ended)).status).toBe(204)
      expect((yield* open("eve")).status).toBe(200)
      expect((yield* open("eve")).status).toBe(503)
    })))
})

describe("a session id", () => {
  it.live("never takes a session id from the client, and compares ids exactly", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* serve()
      const chosen = { "mcp-session-id": "chosen-by-eve-0123456789" }
      expect((yield* kit.post(server, initialize("2025-11-25"), chosen)).status).toBe(404)
      expect(server.endpoint.sessions).toBe(0)
      const { id } = yield* enter(server, "2025-11-25")
      expect(id).toMatch(/^[A-Za-z0-9_-]{22}$/)
      const other = yield* enter(server, "2025-11-25")
      const swapped = id.replace(
        /[a-zA-Z]/g,
        (letter) => letter === letter.toLowerCase() ? letter.toUpperCase() : letter.toLowerCase()
      )
      const wrong = [
        swapped,
        `${id} x`,
        `"${id}"`,
        `${id},${other.id}`,
        `${id}=`,
        id.slice(0, -1),
        "__proto__",
        "constructor"
      ]
      for (const one of wrong) {
        expect([one, (yield* kit.post(server, request(1, "ping"), { "mcp-session-id": one })).status]).toEqual([
          one,
          404
        ])
      }
      // Two session ids are refused.
      const both = { "mcp-session-id": [id, other.id] }
      expect((yield* kit.post(server, request(1, "ping"), both)).status).toBe(400)
    })))

  it.live("rejects requests, streams, resumptions, responses and DELETE in another principal's session", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* serve()
      const ada = yield* enter(server, "2025-11-25", { headers: { "x-user": "ada" } })
      const asked = yield* ada.stream(call(1, "ask", { key: "for ada" }))
      const question = yield* asked.message
      for (const user of ["eve", "ADA", "ada2", "ada, eve", undefined]) {
        const headers = { "mcp-session-id": ada.id, "x-user": user }
        const answer = { jsonrpc: "2.0", id: question.id, result: sampled("eve") }
        const tries = [
          kit.post(server, request(2, "ping"), headers),
          kit.post(server, answer, headers),
          kit.post(server, notification("notifications/cancelled", { requestId: 1 }), headers),
          kit.send(server, { method: "GET", headers }),
          kit.send(server, { method: "GET", headers: { ...headers, "last-event-id": "1-1" } }),
          kit.send(server, { method: "DELETE", headers })
        ]
        for (const one of tries) expect((yield* one).status).toBe(404)
      }
      yield* ada.post({ jsonrpc: "2.0", id: question.id, result: sampled("mine") })
      expect((yield* asked.message).result.content[0].text).toBe("for ada mine")
    })))
})

describe("two clients with the same ids at the same time", () => {
  it.live("receive their own results, progress and requests, and cannot cancel or answer each other's", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* serve()
      const [ada, bob] = [yield* enter(server, "2025-11-25"), yield* enter(server, "2025-11-25")]
      const ofAda = yield* ada.stream(call(1, "ask", { key: "ada" }))
      const ofBob = yield* bob.stream(call(1, "ask", { key: "bob" }))
      const [first, second] = [yield* ofAda.message, yield* ofBob.message]
      expect([first, second].map(({ params }) => params.messages[0].content.text)).toEqual(["ada", "bob"])
      // The requests of both servers may have the same id, too.
      yield* bob.post(notification("notifications/cancelled", { requestId: 1 }))
      yield* bob.post({ jsonrpc: "2.0", id: first.id, result: sampled("eve") })
      yield* ada.post({ jsonrpc: "2.0", id: first.id, result: sampled("mine") })
      expect((yield* ofAda.message).result.content[0].text).toBe("ada mine")
      // Bob has cancelled his own request.
      expect(yield* ofBob.ended).toBe("end")
      const [a, b] = [
        yield* ada.stream(call("same", "steps", { key: "ada" })),
        yield* bob.stream(call("same", "steps", { key: "bob" }))
      ]
      server.control.open("bob 1")
      server.control.open("bob 2")
      const ofB = [yield* b.message, yield* b.message, yield* b.message]
      expect(ofB.map(({ params }) => params?.progress)).toEqual([1, 2, undefined])
      expect(ofB[2].result.content[0].text).toBe("bob done")
      expect((yield* a.message).params.progress).toBe(1)
      expect(a.waiting().filter(({ json }) => json !== undefined)).toEqual([])
      server.control.open("ada 1")
      server.control.open("ada 2")
      yield* a.message
      expect((yield* a.message).result.content[0].text).toBe("ada done")
    })))
})

describe("an event id", () => {
  it.live("rejects an invented event id with 400, and keeps the session open", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* serve()
      const client = yield* enter(server, "2025-11-25")
      const steps = yield* client.stream(call(1, "steps", { key: "a" }))
      yield* steps.message
      const wrong = [
        "0",
        "-1-1",
        "1--1",
        "1-2",
        "1-999999999999999",
        "9007199254740993-1",
        "999999999999999999999-1",
        "01-1",
        "1-1e0",
        "1-1 ",
        "1-1,1-2",
        "1-0x1",
        "Infinity-0",
        "NaN-NaN",
        "2-0",
        "__proto__-0",
        `${server.port}-${"9".repeat(5_000)}`
      ].filter((id) => id.trim() === id)
      for (const id of wrong) expect([id, (yield* client.read({ "last-event-id": id })).status]).toEqual([id, 400])
      server.control.open("a 1")
      server.control.open("a 2")
      yield* steps.message
      expect((yield* steps.message).result.content[0].text).toBe("a done")
    })))
})

describe("mirrored headers", () => {
  it.live("2025-03-26 · rejects a batch with mirrored headers, and a batch without them if they are required", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* serve()
      const batch = [call(1, "echo", { text: "hi" })]
      const client = yield* enter(server, "2025-03-26")
      expect((yield* client.post(batch)).json[0].result.content[0].text).toBe("hi")
      for (const headers of [{ "mcp-method": "tools/list" }, { "mcp-name": "echo" }, { "mcp-param-x": "1" }]) {
        expect((yield* client.post(batch, headers)).status).toBe(400)
      }
      const strict = yield* serve({ requireMcpHeaders: true })
      const opened = yield* kit.post(strict, initialize("2025-03-26"), { "mcp-method": "initialize" })
      const own = { "mcp-session-id": opened.headers["mcp-session-id"] as string }
      expect((yield* kit.post(strict, batch, own)).status).toBe(400)
      expect((yield* kit.post(strict, [notification("notifications/initialized")], own)).status).toBe(202)
    })))

  it.live("2024-11-05 · compares mirrored headers with the body", () =>
    Effect.scoped(Effect.gen(function*() {
      const server = yield* serve({ legacySse: LegacySse.make() })
      const stream = yield* kit.open(server, { method: "GET", path: "/sse" })
      const path = (yield* stream.next).data!
      const post = (headers: object) =>
        kit.send(server, { path, headers: { ...kit.posting, ...headers }, body: initialize("2024-11-05") })
      expect((yield* post({ "mcp-method": "tools/list" })).status).toBe(400)
      expect((yield* post({ "mcp-method": "initialize" })).status).toBe(202)
    })))
})

describe("the rights of a principal", () => {
  it.live("uses the rights of the request's own principal, even during a long call", () =>
    Effect.scoped(Effect.gen(function*() {
      const { layer, ...waiting } = fixtures.waiting()
      const isAdmin = ({ principal }: { readonly principal?: Principal.Principal | undefined }) =>
        principal?.["scope"] === "admin"
      const slow = Tool.layer(Tool.make("slow"), () =>
        Effect.gen(function*() {
          yield* waiting.wait
          const request = yield* McpRequest
          const current = Option.getOrUndefined(yield* Principal.current)
          return `${current?.["scope"]} ${request.caller.principal?.["scope"]}`
        }))
      const secret = Catalog.visibleTo(isAdmin, Tool.layer(Tool.make("secret"), () => Effect.succeed("revealed")))
      // A middleware before the handler may also take its time.
      const pausing = Middleware.layer((next) => (exchange) =>
        exchange.params?.["name"] === "secret" ? Effect.andThen(waiting.wait, () => next(exchange)) : next(exchange)
      )
      const server = yield* kit.serve(fixtures.server(layer, slow, secret, pausing), {
        principal: ({ headers }) => ({ id: "ada", scope: String(headers["x-scope"]) })
      })
      const opened = yield* kit.post(server, initialize("2025-11-25"), { "x-scope": "read" })
      const as = (scope: string) => ({ "mcp-session-id": opened.headers["mcp-session-id"] as string, "x-scope": scope })
      const asked = yield* Effect.forEach(
        ["slow", "secret"],
        (name, id) => Effect.forkChild(kit.post(server, call(id, name), as("read")), { startImmediately: true })
      )
      yield* waiting.running(2)
      expect((yield* kit.post(server, request(7, "tools/list"), as("admin"))).json.result.tools).toHaveLength(3)
      yield* waiting.go
      const [first, second] = yield* Effect.forEach(asked, (fiber) => Fiber.join(fiber))
      expect(first!.json.result.content[0].text).toBe("read read")
      expect(second!.json.error.message).toBe("Unknown tool: secret")
    })))
})
