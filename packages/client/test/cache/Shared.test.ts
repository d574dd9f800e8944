/** A store that several clients share, and a store that fails. */
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as TestClock from "effect/testing/TestClock"
import * as ResponseCache from "../../src/ResponseCache.ts"
import { mirroring, page, tool, warnings } from "../calls/listed.ts"
import * as ScriptedServer from "@skein/testing/ScriptedServer"
import { client, counted, countOf, minute } from "./cached.ts"

const server = "https://example.com/mcp"
const mine = { ttlMs: 60_000, cacheScope: "private" }

describe("a shared store", () => {
  it.effect("2026-07-28 · public: MAY serve the cached response to any user", () =>
    Effect.gen(function*() {
      const store = ResponseCache.make()
      const script = counted(minute)
      for (const partition of ["ada", "bob", undefined]) {
        const { client: it } = yield* client(script, { store, server, partition })
        assert.strictEqual(countOf(yield* it.listToolsPage()), 1)
      }
    }))

  for (const hints of [mine, { ttlMs: 60_000 }]) {
    it.effect(`2026-07-28 · ${hints === mine ? "private" : "no cacheScope"}: caches MUST NOT be shared across authorization contexts`, () =>
      Effect.gen(function*() {
        const store = ResponseCache.make()
        const script = counted(hints)
        const open = (partition: string) =>
          Effect.map(client(script, { store, server, partition }), ({ client }) => client)
        const [ada, bob, again] = [yield* open("ada"), yield* open("bob"), yield* open("ada")]
        assert.strictEqual(countOf(yield* ada.listToolsPage()), 1)
        assert.strictEqual(countOf(yield* bob.listToolsPage()), 2)
        assert.strictEqual(countOf(yield* again.listToolsPage()), 1)
      }))
  }

  it.effect("keeps no private responses of a client without a partition", () =>
    Effect.gen(function*() {
      const { client: it } = yield* client(counted(mine), { store: ResponseCache.make(), server })
      assert.strictEqual(countOf(yield* it.listToolsPage()), 1)
      assert.strictEqual(countOf(yield* it.listToolsPage()), 2)
    }))

  it.effect("does not return an older public response after a private one", () =>
    Effect.gen(function*() {
      let hints: object = minute
      const { client: it } = yield* client((request, server) => counted(hints)(request, server), {
        store: ResponseCache.make(),
        server,
        partition: "ada"
      })
      yield* it.listToolsPage()
      yield* TestClock.adjust(1)
      hints = { ttlMs: 1_000, cacheScope: "private" }
      yield* it.listToolsPage({ cache: "refresh" })
      hints = { ttlMs: 0 }
      yield* TestClock.adjust(1_000)
      assert.notProperty(yield* it.listToolsPage(), "cacheScope")
    }))

  it.effect("returns the later one of the private and the public response", () =>
    Effect.gen(function*() {
      const store = ResponseCache.make()
      const ada = yield* client(counted({ ttlMs: 1_000, cacheScope: "private" }), { store, server, partition: "ada" })
      const bob = yield* client(counted(minute), { store, server, partition: "bob" })
      yield* ada.client.listToolsPage()
      yield* TestClock.adjust(1)
      yield* bob.client.listToolsPage({ cache: "refresh" })
      yield* bob.client.listToolsPage({ cache: "refresh" })
      assert.strictEqual(countOf(yield* ada.client.listToolsPage()), 2)
    }))

  it.effect("separates servers by their configured name, not by the name that they report", () =>
    Effect.gen(function*() {
      const store = ResponseCache.make()
      const script = counted(minute)
      const one = yield* client(script, { store, server: "https://one.example" })
      const two = yield* client(script, { store, server: "https://two.example" })
      assert.strictEqual(countOf(yield* one.client.listToolsPage()), 1)
      assert.strictEqual(countOf(yield* two.client.listToolsPage()), 2)
      yield* two.client.clearCache
      assert.strictEqual(countOf(yield* one.client.listToolsPage()), 1)
    }))

  it.effect("discards entries of all clients after a notification to one", () =>
    Effect.gen(function*() {
      const store = ResponseCache.make()
      const script = counted(mine)
      const ada = yield* client(script, { store, server, partition: "ada" })
      const bob = yield* client(script, { store, server, partition: "bob" })
      yield* ada.client.listToolsPage()
      yield* bob.client.listToolsPage()
      ada.server.notify("notifications/tools/list_changed")
      yield* ada.client.ping()
      assert.strictEqual(countOf(yield* bob.client.listToolsPage()), 3)
    }))

  it.effect("2026-07-28 · MUST mirror: sends the headers of a tool that another client has listed", () =>
    Effect.gen(function*() {
      const store = ResponseCache.make()
      const inputSchema = { type: "object", properties: { a: { type: "string", "x-mcp-header": "A" } } }
      const script = ({ method }: { readonly method: string }) => {
        if (method === "tools/call") return ScriptedServer.success({ resultType: "complete", content: [] })
        const reply = page("2026-07-28", tool("t", { inputSchema })) as { readonly result: object }
        return ScriptedServer.success({ ...reply.result, ...minute })
      }
      const one = yield* mirroring(script, { cache: { store, server } })
      const two = yield* mirroring(script, { cache: { store, server } })
      yield* one.client.listToolsPage()
      yield* two.client.listToolsPage()
      assert.strictEqual(two.server.requests("tools/list").length, 0)
      yield* two.client.callTool("t", { a: "b" })
      assert.deepStrictEqual(two.calls.map(({ headers }) => headers), [{ "Mcp-Param-A": "b" }])
    }))
})

