import { describe, expect, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Concurrency from "@skein/server/Concurrency"
import * as Middleware from "@skein/server/Middleware"
import * as Tool from "@skein/server/Tool"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { makeConcurrencyLimiter } from "../../src/internal/middleware/concurrencyLimiter.ts"
import * as kit from "../kit.ts"
import * as support from "./support.ts"

/** A tool that waits at a gate named by its argument, and a record of started and finished calls. */
const gated = Effect.sync(() => {
  const gates = new Map<string, Deferred.Deferred<void>>()
  const gate = (name: string) => {
    const known = gates.get(name) ?? Deferred.makeUnsafe<void>()
    gates.set(name, known)
    return known
  }
  const events: Array<string> = []
  const running = { now: 0, most: 0 }
  const wait = (tool: string) =>
    Tool.layer(Tool.make(tool, { input: { name: Schema.String } }), ({ name }) =>
      Effect.gen(function*() {
        events.push(name)
        running.most = Math.max(running.most, ++running.now)
        yield* Deferred.await(gate(name))
        return name
      }).pipe(Effect.ensuring(Effect.sync(() => void running.now--))))
  return {
    wait,
    events,
    running,
    open: (name: string) => Effect.andThen(Deferred.succeed(gate(name), undefined), kit.settle),
    begin: (client: kit.Client, name: string, tool = "wait") =>
      client.send("tools/call", { name: tool, arguments: { name } })
  }
})

const cancel = (client: kit.Client, requestId: unknown) =>
  Effect.andThen(Effect.sync(() => client.notify("notifications/cancelled", { requestId })), kit.settle)

for (const revision of support.eras) {
  describe(`${revision} · concurrency limit`, () => {
    it.effect("queues requests beyond the limit in order", () =>
      Effect.gen(function*() {
        const { begin, events, open, running, wait } = yield* gated
        const client = yield* kit.client(kit.server(Concurrency.layer({ limit: 2 }), wait("wait")), revision)
        const ids = ["a", "b", "c", "d"].map((name) => begin(client, name))
        yield* kit.settle
        expect(events).toEqual(["a", "b"])
        yield* open("b")
        expect(events).toEqual(["a", "b", "c"])
        for (const name of ["a", "c", "d"]) yield* open(name)
        for (const [i, id] of ids.entries()) {
          expect((yield* client.answer(id)).result.content[0].text).toBe(["a", "b", "c", "d"][i])
        }
        expect(running).toEqual({ now: 0, most: 2 })
        yield* client.result("tools/list")
      }))

    it.effect("refuses a request immediately if maxQueuedRequests requests are queued", () =>
      Effect.gen(function*() {
        const { begin, open, wait } = yield* gated
        const limit = Concurrency.layer({ limit: 1, maxQueuedRequests: 1 })
        const client = yield* kit.client(kit.server(limit, wait("wait")), revision)
        const first = begin(client, "a")
        const second = begin(client, "b")
        expect(yield* client.error("tools/call", { name: "wait", arguments: { name: "c" } })).toEqual({
          code: Concurrency.code,
          message:
            "Too many requests of tools/call wait: at most 1 are handled at the same time and 1 wait. Try again later"
        })
        yield* open("a")
        yield* open("b")
        expect((yield* client.answer(first)).result.content[0].text).toBe("a")
        expect((yield* client.answer(second)).result.content[0].text).toBe("b")
      }))

    it.effect("refuses a request after waitTimeout, and frees its place", () =>
      Effect.gen(function*() {
        const { begin, events, open, wait } = yield* gated
        const limit = Concurrency.layer({ limit: 1, maxQueuedRequests: 1, waitTimeout: "3 seconds" })
        const client = yield* kit.client(kit.server(limit, wait("wait")), revision)
        begin(client, "a")
        const second = begin(client, "b")
        yield* kit.settle
        yield* TestClock.adjust("2999 millis")
        expect(client.answers(second)).toEqual([])
        yield* TestClock.adjust("1 millis")
        expect((yield* client.answer(second)).error.message).toContain("none ended within 3 s")
        const third = begin(client, "c")
        yield* kit.settle
        yield* open("a")
        yield* open("c")
        expect((yield* client.answer(third)).result.content[0].text).toBe("c")
        expect(events).toEqual(["a", "c"])
      }))

    it.effect("cancels waiting requests, and passes the place of a cancelled running one on", () =>
      Effect.gen(function*() {
        const { begin, events, open, running, wait } = yield* gated
        const client = yield* kit.client(kit.server(Concurrency.layer({ limit: 1 }), wait("wait")), revision)
        const [a, b, c] = ["a", "b", "c"].map((name) => begin(client, name))
        yield* kit.settle
        yield* cancel(client, b)
        yield* cancel(client, a)
        expect(events).toEqual(["a", "c"])
        yield* open("c")
        expect((yield* client.answer(c!)).result.content[0].text).toBe("c")
        expect(client.answers(a!)).toEqual([])
        expect(client.answers(b!)).toEqual([])
        expect(running.now).toBe(0)
        const last = begin(client, "last")
        yield* kit.settle
        yield* open("last")
        expect((yield* client.answer(last)).result.content[0].text).toBe("last")
      }))

    it.effect("frees the place of a handler that fails, dies or throws", () =>
      Effect.gen(function*() {
        const bad = Tool.layer(Tool.make("bad", { input: { how: Schema.String } }), ({ how }) => {
          if (how === "throw") throw new Error("thrown")
          return how === "die" ? Effect.die("dead") : Effect.fail({ message: "failed" })
        })
        const limit = Concurrency.layer({ limit: 1, maxQueuedRequests: 0 })
        const client = yield* kit.client(kit.server(limit, bad), revision)
        for (const how of ["throw", "die", "fail", "throw", "die", "fail"]) {
          const { content } = yield* client.call("bad", { how })
          expect(content[0].text).toMatch(how === "fail" ? /^failed$/ : /^The tool bad failed unexpectedly/)
        }
      }))

    it.effect("limits each key separately, per tool and per principal", () =>
      Effect.gen(function*() {
        const { begin, events, wait } = yield* gated
        const perTool = Concurrency.layer({ limit: 1, key: Middleware.perTarget })
        const client = yield* kit.client(kit.server(perTool, wait("one"), wait("two")), revision)
        for (const [name, tool] of [["a", "one"], ["b", "one"], ["c", "two"]] as const) begin(client, name, tool)
        yield* kit.settle
        expect(events).toEqual(["a", "c"])
        const other = yield* gated
        const limit = Concurrency.layer({ limit: 1, key: Middleware.perPrincipal })
        const server = yield* support.build(kit.server(limit, other.wait("wait")))
        const alice = yield* support.connect(server, revision, support.as("alice"))
        const bob = yield* support.connect(server, revision, support.as("bob"))
        for (const [who, name] of [[alice, "a"], [alice, "b"], [bob, "c"]] as const) other.begin(who, name)
        yield* kit.settle
        expect(other.events.toSorted()).toEqual(["a", "c"])
      }))
  })
}

it.effect("forgets a key without requests", () =>
  Effect.gen(function*() {
    const room = makeConcurrencyLimiter(503, {
      limit: 1,
      maxPerClient: 1,
      maxQueuedRequests: 1,
      waitTimeout: 1_000
    })
    const exchange = { method: "tools/call", params: { name: "t" } } as unknown as RequestContext
    const enter = (key: string, effect: Effect.Effect<JsonRpc.JsonObject>) =>
      Effect.forkChild(Effect.exit(room.run(key, exchange, () => effect)), { startImmediately: true })
    for (let i = 0; i < 100; i++) yield* enter(`done ${i}`, Effect.succeed({}))
    expect(room.size).toBe(0)
    const fibers = yield* Effect.forEach(["a", "a", "a", "b"], (key) => enter(key, Effect.never))
    expect(room.size).toBe(2)
    yield* TestClock.adjust("1 second")
    expect(room.size).toBe(2)
    yield* Fiber.interruptAll(fibers)
    expect(room.size).toBe(0)
  }).pipe(Effect.provideService(McpRequest, undefined as never)))

describe("defaults", () => {
  it.effect("defaults to 16 concurrent requests, and to 64 queued ones that wait for 30 seconds", () =>
    Effect.gen(function*() {
      const { begin, events, wait } = yield* gated
      const client = yield* kit.client(kit.server(Concurrency.layer(), wait("wait")), "2026-07-28")
      const ids = Array.from({ length: 81 }, (_, i) => begin(client, String(i)))
      yield* kit.settle
      expect(events).toHaveLength(16)
      const answered = () => ids.filter((id) => client.answers(id).length > 0).length
      expect(answered()).toBe(1)
      yield* TestClock.adjust("29 seconds")
      expect(answered()).toBe(1)
      yield* TestClock.adjust("1 second")
      yield* kit.settle
      expect(answered()).toBe(65)
    }))

  it.effect("ends a long queue without a stack overflow", () =>
    Effect.gen(function*() {
      const { begin, open, wait } = yield* gated
      const quick = Tool.layer(Tool.make("quick"), () => Effect.succeed("done"))
      const limit = Concurrency.layer({ limit: 1, maxQueuedRequests: 1000 })
      const client = yield* kit.client(kit.server(limit, wait("wait"), quick), "2026-07-28")
      begin(client, "a")
      const ids = Array.from({ length: 1000 }, () => client.send("tools/call", { name: "quick" }))
      yield* kit.settle
      yield* open("a")
      yield* client.answer(ids.at(-1)!)
      expect(ids.every((id) => client.answers(id)[0].result.content[0].text === "done")).toBe(true)
    }))
})
