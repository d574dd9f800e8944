import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { TestClock } from "effect/testing"
import { all, completed, each, event, fresh, insert, type Opened, pg } from "./kit.ts"

const hour = 3_600_000

const received = (seq: number, place: number, name = "paid", value = "1") =>
  event(seq, { kind: "received", name, value, place, startedAt: undefined })

/** A task that worker "w" runs. */
const running = (opened: Opened) =>
  Effect.flatMap(insert(opened), ({ id }) => Effect.as(opened.store.claim("w", ["default"], 10), id))

each(all, (backend) => {
  it.effect("keeps events in the order of sending, until an entry of the log takes them", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const id = yield* running(opened)
      const other = yield* running(opened)
      yield* store.send(id, "paid", { n: 1 })
      yield* TestClock.adjust(5)
      yield* store.send(id, "json:\0\ud800", [2])
      yield* store.send(id, "paid", "3")
      yield* store.send(other, "paid", 4)
      const events = yield* store.readEvents(id)
      expect(events.map(({ name }) => name)).toEqual(["paid", "json:\0\ud800", "paid"])
      expect(events.map(({ place }) => place)).toEqual([1, 2, 3])
      // Reading takes nothing: the worker may end before it has stored the entry.
      expect(yield* store.readEvent(id, 1)).toBe("{\"n\":1}")
      expect(yield* store.readEvent(id, 1)).toBe("{\"n\":1}")
      expect(yield* store.append(id, received(1, 1), true)).toBe("appended")
      expect((yield* store.readEvents(id)).map(({ place }) => place)).toEqual([2, 3])
      expect(yield* store.readEvent(id, 1)).toBeUndefined()
      expect(yield* store.readLog(id)).toMatchObject([{ seq: 1, kind: "received", name: "paid", value: "1" }])
      expect(yield* store.readEvents(other)).toHaveLength(1)
    }))

  it.effect("delivers an event once, also if another worker repeats the entry", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const id = yield* running(opened)
      yield* store.send(id, "paid", 1)
      const entry = received(1, 1)
      expect(yield* store.append(id, entry, true)).toBe("appended")
      yield* store.send(id, "paid", 2)
      // The response of the first statement was lost.
      expect(yield* store.append(id, entry, true)).toBe("appended")
      // A worker that does not know that entry, and one that knows another log.
      expect(yield* store.append(id, received(1, 2, "paid", "2"), true)).toBe("conflict")
      expect(yield* store.append(id, received(3, 2), true)).toBe("refused")
      expect((yield* store.readEvents(id)).map(({ place }) => place)).toEqual([2])
      // The event is gone.
      expect(yield* store.append(id, received(2, 1), true)).toBe("refused")
      expect(yield* store.readLog(id)).toHaveLength(1)
    }))

  it.effect("stores the record and takes the event together, or neither", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const id = yield* running(opened)
      yield* store.send(id, "paid", 1, { key: "k" })
      // The worker dies in the transaction.
      const dies = store.transaction(Effect.andThen(store.append(id, received(1, 1), true), Effect.die("killed")))
      expect(Exit.isFailure(yield* Effect.exit(dies))).toBe(true)
      expect(yield* store.readEvents(id)).toHaveLength(1)
      expect(yield* store.readLog(id)).toEqual([])
      expect(yield* store.append(id, received(1, 1), true)).toBe("appended")
      expect(yield* store.readEvents(id)).toEqual([])
    }))

  it.effect("wakes a task that waits, and does not suspend one that has an event", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const id = yield* running(opened)
      const at = { nextSeq: 1 }
      expect(yield* store.suspend(id, "w", 0, Infinity, at, 0, ["paid"])).toBe(true)
      expect((yield* store.admin.find(id))?.place).toMatchObject({
        _tag: "Waiting",
        until: undefined,
        events: ["paid"]
      })
      expect(yield* store.claim("w", ["default"], 10)).toEqual([])
      yield* store.send(id, "paid", 1)
      const [claim] = yield* store.claim("w", ["default"], 10)
      expect(claim).toMatchObject({ id, signals: 1 })
      yield* store.send(id, "paid", 2)
      expect(yield* store.suspend(id, "w", 1, Infinity, at)).toBe(false)
      expect(yield* store.suspend(id, "w", 2, Infinity, at)).toBe(true)
      expect((yield* store.admin.find(id))?.place).toMatchObject({ _tag: "Waiting", events: [] })
    }))

  it.effect("remembers keys while the task exists, and deletes its events with it", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const id = yield* running(opened)
      expect(yield* store.send(id, "paid", 1, { key: "k" })).toBe(true)
      yield* store.append(id, received(1, 1), true)
      expect(yield* store.send(id, "paid", 1, { key: "k" })).toBe(false)
      yield* store.send(id, "paid", 2)
      yield* store.finish(id, completed({}), { nextSeq: 2 })
      expect(yield* store.send(id, "paid", 1, { key: "k" })).toBe(false)
      expect(yield* Effect.flip(store.send(id, "paid", 3))).toMatchObject({ reason: { _tag: "AlreadyEnded" } })
      yield* TestClock.adjust(hour + 1)
      expect(yield* Effect.flip(store.send(id, "paid", 3))).toMatchObject({ reason: { _tag: "UnknownTask" } })
      expect(yield* sql.unsafe("SELECT place FROM skein_task_events")).toHaveLength(2)
      yield* store.remove([id])
      expect(yield* sql.unsafe("SELECT place FROM skein_task_events")).toEqual([])
      expect(yield* Effect.flip(store.send(id, "paid", 1, { key: "k" }))).toMatchObject({
        reason: { _tag: "UnknownTask" }
      })
    }))
})

each([pg], (backend) => {
  it.live("stores each of the events that many clients send at once, and each key once", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const clients = yield* Effect.all([client, client, client])
      const id = yield* running(clients[0]!)
      const sent = yield* Effect.forEach(
        Array.from({ length: 60 }, (_, n) => n),
        (n) => clients[n % 3]!.store.send(id, "paid", n, { key: `key ${n % 20}` }),
        { concurrency: "unbounded" }
      )
      expect(sent.filter(Boolean)).toHaveLength(20)
      const events = yield* clients[1]!.store.readEvents(id)
      expect(new Set(events.map(({ place }) => place)).size).toBe(20)
    }))
})
