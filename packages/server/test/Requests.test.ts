import { describe, expect, it } from "@effect/vitest"
import * as Revision from "@skein/protocol/Revision"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import * as kit from "./kit.ts"

const eras: ReadonlyArray<Revision.Revision> = ["2025-11-25", "2026-07-28"]

for (const revision of eras) {
  describe(`${revision} · progress`, () => {
    const progressOf = (client: kit.Client) =>
      client.notices("notifications/progress").map((notice) => notice.params.progress)
    const reports = (...values: ReadonlyArray<number>) =>
      Tool.layer(
        Tool.make("t"),
        () => Effect.as(Effect.forEach(values, (progress) => Progress.report({ progress })), "done")
      )

    it.effect(`${revision} · the progress value MUST increase with each notification`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(reports(1, 2, 2, 1, NaN, Infinity, 3.5, -1, 4)), revision)
        yield* client.result("tools/call", { name: "t", _meta: { progressToken: 7 } })
        expect(progressOf(client)).toEqual([1, 2, 3.5, 4])
        expect(client.notices("notifications/progress")[0].params.progressToken).toBe(7)
      }))

    it.effect(`${revision} · sends none without a token, or with one of the wrong type`, () =>
      Effect.gen(function*() {
        const client = yield* kit.client(kit.server(reports(1, 2)), revision)
        yield* client.call("t")
        for (const progressToken of [1.5, null, {}, true]) {
          yield* client.request("tools/call", { name: "t", _meta: { progressToken } })
        }
        expect(progressOf(client)).toEqual([])
      }))

    it.effect(`${revision} · notifications MUST stop after completion, and each precedes the response`, () =>
      Effect.gen(function*() {
        let late: Effect.Effect<void> = Effect.void
        const tool = Tool.layer(Tool.make("t"), () =>
          Effect.gen(function*() {
            const request = yield* McpRequest
            late = request.progress({ progress: 9 })
            yield* Progress.report({ progress: 1 })
            return "done"
          }))
        const client = yield* kit.client(kit.server(tool), revision)
        const id = client.send("tools/call", { name: "t", _meta: { progressToken: "p" } })
        yield* client.answer(id)
        yield* late
        yield* kit.settle
        expect(progressOf(client)).toEqual([1])
        expect(client.received.findIndex((m) => m.method === "notifications/progress"))
          .toBeLessThan(client.received.findIndex((m) => m.id === id))
      }))

    it.effect(`${revision} · is also sent for resources and prompts`, () =>
      Effect.gen(function*() {
        const slow = Effect.as(Progress.report({ progress: 1 }), "x")
        const client = yield* kit.client(
          kit.server(Resource.layer(Resource.make("a://b"), slow), Prompt.layer(Prompt.make("p"), () => slow)),
          revision
        )
        yield* client.result("resources/read", { uri: "a://b", _meta: { progressToken: "r" } })
        yield* client.result("prompts/get", { name: "p", _meta: { progressToken: "p" } })
        expect(client.notices("notifications/progress").map((n) => n.params.progressToken)).toEqual(["r", "p"])
      }))
  })

  describe(`${revision} · cancellation`, () => {
    const setUp = Effect.gen(function*() {
      const events: Array<string> = []
      const gate = yield* Deferred.make<void>()
      const tool = Tool.layer(
        Tool.make("wait", { input: { name: Schema.String } }),
        ({ name }) =>
          Effect.gen(function*() {
            events.push(`start ${name}`)
            yield* Deferred.await(gate)
            return name
          }).pipe(Effect.onInterrupt(() => Effect.sync(() => void events.push(`cleaned ${name}`))))
      )
      const client = yield* kit.client(kit.server(tool), revision)
      const begin = (name: string) => client.send("tools/call", { name: "wait", arguments: { name } })
      return { events, gate, client, begin }
    })

    it.effect(`${revision} · MUST stop the handler: runs its finalizers, sends no response, and others continue`, () =>
      Effect.gen(function*() {
        const { begin, client, events, gate } = yield* setUp
        const [a, b] = [begin("a"), begin("b")]
        yield* kit.settle
        client.notify("notifications/cancelled", { requestId: a, reason: "enough" })
        yield* kit.settle
        expect(events).toEqual(["start a", "start b", "cleaned a"])
        yield* Deferred.succeed(gate, undefined)
        expect((yield* client.answer(b)).result.content[0].text).toBe("b")
        yield* kit.settle
        expect(client.answers(a)).toEqual([])
      }))

    it.effect(`${revision} · ignores a cancellation of an unknown or finished request, and a malformed one`, () =>
      Effect.gen(function*() {
        const { begin, client, events, gate } = yield* setUp
        const a = begin("a")
        yield* kit.settle
        for (const requestId of ["nobody", 99, null, {}, String(a)]) {
          client.notify("notifications/cancelled", { requestId } as never)
        }
        client.notify("notifications/cancelled")
        yield* Deferred.succeed(gate, undefined)
        expect((yield* client.answer(a)).result.content[0].text).toBe("a")
        client.notify("notifications/cancelled", { requestId: a })
        yield* kit.settle
        expect(events).toEqual(["start a"])
        expect(client.answers(a).length).toBe(1)
      }))

    it.effect(`${revision} · sends no progress after the cancellation`, () =>
      Effect.gen(function*() {
        const tool = Tool.layer(Tool.make("t"), () =>
          Effect.onInterrupt(Effect.never, () => Progress.report({ progress: 1 })))
        const client = yield* kit.client(kit.server(tool), revision)
        const id = client.send("tools/call", { name: "t", _meta: { progressToken: "p" } })
        yield* kit.settle
        client.notify("notifications/cancelled", { requestId: id })
        yield* kit.settle
        expect(client.notices("notifications/progress")).toEqual([])
      }))
  })

  describe(`${revision} · hostile names`, () => {
    it.effect(`${revision} · treats names of the object prototype, and an empty name, as unknown`, () =>
      Effect.gen(function*() {
        const server = kit.server(
          Tool.layer(Tool.make("t"), () => Effect.succeed("ok")),
          Prompt.layer(Prompt.make("p"), () => Effect.succeed("ok")),
          Resource.layer(Resource.make("a://b"), Effect.succeed("ok"))
        )
        const client = yield* kit.client(server, revision)
        for (
          const name of [
            "__proto__",
            "constructor",
            "toString",
            "hasOwnProperty",
            "",
            " ",
            "T",
            "t ",
            "\u0000",
            "\ud800"
          ]
        ) {
          expect(yield* client.error("tools/call", { name })).toMatchObject({ code: -32602 })
          expect(yield* client.error("prompts/get", { name })).toMatchObject({ code: -32602 })
          expect((yield* client.error("resources/read", { uri: name })).message).toBe("Resource not found")
        }
        const { message } = yield* client.error("tools/call", { name: "x".repeat(100_000) })
        expect(message.length).toBeLessThan(200)
      }))

    it.effect(`${revision} · lists and calls tools with such names`, () =>
      Effect.gen(function*() {
        const names = ["__proto__", "constructor", ""]
        const tools = names.map((name) => Tool.layer(Tool.make(name), () => Effect.succeed(`I am ${name}`)))
        const client = yield* kit.client(kit.server(...tools), revision)
        for (const name of names) expect((yield* client.call(name)).content[0].text).toBe(`I am ${name}`)
        expect((yield* client.result("tools/list")).tools.map((tool: kit.Json) => tool.name)).toEqual(names)
      }))
  })
}

