/** The locks of the stores of a proxy. */
import * as ProxyStore from "@skein/auth/ProxyStore"
import * as SqliteClient from "@skein/sql/SqliteClient"
import { afterEach, assert, describe, it, vi } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Scheduler from "effect/Scheduler"
import * as SqlClient from "effect/sql/SqlClient"
import * as Statement from "effect/sql/Statement"
import * as TestClock from "effect/testing/TestClock"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** Two stores over one database, each with a connection of its own. */
const sqlStores = Effect.gen(function*() {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-proxy-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true }))
  )
  const database = SqliteClient.layer({ filename: join(folder, "proxy.db") })
  const build = Effect.map(
    Layer.build(Layer.fresh(Layer.provideMerge(ProxyStore.layerSql, database))),
    (context) => ({
      store: Context.get(context, ProxyStore.ProxyStore),
      sql: Context.get(context, SqlClient.SqlClient)
    })
  )
  return [yield* build, yield* build] as const
})

/** Lets fibers run until each waits for the clock or for a lock. */
const settle = Effect.promise(async () => {
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve))
})

afterEach(() => void vi.restoreAllMocks())

describe("the locks of a store of a proxy", () => {
  it.effect("fail when they are not obtained in 90 seconds, also if another instance holds them", () =>
    Effect.gen(function*() {
      const [one, two] = yield* sqlStores
      const memory = ProxyStore.makeMemory()
      for (const [holder, other] of [[memory, memory], [one.store, one.store], [one.store, two.store]] as const) {
        const held = yield* Effect.forkChild(holder.withLock("a key", Effect.never))
        yield* settle
        let ran = false
        const waiting = yield* Effect.forkChild(Effect.flip(other.withLock("a key", Effect.sync(() => ran = true))))
        yield* settle
        yield* TestClock.adjust("89 seconds")
        yield* settle
        assert.isUndefined(waiting.pollUnsafe())
        yield* TestClock.adjust("2 seconds")
        const error = yield* Fiber.join(waiting)
        assert.instanceOf(error, ProxyStore.ProxyStoreError)
        assert.include(error.message, "was not obtained within 1m 30s")
        assert.isFalse(ran)
        yield* Fiber.interrupt(held)
        assert.strictEqual(yield* other.withLock("a key", Effect.succeed("free")), "free")
      }
    }))

  it.effect("are asked for by one fiber of an instance, and go to its other fibers in their order", () =>
    Effect.gen(function*() {
      const [one, two] = yield* sqlStores
      const held = yield* Effect.forkChild(one.store.withLock("a key", Effect.never))
      yield* settle
      let attempts = 0
      const count: Statement.Transformer = (statement) => {
        if (statement.compile()[0].startsWith("INSERT INTO skein_proxy_locks")) attempts++
        return Effect.succeed(statement)
      }
      const order: Array<number> = []
      const waiting = yield* Effect.forEach(
        Array.from({ length: 12 }, (_, at) => at),
        (at) => Effect.forkChild(two.store.withLock("a key", Effect.sync(() => order.push(at))))
      ).pipe(Effect.provideService(Statement.CurrentTransformer, count))
      yield* settle
      assert.strictEqual(attempts, 1)
      yield* Fiber.interrupt(held)
      yield* TestClock.adjust("1 second")
      yield* Effect.forEach(waiting, Fiber.join)
      assert.deepStrictEqual(order, Array.from({ length: 12 }, (_, at) => at))
      assert.strictEqual((yield* two.sql`SELECT name FROM skein_proxy_locks`).length, 0)
    }))

  it.effect("of a store in memory leave nothing behind, wherever they are interrupted", () =>
    Effect.gen(function*() {
      const tables = new Set<Map<unknown, unknown>>()
      const original = Map.prototype.set
      vi.spyOn(Map.prototype, "set").mockImplementation(function(this: Map<unknown, unknown>, key, value) {
        if (key === "a key") tables.add(this)
        return original.call(this, key, value)
      })
      const store = ProxyStore.makeMemory()
      for (let operations = 1; operations < 60; operations++) {
        // The fiber runs so many operations, and is interrupted when it yields.
        let asked = 0
        const scheduler = new Scheduler.MixedScheduler()
        scheduler.shouldYield = () => ++asked === operations
        const fiber = yield* Effect.forkChild(store.withLock("a key", Effect.never), { startImmediately: true }).pipe(
          Effect.provideService(Scheduler.Scheduler, scheduler)
        )
        yield* Fiber.interrupt(fiber)
        for (const table of tables) assert.isFalse(table.has("a key"), `after ${operations} operations`)
      }
      assert.isAbove(tables.size, 0)
    }))
})
