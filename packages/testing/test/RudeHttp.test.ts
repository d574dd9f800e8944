/** What the rude server does over HTTP, seen by clients that read bytes: without faults it is well-behaved. */
import * as RudeServer from "@skein/testing/RudeServer"
import * as Script from "@skein/testing/Script"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { bytes, call, ids, initialize, messages, post, requestText, session } from "./kit.ts"

const rude = (...faults: ReadonlyArray<Script.Rule>) => RudeServer.http({ faults })
const onCall = (fault: Script.Fault) => rude(Script.rule("call", fault))
/** The response to a call of `echo`, in a session. */
const echoed = (server: RudeServer.RudeHttp, key = "k") =>
  Effect.flatMap(session(server.url), (named) => post(server.url, call(1, "echo", { key }), named))
const portOf = (server: RudeServer.RudeHttp): number => Number(new URL(server.url).port)

describe("without faults", () => {
  it.live("2025-11-25: a session, a stream with ids, and the answer", () =>
    Effect.gen(function*() {
      const server = yield* rude()
      const named = yield* session(server.url)
      const reply = yield* post(server.url, call(1, "echo", { key: "é😀" }), named)
      expect(reply.status).toBe(200)
      expect(reply.headers.get("content-type")).toBe("text/event-stream")
      expect(messages(reply.text)).toEqual([
        { jsonrpc: "2.0", id: 1, result: { content: [{ type: "text", text: "é😀" }] } }
      ])
      expect(ids(reply.text)).toHaveLength(1)
      expect(server.times("é😀")).toBe(1)
      expect(server.sessions).toBe(1)
      expect((yield* post(server.url, call(2, "echo"))).status).toBe(400)
      expect((yield* post(server.url, call(3, "echo"), { "mcp-session-id": "none" })).status).toBe(404)
    }))

  it.live("2026-07-28: no session, and the result says that it is complete", () =>
    Effect.gen(function*() {
      const server = yield* RudeServer.http({ revision: "2026-07-28", answers: "json", faults: [] })
      const reply = yield* post(server.url, call("a", "add", { a: 1, b: 2 }))
      expect(JSON.parse(reply.text)).toEqual({
        jsonrpc: "2.0",
        id: "a",
        result: { resultType: "complete", content: [{ type: "text", text: "3" }] }
      })
      expect((yield* post(server.url, initialize())).status).toBe(404)
      const asked = JSON.parse((yield* post(server.url, call(1, "ask", { key: "w" }))).text)
      expect(asked.result).toMatchObject({ resultType: "input_required", requestState: "w" })
      expect(server.times("w")).toBe(0)
    }))

  it.live("2024-11-05: an endpoint event, 202, and the answer on the stream", () =>
    Effect.gen(function*() {
      const server = yield* RudeServer.http({ revision: "2024-11-05", faults: [] })
      const stream = yield* Effect.forkChild(bytes(portOf(server), requestText("GET", undefined)))
      const path = "/message?session=rude-1"
      const sent = Effect.map(
        bytes(portOf(server), requestText("POST", call(1, "echo", { key: "old" }), {}, path)),
        ({ text }) => text
      )
      // The stream may not be there yet.
      const accepted = yield* Effect.repeat(sent, { until: (text) => text.startsWith("HTTP/1.1 202") })
      expect(accepted).toContain("202 Accepted")
      yield* server.cut("end")
      const { text } = yield* Fiber.join(stream)
      expect(text).toContain("event: endpoint")
      expect(text).toContain(`data: ${path}`)
      expect(text).toContain("\"text\":\"old\"")
    }))

  it.live("2025-11-25: a question on the stream of its call, and what was answered in the result", () =>
    Effect.gen(function*() {
      const server = yield* rude()
      const named = yield* session(server.url)
      const asked = yield* Effect.forkChild(post(server.url, call(1, "ask", { key: "w" }), named))
      // It may not have asked yet.
      const answer = post(server.url, { jsonrpc: "2.0", id: "rude-0", result: { action: "decline" } }, named)
      yield* Effect.repeat(answer, { until: () => asked.pollUnsafe() !== undefined })
      const [question, result] = messages((yield* Fiber.join(asked)).text)
      expect(question).toMatchObject({ id: "rude-0", method: "elicitation/create" })
      expect(result.result.content.map(({ text }: { readonly text: string }) => text)).toEqual([
        "w",
        "{\"action\":\"decline\"}"
      ])
    }))

  it.live("a stream is taken up again where it was left, on a GET with the last event's id", () =>
    Effect.gen(function*() {
      const server = yield* RudeServer.http({
        resumable: "primed",
        faults: [Script.rule("call", { _tag: "Poll", retry: 7 })]
      })
      const named = yield* session(server.url)
      const first = yield* post(server.url, call(1, "progress", { n: 2, key: "p" }, { progressToken: 5 }), named)
      expect(first.text).toMatch(/^id: (\S+)\ndata: \n\nretry: 7\n\n$/)
      const headers = { ...named, "last-event-id": ids(first.text)[0]! }
      const rest = yield* bytes(portOf(server), requestText("GET", undefined, headers))
      expect(rest.text.match(/"progress":\d/g)).toEqual(["\"progress\":1", "\"progress\":2"])
      expect(rest.text).toContain("\"text\":\"p\"")
      expect([server.resumed, server.times("p")]).toEqual([1, 1])
    }))

  it.effect("what takes time takes it on the clock of whoever started the server", () =>
    Effect.gen(function*() {
      const server = yield* RudeServer.http({ revision: "2026-07-28", faults: [] })
      const slow = yield* Effect.forkChild(post(server.url, call(1, "slow", { ms: 3_600_000, key: "s" })))
      const called = Effect.promise<void>(() => new Promise((later) => setImmediate(later)))
      yield* Effect.repeat(called, { until: () => server.times("s") === 1 })
      expect(slow.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("1 hour")
      expect((yield* Fiber.join(slow)).text).toContain("\"text\":\"s\"")
    }))
})

describe("faults", () => {
  it.live("Cut: exactly so many bytes come, wherever that is", () =>
    Effect.gen(function*() {
      const text = requestText("POST", initialize())
      const clean = yield* rude()
      // All but the date, which moves on, and the session, which is numbered.
      const whole = (yield* bytes(portOf(clean), text)).text
      expect(whole.length).toBeGreaterThan(400)
      for (const after of [0, 1, 12, 60, 200, whole.length - 1]) {
        const server = yield* rude(Script.rule("handshake", Script.cut(after, "end")))
        const cut = yield* bytes(portOf(server), text)
        expect([cut.text.length, cut.end]).toEqual([after, "end"])
        expect(cut.text.slice(0, 12)).toBe(whole.slice(0, Math.min(after, 12)))
        expect(server.sessions).toBe(1)
      }
      const server = yield* rude(Script.rule("handshake", Script.cut(20)))
      // Not every system tells of a reset whoever has read everything that came before it.
      expect((yield* bytes(portOf(server), text)).text).toHaveLength(20)
    }))

  it.live("Drip: what comes byte by byte is the same", () =>
    Effect.gen(function*() {
      const server = yield* onCall({ _tag: "Drip" })
      const reply = yield* echoed(server, "é😀")
      expect(messages(reply.text)[0].result.content[0].text).toBe("é😀")
    }))

  it.live("Silence: the head comes, and nothing else, until the connection is cut", () =>
    Effect.gen(function*() {
      const server = yield* onCall({ _tag: "Silence", after: "head" })
      const named = yield* session(server.url)
      const text = requestText("POST", call(1, "echo", { key: "quiet" }), named)
      const silent = yield* Effect.forkChild(bytes(portOf(server), text))
      const turn = Effect.promise<void>(() => new Promise((later) => setImmediate(later)))
      yield* Effect.repeat(turn, { until: () => server.times("quiet") === 1 })
      yield* turn
      yield* server.cut("end")
      const { text: came } = yield* Fiber.join(silent)
      expect(came).toContain("200 OK")
      expect(came).not.toContain("data:")
    }))

  it.live("Status, with what was done before, and Retry-After", () =>
    Effect.gen(function*() {
      const fault = { _tag: "Status", status: 503, body: "html", retryAfter: 2, done: true } as const
      const server = yield* onCall(fault)
      const reply = yield* echoed(server, "done")
      expect([reply.status, reply.headers.get("retry-after"), server.times("done")]).toEqual([503, "2", 1])
      expect((yield* echoed(server, "again")).status).toBe(200)
    }))

  it.live("ContentType, Redirect and NewSession", () =>
    Effect.gen(function*() {
      const server = yield* rude(
        Script.rule("call", { _tag: "ContentType", type: "text/html" }, { nth: 0 }),
        Script.rule("call", { _tag: "Redirect", status: 307, to: "same" }, { nth: 1 }),
        Script.rule("call", { _tag: "NewSession" }, { nth: 2 })
      )
      expect((yield* echoed(server)).headers.get("content-type")).toBe("text/html")
      const redirected = yield* echoed(server)
      expect([redirected.status, redirected.headers.get("location")]).toEqual([307, "/mcp?again"])
      const renamed = (yield* echoed(server)).headers.get("mcp-session-id")!
      expect(renamed).toMatch(/^rude-3-/)
      expect((yield* post(server.url, call(9, "echo"), { "mcp-session-id": renamed })).status).toBe(200)
    }))

  it.live("Twice, Backwards and Text change how the events are told, and not what they say", () =>
    Effect.gen(function*() {
      const text = { _tag: "Text", bom: true, newline: "\r\n", comments: true, pieces: true } as const
      const server = yield* rude(
        Script.rule("call", { _tag: "Twice" }, { nth: 0 }),
        Script.rule("call", { _tag: "Backwards" }, { nth: 1 }),
        Script.rule("call", text, { nth: 2 })
      )
      const named = yield* session(server.url)
      const asked = () => post(server.url, call(1, "progress", { n: 2, key: "p" }, { progressToken: 1 }), named)
      const told = (text: string) => messages(text).map((message) => message.params?.progress ?? message.id)
      expect(told((yield* asked()).text)).toEqual([1, 1, 2, 2, 1, 1])
      expect(told((yield* asked()).text)).toEqual([1, 2, 1])
      const spelled = (yield* asked()).text
      // The byte order mark is taken away by the reader of `fetch`.
      expect(spelled).toMatch(/^:\r\n: a comment\r\n/)
      expect(spelled).toMatch(/data:{\r\ndata: "jsonrpc"/)
      expect(told(spelled)).toEqual([1, 2, 1])
    }))

  it.live.each(
    [
      [{ _tag: "Id", how: "null" }, [{ id: null }]],
      [{ _tag: "Id", how: "string" }, [{ id: "1" }]],
      [{ _tag: "Id", how: "twice" }, [{ id: 1 }, { id: 1 }]],
      [{ _tag: "Id", how: "another" }, [{ id: 0 }]],
      [{ _tag: "Id", how: "wrong" }, [{ id: 1_000_001 }]],
      [{ _tag: "Refuse", code: 42 }, [{ id: 1, error: { code: 42 } }]],
      [{ _tag: "Extras" }, [{ id: 1, "x-rude": {}, result: { "x-rude": {} } }]],
      [{ _tag: "Answer", is: "array" }, [[]]],
      [{ _tag: "Progress", times: 2 }, [{ params: { progress: 1 } }, { params: { progress: 2 } }, { id: 1 }]],
      [{ _tag: "Strangers" }, [{ id: "stranger" }, {}, {}, {}, { id: 1 }]]
    ] satisfies ReadonlyArray<readonly [Script.Fault, ReadonlyArray<object>]>
  )("%j", ([fault, expected]) =>
    Effect.gen(function*() {
      const reply = yield* echoed(yield* onCall(fault))
      const said = messages(reply.text)
      expect(said).toHaveLength(expected.length)
      expect(said).toMatchObject(expected)
    }))

  it.live("Huge: as many bytes as were asked for", () =>
    Effect.gen(function*() {
      const reply = yield* echoed(yield* onCall({ _tag: "Huge", bytes: 100_000, answer: true }))
      expect(messages(reply.text)[0].result.padding).toHaveLength(100_000)
    }))

  it.live("Restart: the port is the same, the sessions are gone, and the request may have been handled", () =>
    Effect.gen(function*() {
      const server = yield* onCall({ _tag: "Restart", done: true, code: 0 })
      const named = yield* session(server.url)
      const lost = yield* bytes(portOf(server), requestText("POST", call(1, "echo", { key: "lost" }), named))
      expect([lost.text, server.times("lost"), server.restarts]).toEqual(["", 1, 1])
      const again = Effect.exit(
        Effect.tryPromise(() =>
          fetch(server.url, { method: "POST", body: JSON.stringify(call(2, "echo")), headers: named })
        )
      )
      const replied = yield* Effect.repeat(again, { until: Exit.isSuccess })
      expect(replied).toMatchObject({ value: { status: 404 } })
    }))

  it.live("everything ends with the scope, also while requests wait", () =>
    Effect.gen(function*() {
      const scope = yield* Scope.make()
      const server = yield* Scope.provide(onCall({ _tag: "Silence", after: "request" }), scope)
      const named = yield* session(server.url)
      const text = requestText("POST", call(1, "echo"), { ...named, connection: "keep-alive" })
      const waiting = yield* Effect.forkChild(bytes(portOf(server), text))
      const before = server.requests
      const turn = Effect.promise<void>(() => new Promise((later) => setImmediate(later)))
      yield* Effect.repeat(turn, { until: () => server.requests > before })
      expect(server.open).toBeGreaterThan(0)
      yield* Scope.close(scope, Exit.void)
      expect(server.open).toBe(0)
      expect((yield* Fiber.join(waiting)).text).toBe("")
      const refused = yield* bytes(portOf(server), "")
      expect(refused.end).toBe("ECONNREFUSED")
    }))
})
