import { describe, expect, it } from "@effect/vitest"
import * as McpError from "@skein/protocol/McpError"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { logged, referenceOf } from "../kit.ts"
import * as fixtures from "./fixtures.ts"
import * as kit from "./kit.ts"

const call = (name: string, args: object = {}, options?: Parameters<typeof kit.modern>[2]): kit.Request =>
  kit.modern("tools/call", { name, arguments: args }, options)

const echo = call("echo", { text: "hi" })
describe("responses", () => {
  it.live("responds with a stream with alwaysStream, and with a status where the specification demands one", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo), { alwaysStream: true })
      const reply = yield* kit.send(at, echo)
      expect(reply.headers["content-type"]).toBe("text/event-stream")
      expect(reply.messages).toMatchObject([{ id: 1, result: {} }])
      expect((yield* kit.send(at, kit.modern("unknown/method"))).status).toBe(404)
    })))

  it.live("ignores the alwaysStream option of the session-based revisions", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo), { alwaysStream: "session" })
      expect((yield* kit.send(at, echo)).headers["content-type"]).toBe("application/json")
    })))

  it.live("2026-07-28 · responds to an accepted notification with 202 and no body", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo))
      const version = { "mcp-protocol-version": "2026-07-28" }
      const notification = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } }
      const reply = yield* kit.post(at, notification, version)
      expect([reply.status, reply.text]).toEqual([202, ""])
      const method = { ...version, "mcp-method": "notifications/cancelled" }
      expect((yield* kit.post(at, notification, method)).status).toBe(202)
    })))

  it.live("2026-07-28 · responds to a notification that cannot be accepted with an error status", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo))
      const of = (version: string) => ({
        jsonrpc: "2.0",
        method: "notifications/x",
        params: { _meta: kit.meta(version) }
      })
      const wrong = [
        [of("2026-07-28"), { "mcp-protocol-version": "2025-11-25" }, -32020],
        [of("2026-07-28"), { "mcp-protocol-version": "2026-07-28", "mcp-method": "notifications/y" }, -32020],
        [of("v999"), { "mcp-protocol-version": "v999" }, -32022]
      ] as const
      for (const [body, headers, code] of wrong) {
        const { json, status } = yield* kit.post(at, body, headers)
        expect([status, json.error.code, "id" in json]).toEqual([400, code, false])
      }
    })))

  it.live("answers each of several concurrent requests with the same id", () =>
    Effect.scoped(Effect.gen(function*() {
      const open = Deferred.makeUnsafe<void>()
      const slow = Tool.layer(
        Tool.make("slow", { description: "Slow.", input: { text: Schema.String } }),
        ({ text }) => Effect.as(Deferred.await(open), text)
      )
      const at = yield* kit.serve(fixtures.server(slow))
      const texts = Array.from({ length: 20 }, (_, at) => `text ${at}`)
      const replies = yield* Effect.all([
        Effect.forEach(texts, (text) => kit.send(at, call("slow", { text })), { concurrency: "unbounded" }),
        Effect.andThen(
          fixtures.until(() => [...at.endpoint.requests].length === texts.length),
          Deferred.succeed(open, undefined)
        )
      ], { concurrency: 2 })
      expect(replies[0].map(({ json }) => json.result.content[0].text)).toEqual(texts)
    })))
})

