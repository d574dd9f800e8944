/** The tests of an event store on a real database, which several nodes share. */
import { expect, it } from "@effect/vitest"
import type { Store } from "@skein/server/EventStore"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/** Nodes on one new database. */
export interface Nodes {
  readonly stores: ReadonlyArray<Store>
  /** How many events the database has. */
  readonly count: Effect.Effect<number>
}

export interface Bounds {
  readonly maxBytesPerClient?: number
  readonly maxBytes?: number
  readonly lifetime?: number
}

export const eventStoreTests = (open: (bounds?: Bounds) => Effect.Effect<Nodes, never, Scope.Scope>): void => {
  it.live("any node reads the events of a stream, with quotes, control characters and other alphabets", () =>
    Effect.gen(function*() {
      const { stores: [one, two, three] } = yield* open()
      const data = [JSON.stringify("\0 \ud800 \" ' \\ {}, NULL"), "null", "{}", "", "茶 🍵 é", ",", "\"a\",\"b\""]
      data.forEach((text, index) => one!.append("s", 8_589_934_592 * 3 + 1, index + 1, text, "ada"))
      yield* one!.flush!
      for (const store of [one!, two!, three!]) {
        expect(yield* store.read("s", 8_589_934_592 * 3 + 1, 0)).toEqual(data)
        expect(yield* store.read("s", 8_589_934_592 * 3 + 1, 5)).toEqual(data.slice(5))
        expect(yield* store.read("s", 8_589_934_592 * 3 + 1, data.length)).toEqual([])
        expect(yield* store.read("s", 8_589_934_592 * 3 + 3, 0)).toBeUndefined()
        expect(yield* store.read("other", 8_589_934_592 * 3 + 1, 1)).toBeUndefined()
      }
    }))

  it.live("stores 20,000 events of 200 streams of three nodes in order", () =>
    Effect.gen(function*() {
      const { stores } = yield* open({ maxBytesPerClient: 2 ** 30, maxBytes: 2 ** 30 })
      for (let event = 1; event <= 100; event++) {
        for (let stream = 0; stream < 200; stream++) {
          stores[stream % 3]!.append(`session ${stream % 20}`, stream, event, `${stream} ${event}`)
        }
        if (event % 10 === 0) yield* Effect.sleep(1)
      }
      yield* Effect.forEach(stores, ({ flush }) => flush!, { concurrency: 3 })
      for (let stream = 0; stream < 200; stream++) {
        const events = yield* stores[(stream + 1) % 3]!.read(`session ${stream % 20}`, stream, 0)
        expect(events).toEqual(Array.from({ length: 100 }, (_, index) => `${stream} ${index + 1}`))
      }
    }))

  it.live("another node continues a stream, and a third one reads the events of both", () =>
    Effect.gen(function*() {
      const { stores: [one, two, three] } = yield* open()
      for (const event of [1, 2, 3]) one!.append("s", 1, event, `one ${event}`)
      yield* one!.flush!
      expect(yield* two!.read("s", 1, 1)).toEqual(["one 2", "one 3"])
      for (const event of [4, 5]) two!.append("s", 1, event, `two ${event}`)
      yield* two!.flush!
      expect(yield* three!.read("s", 1, 1)).toEqual(["one 2", "one 3", "two 4", "two 5"])
      // The client has received only the first: the server continues after it.
      three!.append("s", 1, 2, "three 2")
      yield* three!.flush!
      expect(yield* one!.read("s", 1, 1)).toEqual(["three 2"])
    }))

  it.live("has at most maxBytes for each node, whatever clients do", () =>
    Effect.gen(function*() {
      const { count, stores } = yield* open({ maxBytesPerClient: 50_000, maxBytes: 100_000 })
      const data = "x".repeat(1_000)
      for (let event = 1; event <= 300; event++) {
        stores.forEach((store, node) => {
          for (const client of ["ada", "bob", "cyd"]) store.append(`${client} ${node}`, node, event, data, client)
        })
        if (event % 50 === 0) yield* Effect.forEach(stores, ({ flush }) => flush!)
      }
      yield* Effect.forEach(stores, ({ flush }) => flush!)
      expect(yield* count).toBeLessThanOrEqual(3 * 100_000 / 1_000)
      expect(yield* stores[1]!.read("ada 0", 0, 299)).toEqual([data])
    }))

  it.live("removes the events of a session that has ended", () =>
    Effect.gen(function*() {
      const { count, stores: [one, two] } = yield* open()
      for (const session of ["ended", "open"]) {
        for (const stream of [1, 2, 3]) one!.append(session, stream, 1, "data")
      }
      yield* one!.flush!
      expect(yield* two!.read("ended", 1, 0)).toEqual(["data"])
      two!.append("ended", 1, 2, "more")
      yield* two!.flush!
      for (const store of [one!, two!]) store.forget("ended")
      yield* Effect.forEach([one!, two!], ({ flush }) => flush!)
      expect(yield* one!.read("ended", 1, 0)).toBeUndefined()
      expect(yield* count).toBe(3)
    }))
}
