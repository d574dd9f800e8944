import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as RequestContext from "@skein/runtime/RequestContext"
import * as Peer from "@skein/runtime/Peer"
import { describe, expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import { census, Counterpart, echo, failureOf, logged, pair, poll, raw, session, settle } from "./kit.ts"

const uuid = /^[0-9a-f-]{36}$/

describe("inbound requests", () => {
  for (const revision of Revision.sessionBased) {
    it.effect(`${revision} · ping: MUST respond promptly with an empty response, both ways, also while work is in flight`, () =>
      Effect.gen(function*() {
        const busy: RequestContext.Dispatcher = (exchange) =>
          exchange.method === "ping" ? Effect.succeed({}) : Effect.never
        const [left, right] = yield* pair({ revision, left: busy, right: busy })
        yield* Effect.forkChild(left.request("tools/call"))
        yield* Effect.forkChild(right.request("sampling/createMessage"))
        yield* settle
        expect(yield* left.request("ping")).toEqual({})
        expect(yield* right.request("ping")).toEqual({})
        expect([...left.requests, ...right.requests].map((exchange) => exchange.method)).toEqual([
          "sampling/createMessage",
          "tools/call"
        ])
      }))
  }

  it.effect("runs each in a fiber of its own, and answers them in the order of their completion", () =>
    Effect.gen(function*() {
      const { handlers, other, peer } = yield* raw()
      other.request(1)
      other.request("1")
      other.request(2)
      expect(handlers.started).toEqual([1, "1", 2])
      expect(new Set([...peer.requests].map((exchange) => exchange.fiber!.id)).size).toBe(3)
      handlers.end(2)
      handlers.end("1")
      handlers.end(1, Effect.fail(McpError.invalidParams("no")))
      expect(other.messages).toEqual([
        { jsonrpc: "2.0", id: 2, result: { done: 2 } },
        { jsonrpc: "2.0", id: "1", result: { done: "1" } },
        { jsonrpc: "2.0", id: 1, error: { code: -32602, message: "no" } }
      ])
      expect(other.sent.map((sent) => sent.about)).toEqual([2, "1", 1])
      expect([...peer.requests]).toEqual([])
    }))

  it.effect("answers a request that does not suspend synchronously, and never lists it", () =>
    Effect.gen(function*() {
      const seen: Array<number> = []
      const peers: Array<Peer.Peer> = []
      const { other, peer } = yield* raw({
        dispatch: (exchange) =>
          Effect.sync(() => ({ seen: seen.push([...peers[0]!.requests].length), method: exchange.method }))
      })
      peers.push(peer)
      other.request(1, "tools/list")
      other.request(2, "tools/list")
      expect(seen).toEqual([0, 0])
      expect(other.messages[1].result).toEqual({ seen: 2, method: "tools/list" })
      other.sent.length = 1
      expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { seen: 1, method: "tools/list" } }])
    }))

  it.effect("2025-11-25 · the request ID MUST NOT have been used: refuses the id of one in flight with -32600, and continues the first", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw()
      other.request(1)
      other.request(1)
      expect(other.messages).toEqual([{
        jsonrpc: "2.0",
        id: 1,
        error: { code: -32600, message: "A request with this id is in flight already" }
      }])
      expect(handlers.started).toEqual([1])
      expect(handlers.interrupted).toEqual([])
      handlers.end(1)
      expect(other.answers(1).at(-1)).toEqual({ jsonrpc: "2.0", id: 1, result: { done: 1 } })
      expect(other.messages).toHaveLength(2)
    }))

  it.effect("cancels the first request after a refused duplicate", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw()
      other.request(1)
      other.request(1)
      other.cancel(1)
      expect(handlers.interrupted).toEqual([1])
      expect(other.messages).toHaveLength(1)
    }))

  it.effect("writes a refusal of identify in its revision, and dispatches nothing", () =>
    Effect.gen(function*() {
      const { handlers, other } = yield* raw({
        identify: ({ id }) => ({
          error: McpError.resourceNotFound("a:b"),
          revision: id === 1 ? "2025-11-25" : "2026-07-28"
        })
      })
      other.request(1)
      other.request(2)
      const error = { message: "Resource not found", data: { uri: "a:b" } }
      expect(other.messages).toEqual([
        { jsonrpc: "2.0", id: 1, error: { code: -32002, ...error } },
        { jsonrpc: "2.0", id: 2, error: { code: -32602, ...error } }
      ])
      expect(handlers.started).toEqual([])
    }))

  it.effect("answers an invalid message with its error, and with its id if it has one", () =>
    Effect.gen(function*() {
      const { other } = yield* raw()
      other.json({ jsonrpc: "1.0", id: 4, method: "a" })
      other.json(5)
      other.json({ jsonrpc: "2.0", id: 1.5, result: {} })
      expect(other.messages.map(({ id, error }) => ({ id, code: error.code }))).toEqual([
        { id: 4, code: -32600 },
        { id: undefined, code: -32600 }
      ])
    }))

  it.effect("2025-11-25 · MUST NOT send a response to a notification: logs an invalid one", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const seen: Array<string> = []
        const { other } = yield* raw({ onNotification: (_, { method }) => void seen.push(method) })
        const methods = ["notifications/a", "notifications/cancelled", "notifications/progress"]
        const params = [[], [1], "x", 5, true]
        for (const method of methods) for (const given of params) other.json({ jsonrpc: "2.0", method, params: given })
        yield* settle
        expect(other.messages).toEqual([])
        expect(seen).toEqual([])
        expect(lines.length).toBe(methods.length * params.length)
        expect(lines[0]).toMatchObject({
          level: "Debug",
          text: expect.stringContaining("\"params\" must be an object")
        })
      })
    ))

  it.effect("provides handlers with the services of the peer's context, and the request", () =>
    Effect.gen(function*() {
      class Word extends Context.Service<Word, string>()("test/Word") {}
      const other = new Counterpart()
      yield* Peer.make<Word>({
        connection: other,
        dispatch: () =>
          Effect.gen(function*() {
            const exchange = yield* RequestContext.McpRequest
            return { word: yield* Word, id: exchange.id, params: exchange.params }
          }),
        identify: () => ({ revision: "2025-11-25", info: undefined, capabilities: {} })
      }).pipe(Effect.provideService(Word, "thread"))
      other.request(1, "a", { b: 1 })
      expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { word: "thread", id: 1, params: { b: 1 } } }])
    }))
})