describe("the server's view", () => {
  const parked = Tool.layer(
    Tool.make("parked"),
    () => Effect.andThen(Progress.report({ progress: 1, total: 2 }), Effect.never)
  )

  it.effect("inspect shows sessions and requests in flight", () =>
    Effect.gen(function*() {
      const context = yield* Layer.build(kit.server(parked))
      const { inspect } = Context.get(context, McpServer.McpServer)
      expect(yield* inspect).toEqual({
        name: "test",
        version: "1.0.0",
        now: expect.any(Number),
        sessions: [],
        requests: [],
        streams: 0,
        tally: { requests: 0, failures: 0, last: [] },
        tasks: []
      })
      const legacy = yield* Effect.provide(kit.connect("2025-06-18"), context)
      const modern = yield* Effect.provide(kit.connect(), context)
      const id = legacy.send("tools/call", { name: "parked", _meta: { progressToken: "p" } })
      modern.send("tools/call", { name: "parked" })
      yield* kit.settle
      yield* TestClock.adjust("3 seconds")
      const request = { method: "tools/call", target: "parked", age: 3000, cancelled: false }
      expect((yield* inspect).sessions).toMatchObject([
        {
          revision: "2025-06-18",
          info: { name: "kit", version: "1" },
          requests: [{ ...request, id, revision: "2025-06-18", progress: { progress: 1, total: 2 } }],
          calls: []
        },
        { revision: undefined, info: undefined, requests: [{ ...request, revision: "2026-07-28" }], calls: [] }
      ])
      legacy.notify("notifications/cancelled", { requestId: id })
      yield* kit.settle
      expect((yield* inspect).sessions[0]!.requests).toEqual([])
    }))

  it.effect("interrupt answers a request with an error, once its handler has stopped", () =>
    Effect.gen(function*() {
      const latch = Latch.makeUnsafe(false)
      const slow = Tool.layer(Tool.make("slow"), () => Effect.ensuring(Effect.never, latch.await))
      const context = yield* Layer.build(kit.server(slow))
      const { inspect, interrupt } = Context.get(context, McpServer.McpServer)
      const error = {
        code: -32603,
        message: expect.stringContaining("interrupted by the operator of the server and may have run")
      }
      for (const revision of ["2025-11-25", "2026-07-28"] as const) {
        latch.closeUnsafe()
        const client = yield* Effect.provide(kit.connect(revision), context)
        const id = client.send("tools/call", { name: "slow" })
        yield* kit.settle
        const { key } = (yield* inspect).sessions.flatMap(({ requests }) => requests)[0]!
        expect(yield* interrupt(key)).toEqual({ _tag: "Request", method: "tools/call" })
        yield* kit.settle
        expect(client.received.some((message) => message.id === id)).toBe(false)
        latch.openUnsafe()
        yield* kit.settle
        expect(client.received.find((message) => message.id === id)?.error).toEqual(error)
        expect(yield* interrupt(key)).toEqual({ _tag: "NotFound" })
      }
    }))

  it.effect("interrupt closes a connection, and cancels its requests", () =>
    Effect.gen(function*() {
      let interrupted = 0
      const slow = Tool.layer(
        Tool.make("slow"),
        () => Effect.onInterrupt(Effect.never, () => Effect.sync(() => void interrupted++))
      )
      const context = yield* Layer.build(kit.server(slow))
      const { inspect, interrupt } = Context.get(context, McpServer.McpServer)
      const client = yield* Effect.provide(kit.connect("2025-11-25"), context)
      client.send("tools/call", { name: "slow" })
      yield* kit.settle
      const { key } = (yield* inspect).sessions[0]!
      expect(yield* interrupt(key)).toEqual({ _tag: "Session" })
      expect(yield* client.peer.ended).toEqual({ _tag: "ClosedByUs" })
      expect(interrupted).toBe(1)
    }))

  it.effect("the limits of the server apply to each connection", () =>
    Effect.gen(function*() {
      const server = McpServer.layer(
        { name: "test", version: "1.0.0", limits: { maxInFlightRequests: 1 } },
        parked
      )
      const client = yield* kit.client(server, "2025-03-26")
      client.send("tools/call", { name: "parked" })
      yield* kit.settle
      const waiting = client.send("tools/list")
      yield* kit.settle
      // At the limit the next request waits.
      expect(client.answers(waiting)).toEqual([])
      const other = yield* kit.client(server, "2025-03-26")
      expect((yield* other.result("tools/list")).tools.length).toBe(1)
    }))

  it.effect("a handler has the caller of its request as plain JSON", () =>
    Effect.gen(function*() {
      const tool = Tool.layer(Tool.make("who"), () =>
        Effect.map(McpRequest, ({ caller, method }) => JSON.stringify({ caller, method })))
      for (const revision of Revision.all) {
        const client = yield* kit.client(kit.server(tool), revision)
        expect(JSON.parse((yield* client.call("who")).content[0].text)).toEqual({
          caller: {
            revision,
            info: { name: "kit", version: "1" },
            capabilities: {},
            ...(Revision.era(revision) === "session" ? { logLevel: "info" } : undefined)
          },
          method: "tools/call"
        })
      }
    }))
})
