/** The lists that a pool stores, and the streams of its changes. */
import { assert, describe, it } from "@effect/vitest"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Transport } from "@skein/runtime/Connection"
import { OpenFailed, TransportError } from "@skein/runtime/TransportError"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as TestClock from "effect/testing/TestClock"
import * as Client from "../../src/Client.ts"
import * as ClientPool from "../../src/ClientPool.ts"
import * as Middleware from "../../src/Middleware.ts"
import { acknowledged, id, listen } from "../subscriptions/kit.ts"

type Shape = "2025-11-25" | "2026-07-28"

/** A server whose tools a test changes. */
const changing = (
  revision: Shape,
  capabilities: JsonRpc.JsonObject = { tools: { listChanged: true }, prompts: {} }
) => {
  let tools: ReadonlyArray<string> = ["a"]
  let subscription: JsonRpc.Id | undefined
  const server = ScriptedServer.make(ScriptedServer.handshake(revision, ({ id: request, method }, server) => {
    switch (method) {
      case "tools/list":
        return ScriptedServer.success({
          resultType: "complete",
          tools: tools.map((name) => ({ name, inputSchema: { type: "object" } }))
        })
      case "prompts/list":
        return ScriptedServer.success({ resultType: "complete", prompts: [{ name: "p" }] })
      case listen:
        subscription = request
        return server.notify(acknowledged, { _meta: { [id]: request }, notifications: { toolsListChanged: true } })
      default:
        return ScriptedServer.methodNotFound(method)
    }
  }, capabilities))
  const change = (...now: ReadonlyArray<string>): void => {
    tools = now
    server.notify(
      "notifications/tools/list_changed",
      subscription === undefined ? undefined : { _meta: { [id]: subscription } }
    )
  }
  return { server, change, setTools: (...now: ReadonlyArray<string>) => void (tools = now) }
}

/** Never responds. */
const hanging = () => ScriptedServer.make(() => "no response")

/** Opens, and never lists its tools. */
const mute = () => ScriptedServer.make(ScriptedServer.handshake("2025-11-25", () => "no response", { tools: {} }))

const failing: Transport = {
  connect: Effect.fail(new TransportError({ reason: new OpenFailed({ message: "The command was not found" }) }))
}

/** Lets all runnable fibers proceed. */
const settle = Effect.repeat(TestClock.adjust(0), { times: 5 })

const toolsOf = (pool: ClientPool.ClientPool["Service"]) =>
  Effect.map(pool.tools, (all) => all.map(({ result }) => Result.getOrThrow(result).map(({ name }) => name).join()))

const readyOf = (pool: ClientPool.ClientPool["Service"], options?: ClientPool.ReadyOptions) =>
  Effect.map(pool.ready(options), (all) =>
    all.map(({ server, tools }) =>
      [
        server,
        tools === undefined
          ? "pending"
          : Result.isFailure(tools)
          ? tools.failure.reason._tag
          : tools.success.map(({ name }) => name).join()
      ].join(" ")
    ))

for (const revision of ["2025-11-25", "2026-07-28"] as const) {
  describe(revision, () => {
    it.effect("stores a list until the server reports that it has changed, and requests it again at once", () =>
      Effect.gen(function*() {
        const { change, server } = changing(revision)
        const pool = yield* ClientPool.make({ a: { transport: server.transport } })
        yield* toolsOf(pool)
        yield* settle
        yield* toolsOf(pool)
        const count = server.requests("tools/list").length
        for (let turn = 0; turn < 5; turn++) assert.deepStrictEqual(yield* toolsOf(pool), ["a"])
        assert.strictEqual(server.requests("tools/list").length, count)
        yield* TestClock.adjust("1 second")
        change("a", "b")
        yield* settle
        assert.strictEqual(server.requests("tools/list").length, count + 1)
        assert.deepStrictEqual(yield* toolsOf(pool), ["a,b"])
        assert.strictEqual(server.requests("tools/list").length, count + 1)
      }))

    it.effect("requests the lists each time from a server that reports no changes of them, and with cacheLists: false", () =>
      Effect.gen(function*() {
        const { server } = changing(revision)
        const pool = yield* ClientPool.make({ a: { transport: server.transport } })
        for (let turn = 0; turn < 3; turn++) yield* Effect.andThen(pool.prompts, settle)
        assert.isAtLeast(server.requests("prompts/list").length, 3)
        const other = changing(revision)
        const direct = yield* ClientPool.make({ a: { transport: other.server.transport } }, { cacheLists: false })
        for (let turn = 0; turn < 3; turn++) yield* Effect.andThen(toolsOf(direct), settle)
        assert.strictEqual(other.server.requests("tools/list").length, 3)
        for (let turn = 0; turn < 2; turn++) yield* Effect.andThen(direct.ready({ readyTimeout: "1 second" }), settle)
        assert.strictEqual(other.server.requests("tools/list").length, 5)
        assert.strictEqual(other.server.requests(listen).length, 0)
      }))
  })
}