describe("defects", () => {
  const secret = new Error("the password is 1234")
  const odd = (value: unknown): Effect.Effect<RequestContext.Answer> => Effect.succeed(value as RequestContext.Answer)
  const cycle: Record<string, unknown> = {}
  cycle["self"] = cycle

  const cases: ReadonlyArray<readonly [string, RequestContext.Dispatcher]> = [
    ["throws before it returns an effect", () => {
      throw secret
    }],
    ["returns no effect", () => undefined as never],
    ["throws inside", () =>
      Effect.sync(() => {
        throw secret
      })],
    ["dies", () => Effect.die(secret)],
    ["dies after it suspended", () => Effect.andThen(Effect.yieldNow, Effect.die(secret))],
    [
      "fails and dies",
      () => Effect.failCause(Cause.combine(Cause.fail(McpError.invalidParams("no")), Cause.die(secret)))
    ],
    [
      "fails, and whose finalizer dies",
      () => Effect.ensuring(Effect.fail(McpError.invalidParams("no")), Effect.die(secret))
    ],
    ["fails with a value that is not an McpError", () => Effect.fail(secret as unknown as McpError.McpError)],
    ["fails with data without JSON form", () => Effect.fail(McpError.invalidParams("no", { big: 1n }))],
    ["answers a BigInt", () => odd({ big: 1n })],
    ["answers a cycle", () => odd(cycle)],
    ["answers a cycle after it suspended", () => Effect.andThen(Effect.yieldNow, odd(cycle))],
    ["answers a getter that throws", () =>
      odd({
        get secret() {
          throw secret
        }
      })],
    ["answers nothing", () => odd(undefined)],
    ["answers null", () => odd(null)],
    ["answers text", () => odd("text")],
    ["answers an array", () => odd([])],
    ["answers a function", () => odd(() => 1)],
    ["answers a date", () => odd(new Date(0))],
    ["answers a value whose toJSON returns undefined", () => odd({ toJSON: () => undefined })],
    ["answers a value whose toJSON throws", () =>
      odd({
        toJSON: () => {
          throw secret
        }
      })],
    ["interrupts itself", () => Effect.interrupt],
    ["interrupts itself after it suspended", () => Effect.andThen(Effect.yieldNow, Effect.interrupt)]
  ]

  for (const [name, dispatch] of cases) {
    it.effect(`a handler that ${name} answers -32603 with only a reference, and logs the cause`, () =>
      logged((lines) =>
        Effect.gen(function*() {
          const { other, peer } = yield* raw({
            dispatch: (exchange) => exchange.id === "bad" ? dispatch(exchange) : echo(exchange)
          })
          other.request("bad", "tools/call", { name: "break" })
          other.request("good", "ping")
          yield* settle
          const [answer] = other.answers("bad")
          expect(answer).toEqual({
            jsonrpc: "2.0",
            id: "bad",
            error: { code: -32603, message: "Internal error", data: { reference: expect.stringMatching(uuid) } }
          })
          expect(other.answers("bad")).toHaveLength(1)
          expect(other.answers("good")).toEqual([{ jsonrpc: "2.0", id: "good", result: {} }])
          const entry = lines.filter((line) => line.level === "Error")
          expect(entry).toHaveLength(1)
          expect(entry[0]!.text).toContain(answer.error.data.reference)
          expect(entry[0]!.text).toContain("tools/call \"break\"")
          expect(entry[0]!.cause).not.toBe("")
          expect([...peer.requests]).toEqual([])
        })
      ))
  }

  it.effect("logs at most 256 characters of the target of a request", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const { other } = yield* raw({ dispatch: () => Effect.die("broken") })
        other.request(1, "resources/read", { uri: `a://\n${"x".repeat(1000)}` })
        yield* settle
        expect(lines[0]!.text).toContain(`resources/read "a://\\n${"x".repeat(256 - 5)}…" failed`)
      })
    ))

  it.effect("does not affect other requests in flight", () =>
    logged(() =>
      Effect.gen(function*() {
        const { handlers, other, peer } = yield* raw()
        other.request(1)
        other.request(2)
        other.request(3)
        handlers.end(2, Effect.die("broken"))
        expect([...peer.requests].map((exchange) => exchange.id)).toEqual([1, 3])
        handlers.end(1)
        handlers.end(3)
        expect(other.messages.map((json) => [json.id, json.error?.code])).toEqual([[2, -32603], [1, undefined], [
          3,
          undefined
        ]])
      })
    ))

  it.effect("answers -32603 with a reference if identify throws, or refuses with data without JSON form", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const { other } = yield* raw({
          identify: (request) => {
            if (request.id === 1) throw secret
            return { error: McpError.invalidParams("no", { big: 1n }), revision: "2025-11-25" }
          }
        })
        other.request(1)
        other.request(2)
        for (const [index, id] of [1, 2].entries()) {
          const reference = other.answers(id)[0].error.data.reference
          expect(other.answers(id)[0].error).toEqual({ code: -32603, message: "Internal error", data: { reference } })
          expect(lines[index]!.text).toContain(reference)
        }
        expect(lines).toHaveLength(2)
      })
    ))

  it.effect("writes a result by its toJSON", () =>
    Effect.gen(function*() {
      const { other } = yield* raw({ dispatch: () => odd({ hidden: 1, toJSON: () => ({ shown: 2 }) }) })
      other.request(1)
      expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { shown: 2 } }])
    }))

  it.effect("writes a result that is JSON text unchanged", () =>
    Effect.gen(function*() {
      const { other } = yield* raw({ dispatch: () => Effect.succeed(new JsonRpc.Encoded(`{"tools":[]}`)) })
      other.request(1, "tools/list")
      expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: { tools: [] } }])
    }))
})

