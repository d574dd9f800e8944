/** The event store of a fleet, on a table in memory that fails when a test wants it. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Scope from "effect/Scope"
import * as TestClock from "effect/testing/TestClock"
import { writerBounds } from "../../src/internal/events/eventWriter.ts"
import { Lease, makeSharedEventStore, storeBounds } from "../../src/internal/events/sharedEventStore.ts"
import { MemoryTable } from "./memoryTable.ts"

const bounds = { maxBytesPerClient: 1024 * 1024, maxBytes: 4 * 1024 * 1024, lifetime: 3_600_000 }

const open = (table: MemoryTable, given: Partial<typeof bounds> = {}) =>
  makeSharedEventStore({ ...bounds, ...given }, () => table)

const written = TestClock.adjust("10 millis")

describe("events", () => {
  it.effect("gathers the events of some milliseconds, and writes them in one batch in their order", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const store = yield* open(table)
      for (let event = 1; event <= 20; event++) {
        store.append("a", 1, event, `a${event}`)
        store.append("b", 3, event, `b${event}`)
      }
      yield* written
      expect(table.batches.map(({ events }) => events.length)).toEqual([40])
      expect(yield* store.read("a", 1, 17)).toEqual(["a18", "a19", "a20"])
    }))

  it.effect("reads all events that were appended before, here at once and at another node after the flush", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const [one, two] = [yield* open(table), yield* open(table)]
      table.delay = 50
      one.append("s", 1, 1, "first")
      yield* TestClock.adjust("10 millis")
      one.append("s", 1, 2, "second")
      const read = yield* Effect.forkChild(one.read("s", 1, 0))
      const flushed = yield* Effect.forkChild(one.flush ?? Effect.void)
      yield* TestClock.adjust("49 millis")
      expect(flushed.pollUnsafe()).toBeUndefined()
      yield* TestClock.adjust("200 millis")
      expect(yield* Fiber.join(read)).toEqual(["first", "second"])
      yield* Fiber.join(flushed)
      expect(yield* two.read("s", 1, 1)).toEqual(["second"])
    }))

  it.effect("waits for an event that another node is still writing, for one second", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const [one, two] = [yield* open(table), yield* open(table)]
      table.delay = 300
      one.append("s", 1, 1, "first")
      const [late, never] = [
        yield* Effect.forkChild(two.read("s", 1, 1)),
        yield* Effect.forkChild(two.read("s", 1, 2))
      ]
      yield* TestClock.adjust("2 seconds")
      expect(yield* Fiber.join(late)).toEqual([])
      expect(yield* Fiber.join(never)).toBeUndefined()
    }))

  it.effect("stores an event once if a failed write had an effect", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const store = yield* open(table)
      table.failure = "after"
      store.append("s", 1, 1, "first")
      yield* TestClock.adjust("500 millis")
      store.append("s", 1, 2, "second")
      table.failure = undefined
      yield* TestClock.adjust("1 second")
      expect(yield* store.read("s", 1, 0)).toEqual(["first", "second"])
      expect(store.size).toBe(0)
    }))

  it.effect("a stream is unknown before an event that was not stored in time, at all nodes, and known after it", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const [one, two] = [yield* open(table), yield* open(table)]
      for (const event of [1, 2]) one.append("s", 1, event, `event ${event}`)
      yield* written
      table.failure = "before"
      for (const event of [3, 4]) one.append("s", 1, event, `event ${event}`)
      const flushed = yield* Effect.forkChild(one.flush ?? Effect.void)
      yield* TestClock.adjust("10 seconds")
      expect(one.size).toBe(0)
      expect(yield* one.read("s", 1, 2)).toBeUndefined()
      expect(flushed.pollUnsafe()).toBeUndefined()
      table.failure = undefined
      yield* TestClock.adjust("1 second")
      yield* Fiber.join(flushed)
      one.append("s", 1, 5, "event 5")
      yield* written
      for (const store of [one, two]) {
        expect(yield* store.read("s", 1, 2)).toBeUndefined()
        expect(yield* store.read("s", 1, 4)).toEqual(["event 5"])
      }
    }))

  it.effect("loses an event after 2 seconds, or after half of a shorter lease", () =>
    Effect.gen(function*() {
      for (const [lease, time] of [[1_000, 500], [3_000, 1_500], [60_000, 2_000], [undefined, 2_000]] as const) {
        const table = new MemoryTable()
        const opening = open(table)
        const store = yield* lease === undefined ? opening : Effect.provideService(opening, Lease, lease)
        table.failure = "before"
        store.append("s", 1, 1, "first")
        yield* TestClock.adjust(time - 1)
        expect(store.size).toBe(5)
        // The next attempt is half a second later at most.
        yield* TestClock.adjust(600)
        expect(store.size).toBe(0)
        table.failure = undefined
        yield* TestClock.adjust("1 second")
      }
    }))

  it.effect("gives up reading while the table fails for 5 seconds", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const store = yield* open(table)
      store.append("s", 1, 1, "first")
      yield* written
      table.failure = "before"
      const [short, long] = [
        yield* Effect.forkChild(store.read("s", 1, 0)),
        yield* Effect.forkChild(store.read("s", 1, 0))
      ]
      yield* TestClock.adjust("4 seconds")
      expect(short.pollUnsafe()).toBeUndefined()
      table.failure = undefined
      yield* TestClock.adjust("900 millis")
      expect(yield* Fiber.join(short)).toEqual(["first"])
      expect(yield* Fiber.join(long)).toEqual(["first"])
      table.failure = "before"
      const read = yield* Effect.forkChild(store.read("s", 1, 0))
      yield* TestClock.adjust("5 seconds")
      expect(yield* Fiber.join(read)).toBeUndefined()
    }))

  it.effect("replaces the later events of another node that no client has received", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const [one, two] = [yield* open(table), yield* open(table)]
      for (const event of [1, 2, 3, 4]) one.append("s", 1, event, `one ${event}`)
      yield* written
      // The server continues after the second event, as if the others had been lost.
      yield* two.read("s", 1, 2)
      two.append("s", 1, 3, "two 3")
      yield* written
      expect(yield* one.read("s", 1, 1)).toEqual(["one 2", "two 3"])
    }))

  it.effect("writes the events that wait when it is closed", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const scope = yield* Scope.make()
      const store = yield* Effect.provideService(open(table), Scope.Scope, scope)
      store.append("s", 1, 1, "first")
      const closed = yield* Effect.forkChild(Scope.close(scope, Exit.void))
      yield* written
      yield* Fiber.join(closed)
      expect(table.numbers("s", 1)).toEqual([1])
    }))

  it.effect("never reads with a gap, whatever fails", () =>
    Effect.gen(function*() {
      let seed = 7
      const random = (below: number) => {
        seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
        return Math.floor(seed / 2 ** 31 * below)
      }
      const table = new MemoryTable()
      const [one, two] = [yield* open(table, { maxBytesPerClient: 40_000 }), yield* open(table)]
      const last = new Map<number, number>()
      let known = 0
      for (let round = 0; round < 3_000; round++) {
        const stream = 1 + random(5)
        const action = random(10)
        if (action < 5) {
          const event = (last.get(stream) ?? 0) + 1
          last.set(stream, event)
          one.append("s", stream, event, `${stream}-${event}`, `client ${stream % 2}`)
        } else if (action < 7) yield* TestClock.adjust(random(500))
        else if (action === 7) table.failure = ([undefined, undefined, "before", "after"] as const)[random(4)]
        else if (action === 8) table.delay = random(5) * 700
        else {
          const end = last.get(stream) ?? 0
          const after = Math.max(0, end - random(6))
          table.delay = 0
          table.failure = undefined
          // A node confirms that another one has its stream when it has written all events.
          yield* TestClock.adjust("5 seconds")
          for (const store of [one, two]) {
            const read = yield* Effect.forkChild(store.read("s", stream, after))
            yield* TestClock.adjust("2 seconds")
            const events = yield* Fiber.join(read)
            if (events === undefined) continue
            known++
            expect(events).toEqual(
              Array.from({ length: end - after }, (_, index) => `${stream}-${after + 1 + index}`)
            )
          }
        }
      }
      expect(known).toBeGreaterThan(100)
    }))
})

describe("bounds", () => {
  const data = "x".repeat(1_000)

  it.effect("removes the oldest events of a client at maxBytesPerClient, those of complete streams first", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const store = yield* open(table, { maxBytesPerClient: 20_000 })
      for (let event = 1; event <= 4; event++) store.append("s", 1, event, data, "ada")
      for (let event = 1; event <= 4; event++) store.append("s", 2, event, data, "ada")
      store.complete("s", 2)
      for (let event = 1; event <= 4; event++) store.append("t", 3, event, data, "bob")
      yield* written
      for (let event = 5; event <= 14; event++) store.append("s", 1, event, data, "ada")
      yield* written
      expect(table.numbers("s", 2)).toEqual([])
      expect(table.numbers("t", 3)).toEqual([1, 2, 3, 4])
      expect(yield* store.read("s", 1, 3)).toEqual(Array(11).fill(data))
      for (let event = 15; event <= 24; event++) store.append("s", 1, event, data, "ada")
      yield* written
      expect(yield* store.read("s", 1, 3)).toBeUndefined()
      const numbers = table.numbers("s", 1)
      expect(numbers.length * 1_256).toBeLessThanOrEqual(20_000)
      expect(numbers.at(-1)).toBe(24)
    }))

  it.effect("removes events of the client with the most at maxBytes", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const store = yield* open(table, { maxBytes: 40_000 })
      for (let event = 1; event <= 5; event++) store.append("small", 1, event, data, "ada")
      for (let event = 1; event <= 60; event++) {
        store.append("large", 3, event, data, "bob")
        if (event % 10 === 0) yield* written
      }
      yield* written
      expect(table.numbers("small", 1)).toEqual([1, 2, 3, 4, 5])
      const numbers = table.numbers("large", 3)
      expect((numbers.length + 5) * 1_256).toBeLessThanOrEqual(40_000)
      expect(numbers.at(-1)).toBe(60)
    }))

  it.effect("does not store a larger event: its stream is unknown until it", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const store = yield* open(table, { maxBytesPerClient: 5_000 })
      store.append("s", 1, 1, "first")
      yield* written
      store.append("s", 1, 2, "x".repeat(5_000))
      store.append("s", 1, 3, "third")
      yield* written
      expect(yield* store.read("s", 1, 1)).toBeUndefined()
      expect(yield* store.read("s", 1, 2)).toEqual(["third"])
    }))

  it.effect("loses waiting events of the client with the most at the bound of the memory, and when memory is short", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const store = yield* open(table, { maxBytesPerClient: 64 * 1024 * 1024, maxBytes: 64 * 1024 * 1024 })
      table.failure = "before"
      store.append("small", 1, 1, data, "ada")
      const large = "x".repeat(1024 * 1024)
      for (let event = 1; event <= 10; event++) store.append(`large ${event}`, 3, 1, large, "bob")
      expect(store.size).toBeLessThanOrEqual(writerBounds.maxPendingChars)
      expect(store.size).toBeGreaterThanOrEqual(data.length)
      store.trim?.(data.length)
      expect(store.size).toBe(data.length)
      store.trim?.(0)
      expect(store.size).toBe(0)
    }))

  it.effect("removes the events of a session that has ended, and of streams that were completed 5 minutes ago", () =>
    Effect.gen(function*() {
      const table = new MemoryTable()
      const store = yield* open(table)
      for (const session of ["ended", "open"]) {
        for (const stream of [1, 2]) store.append(session, stream, 1, "data")
        store.complete(session, 2)
      }
      yield* written
      store.append("ended", 1, 2, "data")
      store.forget("ended")
      yield* written
      expect(table.numbers("ended", 1)).toEqual([])
      expect(store.size).toBe(0)
      yield* TestClock.adjust(storeBounds.completeLifetime - 60_000)
      expect(table.numbers("open", 2)).toEqual([1])
      yield* TestClock.adjust(120_000)
      expect(table.numbers("open", 2)).toEqual([])
      expect(table.numbers("open", 1)).toEqual([1])
      yield* TestClock.adjust(bounds.lifetime)
      expect(table.numbers("open", 1)).toEqual([])
    }))
})