describe("statuses", () => {
  it.live("2026-07-28 · responds to missing or malformed metadata with 400, -32602 and the request's id", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo))
      const headers = { ...kit.modern("server/discover").headers }
      const ask = (params: unknown) =>
        kit.send(at, { headers, body: { jsonrpc: "2.0", id: 7, method: "server/discover", params } })
      const version = { "io.modelcontextprotocol/protocolVersion": "2026-07-28" }
      const capabilities = { "io.modelcontextprotocol/clientCapabilities": {} }
      const wrong = [
        undefined,
        {},
        { _meta: {} },
        { _meta: null },
        { _meta: capabilities },
        { _meta: version },
        { _meta: { ...version, "io.modelcontextprotocol/clientCapabilities": [] } },
        { _meta: { ...version, ...capabilities, "io.modelcontextprotocol/clientInfo": "me" } },
        { _meta: { ...version, ...capabilities, "io.modelcontextprotocol/logLevel": "loud" } }
      ]
      for (const params of wrong) {
        const { json, status } = yield* ask(params)
        expect([JSON.stringify(params), status, json.error.code, json.id]).toEqual([
          JSON.stringify(params),
          400,
          -32602,
          7
        ])
      }
      expect((yield* ask({ _meta: { ...version, ...capabilities } })).status).toBe(200)
    })))

  it.live("2026-07-28 · responds to an unsupported version with 400 and UnsupportedProtocolVersionError", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo))
      for (const version of ["v999.0.0", "2025-11-25", "__proto__"]) {
        const request = kit.modern("tools/list", {}, { headers: { "mcp-protocol-version": version } })
        const body = { jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: kit.meta(version) } }
        const { json, status } = yield* kit.send(at, { ...request, body })
        expect([status, json.error.code]).toEqual([400, -32022])
        expect(json.error.data).toEqual({
          supported: ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"],
          requested: version
        })
      }
    })))

  it.live("responds to a handler's failure with 200, and to a missing client capability with 400", () =>
    Effect.scoped(Effect.gen(function*() {
      const failing = Tool.layer(
        Tool.make("fail", { description: "Fails.", input: { how: Schema.String } }),
        ({ how }) =>
          how === "params" ?
            Effect.fail(McpError.invalidParams()) :
            how === "header" ?
            Effect.fail(McpError.headerMismatch("of somebody else")) :
            how === "capability" ?
            Effect.fail(McpError.missingRequiredClientCapability({ sampling: {} })) :
            Effect.fail(McpError.other(-1, "other"))
      )
      const at = yield* kit.serve(fixtures.server(failing))
      const outcome = (how: string) =>
        Effect.map(kit.send(at, call("fail", { how })), ({ json, status }) => [status, json.error.code])
      expect(yield* outcome("params")).toEqual([200, -32602])
      expect(yield* outcome("header")).toEqual([200, -32020])
      expect(yield* outcome("other")).toEqual([200, -1])
      expect(yield* outcome("capability")).toEqual([400, -32021])
      expect((yield* kit.send(at, call("nobody"))).status).toBe(200)
    })))

  it.live("responds to a defect of a tool with a result and a reference, logs the cause, and serves the next request", () =>
    logged((lines) =>
      Effect.scoped(Effect.gen(function*() {
        const dying = Tool.layer(
          Tool.make("die", { description: "Dies." }),
          () =>
            Effect.sync((): string => {
              throw new Error("secret")
            })
        )
        const circular = Tool.layer(
          Tool.make("circle", { description: "Has no JSON form." }),
          () => Effect.succeed(Tool.result({ content: "one", _meta: { one: BigInt(1) } }))
        )
        const at = yield* kit.serve(fixtures.server(dying, circular, fixtures.echo))
        for (const name of ["die", "circle"]) {
          const { json, status } = yield* kit.send(at, call(name))
          expect(status).toBe(200)
          expect(lines.join()).toContain(referenceOf(json.result, name))
        }
        expect(lines.join()).toContain("secret")
        expect((yield* kit.send(at, echo)).status).toBe(200)
      }))
    ))
})

