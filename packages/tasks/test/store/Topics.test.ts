import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { TestClock } from "effect/testing"
import { all, each, fresh, insert, type Opened, pg } from "./kit.ts"

const day = 86_400_000

/** The values of the events that a task has not received. */
const values = ({ store }: Opened, id: string) =>
  Effect.flatMap(
    store.readEvents(id),
    (events) => Effect.forEach(events, ({ place }) => Effect.map(store.readEvent(id, place), Number))
  )

const event = "paid@order/1"

each(all, (backend) => {
  it.effect("sends an event to each task that has subscribed, and to no other", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const [one, two, other] = yield* Effect.all([insert(opened), insert(opened), insert(opened)])
      yield* store.subscribe(one!.id, event)
      yield* store.subscribe(two!.id, event)
      yield* store.subscribe(two!.id, event)
      yield* store.subscribe(other!.id, "paid@order/2")
      expect(yield* store.sendAll("paid", "order/1", 1, { key: "k" })).toBe(2)
      expect(yield* store.sendAll("paid", "order/1", 1, { key: "k" })).toBe(0)
      expect(yield* store.sendAll("paid", "order/1", 2)).toBe(2)
      expect(yield* values(opened, one!.id)).toEqual([1, 2])
      expect(yield* values(opened, two!.id)).toEqual([1, 2])
      expect(yield* values(opened, other!.id)).toEqual([])
      expect((yield* store.readEvents(one!.id)).map(({ name }) => name)).toEqual([event, event])
    }))

  it.effect("stores the last 100 events of a day for tasks that subscribe later", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      for (let n = 1; n <= 103; n++) yield* store.sendAll("paid", "order/1", n, { key: `k${n}` })
      const first = yield* insert(opened)
      yield* store.subscribe(first.id, event)
      const known = yield* values(opened, first.id)
      expect([known.length, known[0], known.at(-1)]).toEqual([100, 4, 103])
      // A repetition reaches the tasks that do not have the event.
      expect(yield* store.sendAll("paid", "order/1", 103, { key: "k103" })).toBe(0)
      yield* TestClock.adjust(day / 2)
      yield* store.sendAll("paid", "order/1", 104)
      yield* TestClock.adjust(day / 2)
      const second = yield* insert(opened)
      yield* store.subscribe(second.id, event)
      expect(yield* values(opened, second.id)).toEqual([104])
      yield* store.sendAll("other", "order/1", 1)
      expect(yield* sql.unsafe("SELECT event FROM skein_task_topic_events WHERE event = 'paid@order/1'")).toHaveLength(
        1
      )
    }))

  it.effect("leaves out tasks that have ended, and forgets those that are deleted", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const [one, two] = yield* Effect.all([insert(opened), insert(opened)])
      yield* store.subscribe(one!.id, event)
      yield* store.subscribe(two!.id, event)
      yield* store.finish(one!.id, { status: "cancelled" })
      yield* store.settle(one!.id)
      expect(yield* store.sendAll("paid", "order/1", 1)).toBe(1)
      // Its run does not know of the cancellation yet.
      yield* store.subscribe(one!.id, "late@order/1")
      yield* store.remove([one!.id])
      expect(yield* sql.unsafe("SELECT DISTINCT task_id FROM skein_task_topics")).toEqual([{ task_id: two!.id }])
    }))

  it.effect("sends an event to all tasks or to none", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const [one, two] = yield* Effect.all([insert(opened), insert(opened)])
      yield* store.subscribe(one!.id, event)
      yield* store.subscribe(two!.id, event)
      yield* store.transaction(Effect.forEach(Array.from({ length: 1000 }), () => store.send(two!.id, "x", 1)))
      expect(yield* Effect.flip(store.sendAll("paid", "order/1", 1))).toMatchObject({
        reason: { _tag: "TooManyEvents" }
      })
      expect(yield* store.readEvents(one!.id)).toEqual([])
      expect(yield* Effect.flip(store.sendAll("paid", "", undefined))).toMatchObject({
        reason: { _tag: "InvalidEvent" }
      })
      expect(yield* Effect.flip(store.sendAll("paid", "t".repeat(510), 1))).toMatchObject({
        reason: { _tag: "InvalidEvent" }
      })
    }))
})

each([pg], (backend) => {
  it.live("a task that subscribes while events are sent receives each once", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const clients = yield* Effect.all([client, client, client])
      const tasks = yield* Effect.forEach(Array.from({ length: 10 }), () => insert(clients[0]!))
      yield* Effect.all([
        Effect.forEach(
          Array.from({ length: 20 }, (_, n) => n),
          (n) => clients[n % 2]!.store.sendAll("paid", "order/1", n, { key: `key ${n}` }),
          { concurrency: 4, discard: true }
        ),
        Effect.forEach(tasks, ({ id }) => clients[2]!.store.subscribe(id, event), { concurrency: 3, discard: true })
      ], { concurrency: "unbounded" })
      for (const { id } of tasks) {
        expect((yield* values(clients[1]!, id)).toSorted((a, b) => a - b)).toEqual(
          Array.from({ length: 20 }, (_, n) => n)
        )
      }
    }))
})
