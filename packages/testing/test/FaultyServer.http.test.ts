/** The bytes that a faulty server sends over HTTP, with and without faults. */
import * as FaultyServer from "@skein/testing/FaultyServer"
import * as Scenario from "@skein/testing/Scenario"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { bytes, call, ids, initialize, messages, post, requestText, session } from "./rawClients.ts"

const start = (...faults: ReadonlyArray<Scenario.Rule>) => FaultyServer.http({ faults })
const withFault = (fault: Scenario.Fault) => start(Scenario.rule("request", fault))
/** The response to a call of `echo` in a session. */
const callEcho = (server: FaultyServer.HttpServer, key = "k") =>
  Effect.flatMap(session(server.url), (headers) => post(server.url, call(1, "echo", { key }), headers))
const portOf = (server: FaultyServer.HttpServer): number => Number(new URL(server.url).port)

describe("without faults", () => {
  it.live("2025-11-25 · assigns a session id and responds with a stream whose events have ids", () =>
    Effect.gen(function*() {
      const server = yield* start()
      const headers = yield* session(server.url)
      const reply = yield* post(server.url, call(1, "echo", { key: "é😀" }), headers)
      expect(reply.status).toBe(200)
      expect(reply.headers.get("content-type")).toBe("text/event-stream")
      expect(messages(reply.text)).toEqual([
        { jsonrpc: "2.0", id: 1, result: { content: [{ type: "text", text: "é😀" }] } }
      ])
      expect(ids(reply.text)).toHaveLength(1)
      expect(server.callCount("é😀")).toBe(1)
      expect(server.sessionCount).toBe(1)
      expect((yield* post(server.url, call(2, "echo"))).status).toBe(400)
      expect((yield* post(server.url, call(3, "echo"), { "mcp-session-id": "none" })).status).toBe(404)
    }))

  it.live("2026-07-28 · responds with a complete result and without a session", () =>
    Effect.gen(function*() {
      const server = yield* FaultyServer.http({ revision: "2026-07-28", responses: "json", faults: [] })
      const reply = yield* post(server.url, call("a", "add", { a: 1, b: 2 }))
      expect(JSON.parse(reply.text)).toEqual({
        jsonrpc: "2.0",
        id: "a",
        result: { resultType: "complete", content: [{ type: "text", text: "3" }] }
      })
      expect((yield* post(server.url, initialize())).status).toBe(404)
      const asked = JSON.parse((yield* post(server.url, call(1, "ask", { key: "w" }))).text)
      expect(asked.result).toMatchObject({ resultType: "input_required", requestState: "w" })
      expect(server.callCount("w")).toBe(0)
    }))

  it.live("2024-11-05 · sends an endpoint event, accepts with 202, and responds on the stream", () =>
    Effect.gen(function*() {
      const server = yield* FaultyServer.http({ revision: "2024-11-05", faults: [] })
      const stream = yield* Effect.forkChild(bytes(portOf(server), requestText("GET", undefined)))
      const path = "/message?session=faulty-1"
      const sent = Effect.map(
        bytes(portOf(server), requestText("POST", call(1, "echo", { key: "old" }), {}, path)),
        ({ text }) => text
      )
      // The stream may not be open yet.
      const accepted = yield* Effect.repeat(sent, { until: (text) => text.startsWith("HTTP/1.1 202") })
      expect(accepted).toContain("202 Accepted")
      yield* server.closeConnections("end")
      const { text } = yield* Fiber.join(stream)
      expect(text).toContain("event: endpoint")
      expect(text).toContain(`data: ${path}`)
      expect(text).toContain("\"text\":\"old\"")
    }))

  it.live("2025-11-25 · sends a request on the stream of its call and returns the client's answer in the result", () =>
    Effect.gen(function*() {
      const server = yield* start()
      const headers = yield* session(server.url)
      const asked = yield* Effect.forkChild(post(server.url, call(1, "ask", { key: "w" }), headers))
      // The server may not have sent its request yet.
      const answer = post(server.url, { jsonrpc: "2.0", id: "faulty-0", result: { action: "decline" } }, headers)
      yield* Effect.repeat(answer, { until: () => asked.pollUnsafe() !== undefined })
      const [question, result] = messages((yield* Fiber.join(asked)).text)
      expect(question).toMatchObject({ id: "faulty-0", method: "elicitation/create" })
      expect(result.result.content.map(({ text }: { readonly text: string }) => text)).toEqual([
        "w",
        "{\"action\":\"decline\"}"
      ])
    }))

  it.live("resumes a stream after the last event id of a GET", () =>
    Effect.gen(function*() {
      const server = yield* FaultyServer.http({
        resumable: "primed",
        faults: [Scenario.rule("request", { _tag: "CloseStream", retry: 7 })]
      })
      const headers = yield* session(server.url)
      const first = yield* post(server.url, call(1, "progress", { n: 2, key: "p" }, { progressToken: 5 }), headers)
      expect(first.text).toMatch(/^id: (\S+)\ndata: \n\nretry: 7\n\n$/)
      const resumed = { ...headers, "last-event-id": ids(first.text)[0]! }
      const rest = yield* bytes(portOf(server), requestText("GET", undefined, resumed))
      expect(rest.text.match(/"progress":\d/g)).toEqual(["\"progress\":1", "\"progress\":2"])
      expect(rest.text).toContain("\"text\":\"p\"")
      expect([server.resumptionCount, server.callCount("p")]).toEqual([1, 1])
    }))

  it.effect("uses the clock of the fiber that started the server", () =>
    Effect.gen(function*() {
      const server = yield* FaultyServer.http({ revision: "2026-07-28", faults: [] })
      const slow = yield* Effect.forkChild(post(server.url, call(1, "slow", { ms: 3_600_000, key: "s" })))
      const called = Effect.promise<void>(() => new Promise((later) => setImmediate(later)))
      yield* Effect.repeat(called, { until: () => server.callCount("s") === 1 })
      expect(slow.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 hour")
      expect((yield* Fiber.join(slow)).text).toContain("\"text\":\"s\"")
    }))
})

describe("faults", () => {
  it.live("Cut · sends exactly afterBytes bytes", () =>
    Effect.gen(function*() {
      const text = requestText("POST", initialize())
      const clean = yield* start()
      // The responses differ in their date and session id only.
      const whole = (yield* bytes(portOf(clean), text)).text
      expect(whole.length).toBeGreaterThan(400)
      for (const after of [0, 1, 12, 60, 200, whole.length - 1]) {
        const server = yield* start(Scenario.rule("handshake", Scenario.cut(after, "end")))
        const cut = yield* bytes(portOf(server), text)
        expect([cut.text.length, cut.end]).toEqual([after, "end"])
        expect(cut.text.slice(0, 12)).toBe(whole.slice(0, Math.min(after, 12)))
        expect(server.sessionCount).toBe(1)
      }
      const server = yield* start(Scenario.rule("handshake", Scenario.cut(20)))
      // Some systems do not report a reset to a reader that has read all bytes before it.
      expect((yield* bytes(portOf(server), text)).text).toHaveLength(20)
    }))

  it.live("Drip · sends the same bytes one by one", () =>
    Effect.gen(function*() {
      const server = yield* withFault({ _tag: "Drip" })
      const reply = yield* callEcho(server, "é😀")
      expect(messages(reply.text)[0].result.content[0].text).toBe("é😀")
    }))

  it.live("Stall · sends the head only", () =>
    Effect.gen(function*() {
      const server = yield* withFault({ _tag: "Stall", after: "head" })
      const headers = yield* session(server.url)
      const text = requestText("POST", call(1, "echo", { key: "quiet" }), headers)
      const silent = yield* Effect.forkChild(bytes(portOf(server), text))
      const turn = Effect.promise<void>(() => new Promise((later) => setImmediate(later)))
      yield* Effect.repeat(turn, { until: () => server.callCount("quiet") === 1 })
      yield* turn
      yield* server.closeConnections("end")
      const { text: came } = yield* Fiber.join(silent)
      expect(came).toContain("200 OK")
      expect(came).not.toContain("data:")
    }))

  it.live("Status · carries out the call first and sends Retry-After", () =>
    Effect.gen(function*() {
      const fault = { _tag: "Status", status: 503, body: "html", retryAfterSeconds: 2, handled: true } as const
      const server = yield* withFault(fault)
      const reply = yield* callEcho(server, "done")
      expect([reply.status, reply.headers.get("retry-after"), server.callCount("done")]).toEqual([503, "2", 1])
      expect((yield* callEcho(server, "again")).status).toBe(200)
    }))

  it.live("ContentType, Redirect and NewSessionId · change the response head", () =>
    Effect.gen(function*() {
      const server = yield* start(
        Scenario.rule("request", { _tag: "ContentType", type: "text/html" }, { nth: 0 }),
        Scenario.rule("request", { _tag: "Redirect", status: 307, to: "same" }, { nth: 1 }),
        Scenario.rule("request", { _tag: "NewSessionId" }, { nth: 2 })
      )
      expect((yield* callEcho(server)).headers.get("content-type")).toBe("text/html")
      const redirected = yield* callEcho(server)
      expect([redirected.status, redirected.headers.get("location")]).toEqual([307, "/mcp?again"])
      const renamed = (yield* callEcho(server)).headers.get("mcp-session-id")!
      expect(renamed).toMatch(/^faulty-3-/)
      expect((yield* post(server.url, call(9, "echo"), { "mcp-session-id": renamed })).status).toBe(200)
    }))

  it.live("Duplicate, Reverse and Formatting · change the events, and not their data", () =>
    Effect.gen(function*() {
      const text = { _tag: "Formatting", bom: true, newline: "\r\n", comments: true, multilineData: true } as const
      const server = yield* start(
        Scenario.rule("request", { _tag: "Duplicate" }, { nth: 0 }),
        Scenario.rule("request", { _tag: "Reverse" }, { nth: 1 }),
        Scenario.rule("request", text, { nth: 2 })
      )
      const headers = yield* session(server.url)
      const callProgress = () =>
        post(server.url, call(1, "progress", { n: 2, key: "p" }, { progressToken: 1 }), headers)
      const numbers = (text: string) => messages(text).map((message) => message.params?.progress ?? message.id)
      expect(numbers((yield* callProgress()).text)).toEqual([1, 1, 2, 2, 1, 1])
      expect(numbers((yield* callProgress()).text)).toEqual([1, 2, 1])
      const formatted = (yield* callProgress()).text
      // `fetch` removes the byte order mark.
      expect(formatted).toMatch(/^:\r\n: a comment\r\n/)
      expect(formatted).toMatch(/data:{\r\ndata: "jsonrpc"/)
      expect(numbers(formatted)).toEqual([1, 2, 1])
    }))

  it.live.each(
    [
      [{ _tag: "ResponseId", how: "null" }, [{ id: null }]],
      [{ _tag: "ResponseId", how: "string" }, [{ id: "1" }]],
      [{ _tag: "ResponseId", how: "duplicate" }, [{ id: 1 }, { id: 1 }]],
      [{ _tag: "ResponseId", how: "other" }, [{ id: 0 }]],
      [{ _tag: "ResponseId", how: "wrong" }, [{ id: 1_000_001 }]],
      [{ _tag: "ErrorResponse", code: 42 }, [{ id: 1, error: { code: 42 } }]],
      [{ _tag: "ExtraMembers" }, [{ id: 1, "x-faulty": {}, result: { "x-faulty": {} } }]],
      [{ _tag: "ResponseBody", is: "array" }, [[]]],
      [{ _tag: "Progress", times: 2 }, [{ params: { progress: 1 } }, { params: { progress: 2 } }, { id: 1 }]],
      [{ _tag: "UnknownMethods" }, [{ id: "unknown" }, {}, {}, {}, { id: 1 }]]
    ] satisfies ReadonlyArray<readonly [Scenario.Fault, ReadonlyArray<object>]>
  )("%j", ([fault, expected]) =>
    Effect.gen(function*() {
      const reply = yield* callEcho(yield* withFault(fault))
      const sent = messages(reply.text)
      expect(sent).toHaveLength(expected.length)
      expect(sent).toMatchObject(expected)
    }))

  it.live("LargeMessage · adds the given number of bytes", () =>
    Effect.gen(function*() {
      const reply = yield* callEcho(yield* withFault({ _tag: "LargeMessage", bytes: 100_000, response: true }))
      expect(messages(reply.text)[0].result.padding).toHaveLength(100_000)
    }))

  it.live("Restart · opens the same port without sessions, and may have carried out the request", () =>
    Effect.gen(function*() {
      const server = yield* withFault({ _tag: "Restart", handled: true, exitCode: 0 })
      const headers = yield* session(server.url)
      const lost = yield* bytes(portOf(server), requestText("POST", call(1, "echo", { key: "lost" }), headers))
      expect([lost.text, server.callCount("lost"), server.restartCount]).toEqual(["", 1, 1])
      const again = Effect.exit(
        Effect.tryPromise(() =>
          fetch(server.url, { method: "POST", body: JSON.stringify(call(2, "echo")), headers: headers })
        )
      )
      const replied = yield* Effect.repeat(again, { until: Exit.isSuccess })
      expect(replied).toMatchObject({ value: { status: 404 } })
    }))

  it.live("closes its connections with the scope while requests are pending", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const server = yield* Scope.provide(withFault({ _tag: "Stall", after: "request" }), scope)
      const headers = yield* session(server.url)
      const text = requestText("POST", call(1, "echo"), { ...headers, connection: "keep-alive" })
      const waiting = yield* Effect.forkChild(bytes(portOf(server), text))
      const before = server.requestCount
      const turn = Effect.promise<void>(() => new Promise((later) => setImmediate(later)))
      yield* Effect.repeat(turn, { until: () => server.requestCount > before })
      expect(server.openConnections).toBeGreaterThan(0)
      yield* Scope.close(scope, Exit.void)
      expect(server.openConnections).toBe(0)
      expect((yield* Fiber.join(waiting)).text).toBe("")
      const refused = yield* bytes(portOf(server), "")
      expect(refused.end).toBe("ECONNREFUSED")
    }))
})