describe("inbound notifications", () => {
  it.effect("start in order, and do not wait for each other", () =>
    Effect.gen(function*() {
      const seen: Array<unknown> = []
      const { other } = yield* raw({
        onNotification: (_, notification) =>
          Effect.andThen(Effect.sync(() => seen.push(notification.params?.["n"])), Effect.never)
      })
      for (let n = 0; n < 5; n++) other.notify("notifications/message", { n })
      expect(seen).toEqual([0, 1, 2, 3, 4])
      expect(other.messages).toEqual([])
    }))

  it.effect("are logged if the handler throws or dies, and not answered", () =>
    logged((lines) =>
      Effect.gen(function*() {
        const { other } = yield* raw({
          dispatch: echo,
          onNotification: (_, notification) => {
            if (notification.method === "notifications/throws") throw new Error("thrown")
            return Effect.die(new Error("died"))
          }
        })
        other.notify("notifications/throws")
        other.notify("notifications/dies")
        other.request(1, "ping")
        expect(lines.map((line) => [line.level, line.text])).toEqual([
          ["Error", "failed to handle notifications/throws"],
          ["Error", "failed to handle notifications/dies"]
        ])
        expect(lines[0]!.cause).toContain("thrown")
        expect(lines[1]!.cause).toContain("died")
        expect(other.messages).toEqual([{ jsonrpc: "2.0", id: 1, result: {} }])
      })
    ))

  it.effect("are ignored without a handler", () =>
    Effect.gen(function*() {
      const { other } = yield* raw()
      other.notify("notifications/unknown")
      expect(other.messages).toEqual([])
    }))
})