describe("pool.ready", () => {
  it.effect("has the servers that are ready now, and does not wait for one that hangs", () =>
    Effect.gen(function*() {
      const servers = Object.fromEntries(
        Array.from({ length: 10 }, (_, at) => [`s${at}`, { transport: changing("2025-11-25").server.transport }])
      )
      const pool = yield* ClientPool.make({
        hanging: { transport: hanging().transport },
        mute: { transport: mute().transport },
        ...servers,
        failing: { transport: failing }
      })
      yield* readyOf(pool)
      yield* settle
      // The clock does not move.
      const ready = yield* readyOf(pool)
      assert.deepStrictEqual(ready.slice(0, 3), ["hanging pending", "mute pending", "s0 a"])
      assert.deepStrictEqual([ready.length, ready.at(-1)], [13, "failing ConnectionFailed"])
      assert.strictEqual(ready.filter((line) => line.endsWith(" a")).length, 10)
    }))

  it.effect("waits until the timeout after the beginning of the opening, and then no longer", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make({
        hanging: { transport: hanging().transport },
        a: { transport: changing("2025-11-25").server.transport }
      }, { timeout: "1 hour" })
      const first = yield* Effect.forkChild(readyOf(pool, { readyTimeout: "2 seconds" }), { startImmediately: true })
      yield* TestClock.adjust("1999 millis")
      assert.isUndefined(first.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      assert.deepStrictEqual(yield* Fiber.join(first), ["hanging pending", "a a"])
      assert.deepStrictEqual(yield* readyOf(pool, { readyTimeout: "2 seconds" }), ["hanging pending", "a a"])
    }))

  it.effect("uses the previous list while a new one is under way", () =>
    Effect.gen(function*() {
      let silent = false
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", ({ method }) =>
        silent
          ? "no response"
          : method === "tools/list"
          ? ScriptedServer.success({ tools: [{ name: "a", inputSchema: { type: "object" } }] })
          : ScriptedServer.methodNotFound(method), { tools: { listChanged: true } }))
      const pool = yield* ClientPool.make({ a: { transport: server.transport } })
      yield* pool.tools
      silent = true
      server.notify("notifications/tools/list_changed")
      yield* settle
      assert.deepStrictEqual(yield* readyOf(pool), ["a a"])
      const waiting = yield* Effect.forkChild(readyOf(pool, { readyTimeout: "1 second" }), { startImmediately: true })
      yield* TestClock.adjust("1 second")
      assert.deepStrictEqual(yield* Fiber.join(waiting), ["a a"])
    }))

  it.effect("reports a server that is removed while its list is under way, without interrupting the caller", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make({ mute: { transport: mute().transport } })
      yield* pool.client("mute")
      const listing = yield* Effect.forkChild(pool.tools, { startImmediately: true })
      const waiting = yield* Effect.forkChild(readyOf(pool, { readyTimeout: "1 minute" }), { startImmediately: true })
      yield* settle
      yield* pool.remove("mute")
      assert.deepStrictEqual(yield* Fiber.join(waiting), ["mute Closed"])
      const [listed] = yield* Fiber.join(listing)
      assert.isTrue(Result.isFailure(listed!.result) && listed!.result.failure.reason._tag === "Closed")
    }))

  it.effect("neither lists nor waits for servers that are not selected", () =>
    Effect.gen(function*() {
      const a = changing("2025-11-25")
      const pool = yield* ClientPool.make({
        hanging: { transport: hanging().transport },
        a: { transport: a.server.transport }
      })
      yield* pool.client("a")
      const options: ClientPool.ReadyOptions = { servers: (name) => name === "a", readyTimeout: "1 hour" }
      assert.deepStrictEqual(yield* readyOf(pool, options), ["a a"])
    }))
})

describe("a server that reports changes without end", () => {
  it.effect("is asked for its list once in a second", () =>
    Effect.gen(function*() {
      let listed = 0
      const server = ScriptedServer.make(ScriptedServer.handshake("2025-11-25", ({ method }, server) => {
        if (method !== "tools/list") return ScriptedServer.methodNotFound(method)
        server.notify("notifications/tools/list_changed")
        return ScriptedServer.success({ tools: [{ name: `t${++listed}`, inputSchema: { type: "object" } }] })
      }, { tools: { listChanged: true } }))
      const pool = yield* ClientPool.make({ a: { transport: server.transport } })
      yield* pool.tools
      for (let second = 0; second < 60; second++) yield* TestClock.adjust("1 second")
      assert.isAtMost(listed, 63)
      assert.isAtLeast(listed, 50)
    }))
})

