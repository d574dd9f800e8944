/** The queue of tasks, the logs of their runs, and the leases of workers. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import type { Claim } from "../../src/internal/store/store.ts"
import { all, completed, each, event, fresh, insert, type Opened, pg, question, task } from "./kit.ts"

const idsOf = (claims: ReadonlyArray<Claim>) => claims.map(({ id }) => id)

const rowOf = ({ sql }: Opened, id: string) =>
  Effect.map(
    sql<
      Record<string, unknown>
    >`SELECT state, worker, signals, runs, attempts FROM skein_task_queue WHERE task_id = ${id}`,
    ([row]) => row
  )

each(all, (backend) => {
  it.effect("gives each task to one worker, the longest due first, and only of its pools", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const ids: Array<string> = []
      for (const pool of ["cpu", "gpu", "cpu", "cpu", "tpu"]) {
        yield* TestClock.adjust(1)
        ids.push((yield* insert(opened, { pool })).id)
      }
      expect(yield* store.claim("w1", ["none"], 10)).toEqual([])
      expect(yield* store.claim("w1", [], 10)).toEqual([])
      const [first, ...others] = yield* store.claim("w1", ["cpu", "gpu"], 1)
      expect(others).toEqual([])
      expect(first).toMatchObject({ id: ids[0], signals: 0, isFirst: true, attempts: 0 })
      expect(yield* first!.task).toMatchObject({ id: ids[0], args: task().args, status: "working" })
      expect(idsOf(yield* store.claim("w2", ["cpu"], 10)).toSorted()).toEqual([ids[2]!, ids[3]!].toSorted())
      expect(yield* store.claim("w2", ["cpu"], 10)).toEqual([])
      expect(idsOf(yield* store.claim("w3", undefined, 10)).toSorted()).toEqual([ids[1]!, ids[4]!].toSorted())
      expect(yield* store.findSignals("w2")).toEqual(new Map([[ids[2], 0], [ids[3], 0]]))
    }))

  it.effect("does not give away a task that was inserted for a worker", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* store.insert(task(), "w1")
      expect(yield* store.claim("w2", undefined, 10)).toEqual([])
      expect(yield* store.findSignals("w1")).toEqual(new Map([[id, 0]]))
      yield* store.release(id, "w2")
      expect(yield* store.claim("w2", undefined, 10)).toEqual([])
      yield* store.release(id, "w1")
      expect(yield* store.claim("w2", undefined, 10)).toMatchObject([{ id, isFirst: false, attempts: 0 }])
    }))

  it.effect("appends each position of a log once, and the same event again without a conflict", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const { id } = yield* insert(opened)
      const first = event(1, { name: "\0a\ud800", value: `{"v":"x"}` })
      expect(yield* store.append(id, first)).toBe("appended")
      // The response to the statement was lost.
      expect(yield* store.append(id, first, true)).toBe("appended")
      // Another worker may have appended an equal event.
      expect(yield* store.append(id, first)).toBe("conflict")
      for (
        const other of [{ name: "b" }, { attempt: 2 }, { kind: "once" }, { value: `{"v":"y"}` }, {
          value: null
        }] as const
      ) {
        expect(yield* store.append(id, { ...first, ...other }, true)).toBe("conflict")
      }
      const timer = event(2, { kind: "timer", startedAt: undefined, value: null, at: 1e300 })
      expect(yield* store.append(id, timer)).toBe("appended")
      expect(yield* store.readLog(id)).toEqual([first, { ...timer, at: Number.MAX_SAFE_INTEGER }])
      // Rolled back with the transaction of a step.
      yield* Effect.exit(sql.withTransaction(Effect.andThen(store.append(id, event(3)), Effect.fail("no"))))
      expect(yield* store.readLog(id)).toHaveLength(2)
      expect(yield* store.append("A".repeat(32), event(1))).toBe("refused")
    }))

  it.effect("a settled task takes no more events, and a cancelled one does until it is settled", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      yield* store.finish(id, completed({}))
      expect(yield* store.append(id, event(1))).toBe("refused")
      const { id: cancelled } = yield* insert(opened)
      yield* store.finish(cancelled, { status: "cancelled" })
      expect(yield* store.append(cancelled, event(1))).toBe("appended")
      yield* store.settle(cancelled)
      expect(yield* store.append(cancelled, event(2))).toBe("refused")
    }))

  it.effect("ends a task only if no other worker has continued it", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      yield* store.append(id, event(1))
      yield* store.append(id, event(2))
      expect(yield* store.finish(id, completed({}), { nextSeq: 2 })).toBe(false)
      expect((yield* store.get(id))?.status).toBe("working")
      expect(yield* store.finish(id, completed({}), { nextSeq: 3 })).toBe(true)
      // A cancellation does not depend on the log.
      const { id: other } = yield* insert(opened)
      yield* store.append(other, event(1))
      expect(yield* store.finish(other, { status: "cancelled" }, { nextSeq: 1 })).toBe(true)
    }))

  it.effect("suspends a run only if nothing has been signalled, and only for its worker", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      yield* store.ask(id, question("k"))
      yield* store.claim("w1", undefined, 1)
      expect(yield* store.suspend(id, "w2", 0, Infinity, { nextSeq: 1 })).toBe(false)
      expect(yield* store.suspend(id, "w1", 1, Infinity, { nextSeq: 1 })).toBe(false)
      // Answered just before.
      yield* store.answer(id, "k", {})
      expect(yield* rowOf(opened, id)).toMatchObject({ state: 2, worker: "w1", signals: 1 })
      expect(yield* store.suspend(id, "w1", 0, Infinity, { nextSeq: 1 })).toBe(false)
      expect(yield* store.readSignals(id)).toEqual({ signals: 1, worker: "w1", isCancelled: false, lastSeq: 0 })
      expect(yield* store.findSignals("w1")).toEqual(new Map([[id, 1]]))
      expect(yield* store.suspend(id, "w1", 1, Infinity, { nextSeq: 1 })).toBe(true)
      expect(yield* rowOf(opened, id)).toMatchObject({ state: 1, worker: null })
      expect(yield* store.suspend(id, "w1", 1, Infinity, { nextSeq: 1 })).toBe(false)
      expect(yield* store.claim("w1", undefined, 1)).toEqual([])
    }))

  it.effect("an answer, a cancellation and the time wake a task that waits", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const suspended = (wakeAt: number) =>
        Effect.gen(function*() {
          const { id } = yield* insert(opened)
          yield* store.ask(id, question("k"))
          yield* store.claim("w1", undefined, 1)
          expect(yield* store.suspend(id, "w1", 0, wakeAt, { nextSeq: 1 })).toBe(true)
          return id
        })
      const answered = yield* suspended(Infinity)
      const cancelled = yield* suspended(Infinity)
      const due = yield* suspended(1000)
      const forever = yield* suspended(Infinity)
      expect((yield* store.wake).count).toBe(0)
      expect(yield* store.claim("w1", undefined, 10)).toEqual([])
      yield* store.answer(answered, "k", {})
      expect(yield* store.claim("w1", undefined, 10)).toMatchObject([{ id: answered, signals: 1, isFirst: false }])
      yield* store.finish(cancelled, { status: "cancelled" })
      expect(yield* store.claim("w1", undefined, 10)).toMatchObject([{ id: cancelled, signals: 1 }])
      expect(yield* store.readSignals(cancelled)).toEqual({ signals: 1, worker: "w1", isCancelled: true, lastSeq: 0 })
      yield* TestClock.adjust(999)
      expect((yield* store.wake).count).toBe(0)
      yield* TestClock.adjust(1)
      expect((yield* store.wake).count).toBe(1)
      expect(yield* store.claim("w1", undefined, 10)).toMatchObject([{ id: due, signals: 0 }])
      yield* store.wakeTasks([forever, answered])
      expect(yield* store.claim("w1", undefined, 10)).toMatchObject([{ id: forever }])
      expect(yield* store.readSignals("A".repeat(32))).toBeUndefined()
    }))

  it.effect("a released task can be claimed at once, or from a time on", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      yield* store.claim("w1", undefined, 1)
      yield* store.release(id, "w1", 1000)
      yield* store.wake
      expect(yield* store.claim("w2", undefined, 1)).toEqual([])
      yield* TestClock.adjust(1000)
      yield* store.wake
      expect(yield* store.claim("w2", undefined, 1)).toMatchObject([{ id, attempts: 0 }])
      yield* store.releaseAll("w1")
      expect(yield* store.claim("w1", undefined, 1)).toEqual([])
      yield* store.releaseAll("w2")
      expect(yield* store.claim("w1", undefined, 1)).toMatchObject([{ id, attempts: 0 }])
    }))

  it.effect("counts the workers that have died without a new event in the log of their task", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened)
      const claimed = Effect.map(store.claim("w1", undefined, 1), ([claim]) => claim?.attempts)
      const attempts = Effect.andThen(TestClock.adjust("1 minute"), Effect.andThen(store.wake, claimed))
      expect(yield* attempts).toBe(0)
      for (const expected of [1, 2, 3]) {
        yield* store.takeBackAll
        expect(yield* attempts).toBe(expected)
      }
      yield* store.append(id, event(1))
      yield* store.takeBackAll
      expect(yield* attempts).toBe(1)
      // A run that is suspended has made progress.
      yield* store.suspend(id, "w1", 0, 0, { nextSeq: 2 })
      expect(yield* attempts).toBe(0)
    }))

  it.effect("notifies in this process: the pool of a task that may run, and the id of a running one", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const heard: Array<string> = []
      yield* store.listenForSignals({
        onReady: (pool) => heard.push(`ready ${pool}`),
        onSignal: (id) => heard.push(id),
        onGap: () => heard.push("gap")
      })
      const hears = (expected: string) =>
        Effect.repeat(Effect.promise(() => new Promise<void>((resolve) => setTimeout(resolve, 1))), {
          until: () => heard.includes(expected)
        })
      yield* Effect.exit(sql.withTransaction(Effect.andThen(insert(opened, { pool: "never" }), Effect.fail("no"))))
      const { id } = yield* insert(opened, { pool: "gpu" })
      yield* hears("ready gpu")
      yield* store.claim("w1", undefined, 1)
      yield* store.ask(id, question("k"))
      yield* store.answer(id, "k", {})
      yield* hears(id)
      heard.length = 0
      yield* store.finish(id, { status: "cancelled" })
      yield* hears(id)
      heard.length = 0
      yield* store.releaseAll("w1")
      yield* hears("ready gpu")
      expect(heard).not.toContain("ready never")
    }))
})

each([pg], (backend) => {
  const two = Effect.flatMap(backend.database, (client) => Effect.all([client, client]))

  it.effect("of concurrent claims each task has one", () =>
    Effect.gen(function*() {
      const [a, b] = yield* two
      const ids: Array<string> = []
      for (let index = 0; index < 60; index++) ids.push((yield* insert(a)).id)
      const claims = yield* Effect.all(
        Array.from({ length: 30 }, (_, index) => [a, b][index % 2]!.store.claim(`w${index}`, ["default"], 3)),
        { concurrency: "unbounded" }
      )
      const claimed = claims.flatMap(idsOf)
      expect(new Set(claimed).size).toBe(claimed.length)
      const rest = yield* a.store.claim("rest", undefined, 100)
      expect([...claimed, ...idsOf(rest)].toSorted()).toEqual(ids.toSorted())
    }))

  it.effect("of concurrent events at one position one counts, and every other worker learns of it", () =>
    Effect.gen(function*() {
      const [a, b] = yield* two
      const { id } = yield* insert(a)
      for (let seq = 1; seq <= 20; seq++) {
        const results = yield* Effect.all(
          [a, b, a, b].map(({ store }, index) => store.append(id, event(seq, { value: `{"v":${index}}` }))),
          { concurrency: "unbounded" }
        )
        expect(results.toSorted()).toEqual(["appended", "conflict", "conflict", "conflict"])
        const log = yield* b.store.readLog(id)
        expect(log).toHaveLength(seq)
        expect(log.at(-1)?.value).toBe(`{"v":${results.indexOf("appended")}}`)
      }
    }))

  it.live(
    "takes the tasks of a worker back after its lease, which it can renew only before",
    () =>
      Effect.gen(function*() {
        const opened = yield* Effect.flatten(backend.database)
        const { store } = opened
        const options = { host: "here", pid: 1, application: "", pools: ["default"] }
        for (const worker of ["short", "long", "next"]) yield* store.register(worker, { ...options, leaseMs: 60_000 })
        const [one, other] = [(yield* insert(opened)).id, (yield* insert(opened)).id]
        expect(yield* store.claim("short", undefined, 1)).toHaveLength(1)
        expect(yield* store.claim("long", undefined, 1)).toHaveLength(1)
        yield* store.takeBackLost
        expect(yield* store.claim("next", undefined, 10)).toEqual([])
        expect(yield* store.renew("short", 300)).toBe(3)
        expect(yield* store.renew("nobody", 300)).toBe(0)
        yield* Effect.sleep(400)
        expect(yield* store.removeLost).toBe(1)
        expect(yield* store.renew("short", 300)).toBe(0)
        yield* store.takeBackLost
        const taken = idsOf(yield* store.claim("next", undefined, 10))
        expect(taken).toHaveLength(1)
        expect([one, other]).toContain(taken[0])
        expect(yield* store.findSignals("long")).toHaveLength(1)
        yield* store.unregister("long")
        yield* store.takeBackLost
        expect(yield* store.claim("next", undefined, 10)).toHaveLength(1)
      }),
    120_000
  )
})