describe("outbound requests", () => {
  it.effect("2025-11-25 · IDs MUST NOT be null and MUST NOT be used again", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      for (let n = 0; n < 3; n++) {
        const call = yield* Effect.forkChild(peer.request("a"), { startImmediately: true })
        other.answer(other.requests().at(-1).id)
        yield* Fiber.join(call)
      }
      expect(other.requests().map((json) => json.id)).toEqual([1, 2, 3])
    }))

  it.effect("read an error of the peer in the revision of the session", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ revision: "2025-06-18" })
      const call = yield* Effect.forkChild(peer.request("resources/read"), { startImmediately: true })
      other.fail(1, -32002, "gone")
      expect(failureOf(call)).toMatchObject({ _tag: "McpError", reason: "ResourceNotFound", message: "gone" })
    }))

  it.effect("fail for parameters without JSON form, send nothing and leave nothing behind", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const error = yield* Effect.flip(peer.request("a", { big: 1n }))
      expect(error).toMatchObject({ _tag: "RequestError", reason: { _tag: "Unsupported" }, method: "a" })
      expect(other.messages).toEqual([])
      expect([...peer.calls]).toEqual([])
    }))

  it.effect("fail if the connection is lost while the request is sent, and leave no timer", () =>
    Effect.gen(function*() {
      const { counts, service } = census()
      const { other, peer } = yield* raw().pipe(Effect.provideService(Metric.FiberRuntimeMetrics, service))
      other.onSend = (json) => {
        if (json.method !== "a") return
        other.end({ _tag: "ClosedByPeer" })
      }
      const error = yield* Effect.flip(peer.request("a"))
      expect(error).toMatchObject({ _tag: "RequestError", reason: { _tag: "Closed", end: { _tag: "ClosedByPeer" } } })
      expect([...peer.calls]).toEqual([])
      expect(other.notices("notifications/cancelled")).toEqual([])
      yield* peer.ended
      expect(counts.alive).toBe(0)
    }))

  it.effect("are sent about the inbound request of a handler, and so is their cancellation", () =>
    Effect.gen(function*() {
      const { other } = yield* raw({
        dispatch: (exchange) => exchange.request("roots/list") as Effect.Effect<never, never>
      })
      other.request("q")
      other.cancel("q")
      expect(other.sent.map(({ json, about }) => [json.method, about])).toEqual([
        ["roots/list", "q"],
        ["notifications/cancelled", "q"]
      ])
    }))

  it.effect("2026-07-28 · fail with Unsupported in a handler, which continues", () =>
    Effect.gen(function*() {
      const { other } = yield* raw({
        revision: "2026-07-28",
        dispatch: (exchange) =>
          Effect.match(exchange.request("roots/list"), {
            onFailure: (error): JsonRpc.JsonObject => ({
              error: error._tag,
              reason: error._tag === "McpError" ? error.reason : error.reason._tag
            }),
            onSuccess: (answer) => answer
          })
      })
      other.request(1)
      expect(other.messages).toEqual([{
        jsonrpc: "2.0",
        id: 1,
        result: { error: "RequestError", reason: "Unsupported" }
      }])
    }))

  it.effect("are listed while they wait", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw()
      const call = yield* Effect.forkChild(peer.request("a"), { startImmediately: true })
      yield* settle
      expect(poll(call)).toBe("running")
      expect([...peer.calls].map(({ id, method }) => ({ id, method }))).toEqual([{ id: 1, method: "a" }])
      other.answer(1)
      expect([...peer.calls]).toEqual([])
    }))

  it.effect("notify sends a notification, and the session can be read", () =>
    Effect.gen(function*() {
      const { other, peer } = yield* raw({ revision: "2025-06-18" })
      yield* peer.notify("notifications/initialized")
      expect(other.messages).toEqual([{ jsonrpc: "2.0", method: "notifications/initialized" }])
      expect(peer.session).toEqual(session("2025-06-18"))
    }))
})