describe("concurrency", () => {
  it.effect("is not used up by servers that hang: each gives way to the next one after 5 seconds", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make({
        ...Object.fromEntries(Array.from({ length: 8 }, (_, at) => [`h${at}`, { transport: hanging().transport }])),
        a: { transport: changing("2025-11-25").server.transport }
      })
      const opening = yield* Effect.forkChild(pool.client("a"), { startImmediately: true })
      yield* TestClock.adjust("4999 millis")
      assert.isUndefined(opening.pollUnsafe())
      yield* TestClock.adjust("1 millis")
      yield* Fiber.join(opening)
      yield* TestClock.adjust("1 minute")
      // A permit is returned once: the servers that hang are opened again and again, 8 at a time.
      yield* pool.add("b", { transport: changing("2025-11-25").server.transport })
      const later = yield* Effect.forkChild(pool.client("b"), { startImmediately: true })
      yield* TestClock.adjust("10 seconds")
      yield* Fiber.join(later)
    }))
})

describe("pool.changes", () => {
  it.effect("names all servers first, then those whose state or tools have changed, until the pool is closed", () =>
    Effect.gen(function*() {
      const { change, server } = changing("2025-11-25")
      const seen: Array<ClientPool.PoolChange> = []
      const pool = yield* ClientPool.make({ a: { transport: server.transport } })
      yield* pool.client("a")
      yield* Effect.forkChild(Stream.runForEach(pool.changes, (change) => Effect.sync(() => void seen.push(change))))
      yield* settle
      assert.deepStrictEqual(seen.flatMap(({ servers }) => servers), ["a"])
      assert.deepStrictEqual(seen.flatMap(({ tools }) => tools), ["a"])
      seen.length = 0
      change("a", "b")
      yield* settle
      assert.deepStrictEqual(seen, [{ servers: [], tools: ["a"], prompts: [], resources: [] }])
      // The same list again is not a change.
      change("a", "b")
      yield* settle
      assert.strictEqual(seen.length, 1)
      yield* pool.add("b", { transport: changing("2025-11-25").server.transport })
      yield* settle
      assert.deepStrictEqual(
        new Set(seen.slice(1).flatMap(({ servers, tools }) => [...servers, ...tools])),
        new Set(["b"])
      )
      assert.include(seen.flatMap(({ tools }) => tools), "b")
      yield* pool.remove("b")
      yield* settle
      assert.deepStrictEqual(seen.at(-1), { servers: ["b"], tools: [], prompts: [], resources: [] })
    }))

  it.effect("gives a slow reader all names at once", () =>
    Effect.gen(function*() {
      const pool = yield* ClientPool.make({}, { maxServers: 3 })
      const seen: Array<ReadonlyArray<string>> = []
      const reading = yield* Effect.forkChild(
        Stream.runForEach(pool.changes, ({ servers }) => {
          seen.push(servers)
          return Effect.sleep("1 minute")
        }),
        { startImmediately: true }
      )
      yield* pool.add("x", { transport: { connect: Effect.never }, timeout: "1 hour" })
      yield* settle
      for (let at = 0; at < 20; at++) {
        yield* pool.add(`s${at}`, { transport: failing })
        yield* pool.remove(`s${at}`)
      }
      yield* TestClock.adjust("3 minutes")
      // Twice `maxServers` names: those of servers that were removed long ago are forgotten.
      assert.deepStrictEqual(seen, [["x"], ["s14", "s15", "s16", "s17", "s18", "s19"]])
      yield* Fiber.interrupt(reading)
    }))
})

describe("the middleware of a pool", () => {
  it.effect("gets the calls of each server with its name, outside of the middleware of the server", () =>
    Effect.gen(function*() {
      const log: Array<string> = []
      const named = (label: string): Middleware.Middleware => (next) => (call) => {
        log.push(`${label} ${call.server} ${call.method.name}`)
        return next(call)
      }
      const [a, b] = [changing("2025-11-25"), changing("2025-11-25")]
      const pool = yield* ClientPool.make({
        a: { transport: a.server.transport, options: { middleware: [named("own")] } },
        b: { transport: b.server.transport }
      }, { middleware: [named("pool")] })
      yield* Effect.flatMap(pool.client("a"), ({ listPrompts }) => listPrompts())
      yield* Effect.flatMap(pool.client("b"), ({ listPrompts }) => listPrompts())
      assert.deepStrictEqual(log, ["pool a prompts/list", "own a prompts/list", "pool b prompts/list"])
    }))

  it.effect("can deny a call, so that nothing is sent", () =>
    Effect.gen(function*() {
      const { server } = changing("2025-11-25")
      const pool = yield* ClientPool.make({ a: { transport: server.transport } }, {
        middleware: [(next) => (call) => Middleware.isToolCall(call, "a") ? Middleware.deny("Not today") : next(call)]
      })
      const { message, reason } = yield* Effect.flip(Effect.flatMap(pool.client("a"), ({ callTool }) => callTool("a")))
      assert.deepStrictEqual([reason._tag, message], ["Denied", "Not today"])
      assert.strictEqual(server.requests("tools/call").length, 0)
      const toolkit = yield* Client.toolkit(pool)
      const results = Array.from(yield* Stream.runCollect(yield* toolkit.handle("a_a", {})))
      assert.deepInclude(results[0]!.encodedResult, { reason: "Denied", message: "Not today" })
    }))
})
