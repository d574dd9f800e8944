/** The differences between two trees, and the feed of slow viewers and without viewers. */
import { assert, describe, expect, it } from "@effect/vitest"
import type { HttpAnswer } from "@skein/server/Http"
import * as Arbitrary from "effect/Arbitrary"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { Feed } from "../src/internal/feed.ts"
import type { Row, Rows } from "../src/internal/messages.ts"
import { changes, rowOf, type Tree } from "../src/internal/tree.ts"

const row = (id: string, label = id): Row => ({ id, kind: "session", label, state: "idle", details: { a: label } })

const tree = (at: number, rows: ReadonlyArray<Row>): Tree => ({ at, rows: new Map(rows.map((one) => [one.id, one])) })

const apply = (seen: Map<string, Row>, events: Iterable<Rows>): Map<string, Row> => {
  for (const { remove, reset, set } of events) {
    if (reset === true) seen.clear()
    for (const id of remove ?? []) seen.delete(id)
    for (const one of set ?? []) seen.set(one.id, one)
  }
  return seen
}

describe("changes", () => {
  it("contain all rows at first, and only differences later", () => {
    const first = tree(1, [row("a"), row("b")])
    assert.deepEqual([...changes(undefined, first, 9)], [{ at: 1, reset: true, set: [row("a"), row("b")] }])
    const second = tree(2, [row("b"), row("c"), row("d", "new")])
    assert.deepEqual([...changes(first, second, 9)], [{ at: 2, set: [row("c"), row("d", "new")], remove: ["a"] }])
    // Equal rows that are other objects.
    assert.deepEqual([
      ...changes(
        second,
        tree(3, Array.from(second.rows.values(), (one) => ({ ...one, details: { ...one.details! } }))),
        9
      )
    ], [{ at: 3 }])
    assert.deepEqual([...changes(second, tree(4, [row("b"), row("c"), row("d", "other")]), 9)], [
      { at: 4, set: [row("d", "other")] }
    ])
    assert.deepEqual([...changes(undefined, tree(5, []), 9)], [{ at: 5, reset: true }])
  })

  const State = Schema.Array(
    Schema.Struct({ id: Schema.Literals(["a", "b", "c", "d", "e", "f"]), label: Schema.Literals(["x", "y"]) })
  )

  it.effect.prop(
    "bring a viewer from any tree to any other, in messages of at most maxRowsPerMessage rows",
    [
      Arbitrary.schema(State),
      Arbitrary.schema(State),
      Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 4 })))
    ],
    ([before, after, size]) =>
      Effect.sync(() => {
        const [one, other] = [before, after].map((rows, at) => tree(at, rows.map(({ id, label }) => row(id, label))))
        const seen = apply(new Map(), changes(undefined, one!, size))
        assert.deepEqual(seen, new Map(one!.rows))
        const events = [...changes(one, other!, size)]
        assert.deepEqual(new Map([...apply(seen, events)].sort()), new Map([...other!.rows].sort()))
        for (const { remove = [], set = [] } of events) assert.isAtMost(remove.length + set.length, size)
        assert.deepEqual(
          events.map(({ continues }) => continues === true),
          events.map((_, at) => at < events.length - 1)
        )
      })
  )
})

it("a row has no members without a value, and bounded texts", () => {
  const made = rowOf("s", {
    id: "1",
    kind: "task",
    label: "a\u0007b".repeat(200),
    state: "running",
    details: {
      long: "x".repeat(5_000),
      number: 4,
      ...Object.fromEntries(Array.from({ length: 99 }, (_, at) => [`d${at}`, at]))
    }
  }, { maxPayloadChars: 1_000 })
  expect(Object.keys(made)).toEqual(["id", "kind", "label", "state", "details"])
  assert.isTrue(made.label.startsWith("a\\u{7}b"))
  assert.isBelow(made.label.length, 700)
  assert.strictEqual((made.details!["long"] as string).length, 1_001)
  assert.strictEqual(Object.keys(made.details!).length, 30)
})

/** An answer whose client takes `room` messages, until `drain` is called. */
class SlowAnswer implements HttpAnswer {
  isClosed = false
  readonly slow = false
  readonly written: Array<string> = []
  room: number
  #resume: (() => void) | undefined
  #left: (() => void) | undefined

  constructor(room: number) {
    this.room = room
  }

  write(text: string): boolean {
    this.written.push(text)
    return --this.room > 0
  }

  drain(room: number): void {
    this.room = room
    this.#resume?.()
  }

  leave(): void {
    this.isClosed = true
    this.#left?.()
    this.#resume?.()
  }

  get drained(): Effect.Effect<void> {
    return Effect.callback((resume) => {
      this.#resume = () => resume(Effect.void)
    })
  }

  onClose(left: () => void): void {
    this.#left = left
  }

  addHeaders(): void {}
  reply(): void {}
  open(): void {}
  end(): void {
    this.isClosed = true
  }
  abort(): void {
    this.isClosed = true
  }

  /** The rows that the client has received. */
  get seen(): Map<string, Row> {
    const events = this.written.flatMap((text) => {
      const [, data] = /^event: rows\ndata: (.*)\n\n$/m.exec(text) ?? []
      return data === undefined ? [] : [JSON.parse(data) as Rows]
    })
    return apply(new Map(), events)
  }
}

describe("the feed", () => {
  const make = Effect.gen(function*() {
    const state = { reads: 0, tree: tree(0, Array.from({ length: 10 }, (_, at) => row(`${at}`))) }
    const feed = new Feed({
      read: Effect.sync(() => (state.reads++, state.tree)),
      hello: { version: 1, instance: "i", interval: 1_000, showPayloads: false },
      maxViewers: 2,
      maxRowsPerMessage: 2,
      scope: yield* Effect.scope,
      context: Context.omit()(yield* Effect.context<never>())
    })
    return { feed, state }
  })

  it.effect("sends a slow viewer all rows, and then the last tree instead of those in between", () =>
    Effect.gen(function*() {
      const { feed, state } = yield* make
      const viewer = new SlowAnswer(3)
      assert.isTrue(feed.add(viewer))
      yield* TestClock.adjust(1)
      const before = viewer.written.length
      for (let at = 1; at <= 5; at++) {
        state.tree = tree(at, [row(`only ${at}`)])
        yield* TestClock.adjust(1_000)
      }
      // Nothing was added meanwhile.
      assert.strictEqual(viewer.written.length, before)
      viewer.drain(99)
      yield* TestClock.adjust(1)
      assert.strictEqual(viewer.seen.size, 10)
      yield* TestClock.adjust(1_000)
      assert.deepEqual([...viewer.seen.keys()], ["only 5"])
    }))

  it.effect("reads once per interval for all viewers, and never without one", () =>
    Effect.gen(function*() {
      const { feed, state } = yield* make
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(state.reads, 0)
      const viewers = [new SlowAnswer(Infinity), new SlowAnswer(Infinity), new SlowAnswer(Infinity)]
      assert.deepEqual(viewers.map((viewer) => feed.add(viewer)), [true, true, false])
      yield* TestClock.adjust("10 seconds")
      assert.strictEqual(state.reads, 11)
      for (const viewer of viewers.slice(0, 2)) assert.strictEqual(viewer.seen.size, 10)
      viewers[0]!.leave()
      yield* TestClock.adjust("1 second")
      assert.strictEqual(state.reads, 12)
      viewers[1]!.leave()
      assert.strictEqual(feed.viewers, 0)
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(state.reads, 12)
      assert.isTrue(feed.add(viewers[2]!))
      yield* TestClock.adjust(1)
      assert.strictEqual(state.reads, 13)
    }))
})