describe("streams", () => {
  it.live("2026-07-28 · Closing the SSE response stream MUST be treated by the server as cancellation of that request", () =>
    Effect.scoped(Effect.gen(function*() {
      const wait = fixtures.waiting()
      const at = yield* kit.serve(fixtures.server(wait.layer))
      for (const count of [1, 2, 3]) {
        const raw = yield* kit.raw(at)
        const body = JSON.stringify(call("wait").body)
        const head = Object.entries(call("wait").headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`).join(
          ""
        )
        raw.write(`POST /mcp HTTP/1.1\r\nhost: localhost\r\n${head}content-length: ${body.length}\r\n\r\n${body}`)
        yield* wait.running(count)
        // Closed by a reset, by the end of the connection, and by the end of the sending side.
        if (count === 1) raw.socket.resetAndDestroy()
        else if (count === 2) raw.socket.destroy()
        else raw.end()
        yield* fixtures.until(() => wait.seen.interrupted === count)
      }
      yield* fixtures.until(() => [...at.endpoint.requests].length === 0)
    })))

  it.live("cancels a request that is queued behind another one on its connection", () =>
    Effect.scoped(Effect.gen(function*() {
      const wait = fixtures.waiting()
      const at = yield* kit.serve(fixtures.server(wait.layer))
      const raw = yield* kit.raw(at)
      const body = JSON.stringify(call("wait").body)
      const head = Object.entries(call("wait").headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`).join(
        ""
      )
      const one = `POST /mcp HTTP/1.1\r\nhost: localhost\r\n${head}content-length: ${body.length}\r\n\r\n${body}`
      raw.write(one + one + one)
      yield* wait.running(3)
      raw.socket.destroy()
      yield* fixtures.until(() => wait.seen.interrupted === 3)
    })))

  it.live("does not answer a cancelled request whose handler still ends, and answers the others", () =>
    Effect.scoped(Effect.gen(function*() {
      const go = Deferred.makeUnsafe<void>()
      const stubborn = { started: false, ended: false }
      const tool = Tool.layer(
        Tool.make("stubborn", { description: "Goes on." }),
        () =>
          Effect.sync(() => void (stubborn.started = true)).pipe(
            Effect.andThen(Deferred.await(go)),
            Effect.tap(Effect.sync(() => void (stubborn.ended = true))),
            Effect.as("late"),
            Effect.uninterruptible
          )
      )
      const at = yield* kit.serve(fixtures.server(tool, fixtures.echo))
      const raw = yield* kit.raw(at)
      const body = JSON.stringify(call("stubborn").body)
      const head = Object.entries(call("stubborn").headers!).map(([name, value]) => `${name}: ${String(value)}\r\n`)
        .join("")
      raw.write(`POST /mcp HTTP/1.1\r\nhost: localhost\r\n${head}content-length: ${body.length}\r\n\r\n${body}`)
      yield* fixtures.until(() => stubborn.started)
      raw.socket.destroy()
      yield* fixtures.until(() => [...at.endpoint.requests][0]?.cancelled === true)
      yield* Deferred.succeed(go, undefined)
      yield* fixtures.until(() => stubborn.ended && [...at.endpoint.requests].length === 0)
      expect((yield* kit.send(at, echo)).json.result.content[0].text).toBe("hi")
    })))

  it.live("frees the handler of a stalled reader that disconnects", () =>
    Effect.scoped(Effect.gen(function*() {
      const seen = { over: false }
      const flood = Tool.layer(Tool.make("flood", { description: "Says much." }), () =>
        Effect.flatMap(McpRequest, (request) =>
          Effect.forever(request.notify("notifications/message", { level: "info", data: "x".repeat(64 * 1024) }))).pipe(
            Effect.ensuring(Effect.sync(() =>
              void (seen.over = true)
            ))
          ))
      const at = yield* kit.serve(fixtures.server(flood))
      const stream = yield* kit.open(at, call("flood"))
      stream.pause()
      stream.leave()
      yield* fixtures.until(() =>
        seen.over && [...at.endpoint.requests].length === 0
      )
    })))

  it.live("shows requests in flight and open streams in the tree of inspect", () =>
    Effect.scoped(Effect.gen(function*() {
      const wait = fixtures.waiting()
      const both = yield* Layer.build(fixtures.server(wait.layer))
      const at = yield* kit.serve(Layer.succeedContext(both))
      const { inspect } = yield* Effect.provideContext(McpServer.McpServer, both)
      const reply = yield* Effect.all([
        kit.send(at, call("wait")),
        Effect.gen(function*() {
          yield* wait.running(1)
          const stream = yield* kit.open(
            at,
            kit.modern("subscriptions/listen", { notifications: { toolsListChanged: true } })
          )
          yield* stream.message
          const tree = yield* inspect
          expect(tree.requests.map(({ id, method, target }) => [id, method, target])).toEqual([
            [1, "tools/call", "wait"],
            [1, "subscriptions/listen", undefined]
          ])
          expect(tree.streams).toBe(1)
          stream.leave()
          yield* fixtures.until(() => at.endpoint.streams === 0)
          yield* wait.go
        })
      ], { concurrency: 2 })
      expect(reply[0].status).toBe(200)
      expect(yield* inspect).toMatchObject({ requests: [], streams: 0 })
    })))
})

describe("bounds", () => {
  it.live("responds with 503 and Retry-After at maxInFlightRequests", () =>
    Effect.scoped(Effect.gen(function*() {
      const wait = fixtures.waiting()
      const at = yield* kit.serve(fixtures.server(wait.layer, fixtures.echo), { limits: { maxInFlightRequests: 2 } })
      const replies = yield* Effect.all([
        kit.send(at, call("wait")),
        kit.send(at, call("wait")),
        Effect.gen(function*() {
          yield* wait.running(2)
          const refused = yield* kit.send(at, echo)
          expect([refused.status, refused.headers["retry-after"], refused.json.id]).toEqual([503, "1", 1])
          yield* wait.go
        })
      ], { concurrency: 3 })
      expect([replies[0].status, replies[1].status]).toEqual([200, 200])
      expect((yield* kit.send(at, echo)).status).toBe(200)
    })))

  it.live("responds to a subscription with 503 and Retry-After at maxStreams, and still serves requests", () =>
    Effect.scoped(Effect.gen(function*() {
      const at = yield* kit.serve(fixtures.server(fixtures.echo), { limits: { maxStreams: 1, maxInFlightRequests: 1 } })
      const listen = kit.modern("subscriptions/listen", { notifications: { toolsListChanged: true } })
      const stream = yield* kit.open(at, listen)
      yield* stream.message
      const refused = yield* kit.send(at, listen)
      expect([refused.status, refused.headers["retry-after"]]).toEqual([503, "1"])
      expect((yield* kit.send(at, echo)).status).toBe(200)
      stream.leave()
      yield* fixtures.until(() => at.endpoint.streams === 0)
      expect((yield* kit.open(at, listen)).status).toBe(200)
    })))
})