describe("a faulty store", () => {
  const over = (change: Partial<ResponseCache.Store>): ResponseCache.Store => ({ ...ResponseCache.make(), ...change })
  const broken: ReadonlyArray<readonly [string, Effect.Effect<never, unknown> | "throws"]> = [
    ["fails", Effect.fail("gone")],
    ["dies", Effect.die(new Error("bug"))],
    ["throws", "throws"],
    ["interrupts itself", Effect.interrupt],
    ["hangs", Effect.never]
  ]
  for (const [what, effect] of broken) {
    it.effect(`is bypassed with one warning for ten times its timeout if it ${what}`, () => {
      const { layer, logged } = warnings()
      return Effect.gen(function*() {
        let asked = 0
        const counting = () => {
          asked++
          if (effect === "throws") throw new Error("bug")
          return effect
        }
        const store = over({ get: counting, set: counting, invalidate: counting })
        const { client: it, server: answers } = yield* client(counted(minute), { store, server })
        const listing = Effect.gen(function*() {
          const fiber = yield* Effect.forkChild(it.listToolsPage(), { startImmediately: true })
          yield* TestClock.adjust(1_000)
          return yield* Fiber.join(fiber)
        })
        assert.strictEqual(countOf(yield* listing), 1)
        assert.deepStrictEqual([asked, logged.length], [1, 1])
        assert.strictEqual(countOf(yield* it.listToolsPage()), 2)
        answers.notify("notifications/tools/list_changed")
        yield* it.ping()
        assert.deepStrictEqual([asked, logged.length], [1, 1])
        yield* TestClock.adjust(10_000)
        assert.strictEqual(countOf(yield* listing), 3)
        assert.isAbove(asked, 1)
      }).pipe(Effect.scoped, Effect.provide(layer))
    })
  }

  it.effect("can be interrupted while it hangs, and works afterwards", () => {
    const { layer, logged } = warnings()
    return Effect.gen(function*() {
      let hangs = true
      const memory = ResponseCache.make()
      const store = over({ ...memory, get: (key) => hangs ? Effect.never : memory.get(key) })
      const { client: it } = yield* client(counted(minute), { store, server })
      const fiber = yield* Effect.forkChild(it.listToolsPage(), { startImmediately: true })
      assert.isTrue(Exit.hasInterrupts(yield* Effect.andThen(Fiber.interrupt(fiber), Fiber.await(fiber))))
      hangs = false
      assert.strictEqual(countOf(yield* it.listToolsPage()), 1)
      assert.strictEqual(countOf(yield* it.listToolsPage()), 1)
      assert.deepStrictEqual(logged, [])
    }).pipe(Effect.scoped, Effect.provide(layer))
  })

  it.effect("does not return entries that were invalidated while it was unavailable", () =>
    Effect.gen(function*() {
      let up = true
      const memory = ResponseCache.make()
      const or = <A>(effect: Effect.Effect<A, unknown>): Effect.Effect<A, unknown> =>
        Effect.suspend(() => up ? effect : Effect.fail("away"))
      const store = over({
        get: (key) => or(memory.get(key)),
        set: (key, entry) => or(memory.set(key, entry)),
        invalidate: (stale) => or(memory.invalidate(stale))
      })
      const { client: it, server: answers } = yield* client(counted(minute), { store, server })
      yield* it.listToolsPage()
      yield* it.listToolsPage({ cursor: "b" })
      yield* TestClock.adjust(1)
      up = false
      answers.notify("notifications/tools/list_changed")
      yield* it.ping()
      up = true
      yield* TestClock.adjust(10_000)
      assert.strictEqual(countOf(yield* it.listToolsPage()), 3)
      // The store has received the invalidation by now, so another client does not get the other page either.
      const other = yield* client(counted(minute), { store, server })
      yield* other.client.listToolsPage({ cursor: "b" })
      assert.strictEqual(other.server.requests("tools/list").length, 1)
    }))

  const entry: ResponseCache.Entry = { text: "{\"tools\":[]}", receivedAt: 0, ttlMs: 60_000 }
  const garbage: ReadonlyArray<readonly [string, unknown]> = [
    ["a value that is not an entry", 42],
    ["an entry of another shape", { text: 1, receivedAt: "x" }],
    ["text that is not JSON", { ...entry, text: "{" }],
    ["JSON that is not such a result", { ...entry, text: "{\"tools\":[{}]}" }],
    ["a response that is not a result", { ...entry, text: "{\"resultType\":\"input_required\"}" }],
    ["a time in the future", { ...entry, receivedAt: 1 }],
    ["a time that is not a number", { ...entry, receivedAt: NaN }],
    ["a ttl that is not a number", { ...entry, ttlMs: NaN }]
  ]
  for (const [what, given] of garbage) {
    it.effect(`is bypassed if it returns ${what}`, () =>
      Effect.gen(function*() {
        const store = over({ get: () => Effect.succeed(given as ResponseCache.Entry) })
        const { client: it } = yield* client(counted(minute), { store, server })
        assert.strictEqual(countOf(yield* it.listToolsPage()), 1)
      }))
  }

  it.effect("has its entries decoded like a server's response", () =>
    Effect.gen(function*() {
      const { client: it, server: answers } = yield* client(counted(minute), {
        store: over({ get: () => Effect.succeed(entry) }),
        server
      })
      assert.deepStrictEqual((yield* it.listToolsPage()).tools, [])
      assert.strictEqual(answers.requests("tools/list").length, 0)
    }))
})

describe("an in-memory store", () => {
  const key = (params: string): ResponseCache.Key => ({ server, method: "tools/list", params, partition: undefined })
  const entry = (text: string): ResponseCache.Entry => ({ text, receivedAt: 0, ttlMs: 1 })
  const has = (store: ResponseCache.Store, count: number) =>
    Effect.map(
      Effect.forEach(Array.from({ length: count }, (_, at) => at), (at) => store.get(key(`${at}`))),
      (found) => found.map((one) => one !== undefined)
    )

  it.effect("maxEntries: evicts the least recently used entry (default 1,000)", () =>
    Effect.gen(function*() {
      const store = ResponseCache.make({ maxEntries: 2 })
      for (const params of ["0", "1"]) yield* store.set(key(params), entry("x"))
      yield* store.get(key("0"))
      yield* store.set(key("2"), entry("x"))
      assert.deepStrictEqual(yield* has(store, 3), [true, false, true])
      const roomy = ResponseCache.make()
      for (let at = 0; at <= 1_000; at++) yield* roomy.set(key(`${at}`), entry("x"))
      assert.deepStrictEqual((yield* has(roomy, 1_001)).filter((one) => !one).length, 1)
      assert.isUndefined(yield* roomy.get(key("0")))
    }))

  it.effect("maxTotalChars: evicts the oldest entries and rejects a longer one (default 16 Mi)", () =>
    Effect.gen(function*() {
      const store = ResponseCache.make({ maxTotalChars: 1_000 })
      for (let at = 0; at < 4; at++) yield* store.set(key(`${at}`), entry("x".repeat(400)))
      assert.deepStrictEqual(yield* has(store, 4), [false, false, true, true])
      // A replaced entry counts once.
      for (let at = 0; at < 4; at++) yield* store.set(key("3"), entry("x".repeat(400)))
      assert.deepStrictEqual(yield* has(store, 4), [false, false, true, true])
      yield* store.set(key("3"), entry("x".repeat(1_000)))
      assert.deepStrictEqual(yield* has(store, 4), [false, false, true, false])
      const roomy = ResponseCache.make()
      const half = "x".repeat(8 * 1024 * 1024 - 100)
      for (let at = 0; at < 3; at++) yield* roomy.set(key(`${at}`), entry(half))
      assert.deepStrictEqual(yield* has(roomy, 3), [false, true, true])
    }))

  it.effect("takes its bounds from the cache options of Client.make", () =>
    Effect.gen(function*() {
      const { client: it, server } = yield* client(counted(minute), { maxEntries: 1 })
      for (const get of [it.listToolsPage(), it.listPromptsPage(), it.listToolsPage()]) yield* get
      assert.strictEqual(server.requests("tools/list").length, 2)
      const small = yield* client(counted(minute), { maxTotalChars: 10 })
      for (const get of [small.client.listToolsPage(), small.client.listToolsPage()]) yield* get
      assert.strictEqual(small.server.requests("tools/list").length, 2)
    }))
})
