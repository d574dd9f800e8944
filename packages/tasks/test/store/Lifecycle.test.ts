import { expect, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import type { Owner, State } from "../../src/TaskState.ts"
import { all, completed, counters, each, event, fresh, insert, stateOf, storedCounters, task } from "./kit.ts"

each(all, (backend) => {
  it.effect("stores a new task as it was given, with an id of 190 bits", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const state = yield* insert(opened)
      expect(state.id).toMatch(/^[\w-]{32}$/)
      expect(yield* stateOf(opened, state.id)).toEqual(state)
      expect(state).toMatchObject({ status: "working", version: 1, questions: [], outcome: undefined, owner: "ada" })
      const { args, caller, owner, pool, tool } = task()
      expect(yield* opened.store.load(state.id)).toEqual({
        ...{ id: state.id, args, caller, owner, pool, tool },
        ...{ status: "working", createdAt: state.createdAt, statusMessageCount: 0, waitsForWorker: false }
      })
      expect(state.caller).toEqual(caller)
      expect((yield* insert(opened)).id).not.toBe(state.id)
    }))

  it.effect("an insert that runs twice creates two tasks", () =>
    Effect.gen(function*() {
      const { store } = yield* fresh(backend)
      const inserting = store.insert(task())
      expect((yield* inserting).id).not.toBe((yield* inserting).id)
    }))

  it.effect("missing members of a caller stay missing", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const caller = { revision: "2026-07-28", capabilities: {}, info: undefined, principal: undefined } as const
      const { id } = yield* insert(opened, { caller, owner: null, ttlMs: null })
      expect(yield* stateOf(opened, id)).toMatchObject({ caller, owner: null, ttlMs: null })
      expect((yield* opened.store.load(id))?.caller).toStrictEqual(caller)
    }))

  it.effect("rolls an insert back with the transaction of its caller", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      let id = ""
      for (const worker of [undefined, "w1"]) {
        const inserting = sql.withTransaction(store.insert(task(), worker, (state) => {
          id = state.id
          return Effect.andThen(Effect.orDie(sql`CREATE TABLE half (id INTEGER)`), Effect.die("no"))
        }))
        expect(Cause.squash(yield* Effect.flip(Effect.sandbox(inserting)))).toBe("no")
        expect(yield* store.get(id)).toBeUndefined()
        expect(yield* counters(opened)).toEqual({ kept: [], counted: [] })
        expect(yield* sql`SELECT * FROM skein_task_queue`).toEqual([])
        yield* Effect.flip(sql`SELECT * FROM half`)
      }
    }))

  it.effect("a final status stays: no message, question or other end changes it", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      for (
        const end of [
          completed({ content: [] }),
          {
            status: "failed",
            outcome: { _tag: "Error", error: { code: -32603, message: "no" } },
            statusMessage: "broken"
          },
          { status: "cancelled", statusMessage: "not wanted" }
        ] as const
      ) {
        const { id } = yield* insert(opened)
        expect(yield* store.finish(id, end)).toBe(true)
        const before = yield* stateOf(opened, id)
        expect(before).toMatchObject({
          status: end.status,
          version: 2,
          statusMessage: "statusMessage" in end ? end.statusMessage : undefined
        })
        expect(before.outcome).toEqual("outcome" in end ? end.outcome : undefined)
        yield* TestClock.adjust(10)
        expect(yield* store.finish(id, { status: "cancelled" })).toBe(false)
        expect(yield* store.finish(id, completed({}))).toBe(false)
        yield* store.setStatusMessage(id, "again")
        yield* store.setProgress(id, { progress: 5 })
        expect(yield* store.ask(id, { key: "k", method: "elicitation/create", params: {} })).toBeUndefined()
        expect(yield* store.answer(id, "k", {})).toBe(false)
        expect(yield* stateOf(opened, id)).toEqual(before)
      }
      expect(yield* store.finish("A".repeat(32), { status: "cancelled" })).toBe(false)
    }))

  it.effect("the last message stays if an end has none", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { id } = yield* insert(opened)
      yield* opened.store.setStatusMessage(id, "packing")
      yield* opened.store.finish(id, completed({}))
      expect((yield* stateOf(opened, id)).statusMessage).toBe("packing")
    }))

  it.effect("sets a numbered message once, and never after a later one", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { id } = yield* insert(opened)
      yield* opened.store.setStatusMessage(id, "first", 1)
      yield* opened.store.setStatusMessage(id, "second", 2)
      const { version } = yield* stateOf(opened, id)
      yield* opened.store.setStatusMessage(id, "first", 1)
      yield* opened.store.setStatusMessage(id, "second", 2)
      expect(yield* stateOf(opened, id)).toMatchObject({ statusMessage: "second", version })
      expect((yield* opened.store.load(id))?.statusMessageCount).toBe(2)
      yield* opened.store.setStatusMessage(id, "aside")
      yield* opened.store.setStatusMessage(id, "third", 3)
      expect(yield* stateOf(opened, id)).toMatchObject({ statusMessage: "third", version: version + 2 })
    }))

  it.effect("progress only grows, and consists of numbers", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { id } = yield* insert(opened)
      yield* opened.store.setProgress(id, { progress: 0.5, total: 3, message: "half" })
      expect((yield* stateOf(opened, id)).progress).toEqual({ progress: 0.5, total: 3, message: "half" })
      for (const progress of [0.5, 0.1, -1, Number.NaN, Number.POSITIVE_INFINITY]) {
        yield* opened.store.setProgress(id, { progress })
      }
      expect(yield* stateOf(opened, id)).toMatchObject({ progress: { progress: 0.5 }, version: 2 })
      yield* opened.store.setProgress(id, { progress: 1e300, total: Number.NaN })
      expect((yield* stateOf(opened, id)).progress).toStrictEqual({ progress: 1e300 })
    }))

  it.effect("times are those of the clock, and never decrease", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      yield* TestClock.setTime(1_700_000_000_000)
      const { id } = yield* insert(opened)
      yield* TestClock.adjust("1 second")
      yield* opened.store.setStatusMessage(id, "a")
      expect(yield* stateOf(opened, id)).toMatchObject({ createdAt: 1_700_000_000_000, updatedAt: 1_700_000_001_000 })
      yield* TestClock.setTime(1_600_000_000_000)
      yield* opened.store.setStatusMessage(id, "by a process whose clock is late")
      expect(yield* stateOf(opened, id)).toMatchObject({ updatedAt: 1_700_000_001_000, version: 3 })
    }))

  it.effect("lists the tasks of owners, newest first, page by page, each once", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const ids: Record<string, Array<string>> = { ada: [], bob: [], nobody: [] }
      for (let index = 0; index < 24; index++) {
        // Several in one millisecond.
        if (index % 4 === 0) yield* TestClock.adjust(1)
        const owner = (["ada", "bob", null] as const)[index % 3]!
        ids[owner ?? "nobody"]!.push((yield* insert(opened, { owner })).id)
      }
      const cases: ReadonlyArray<[ReadonlyArray<Owner>, ReadonlyArray<string>]> = [
        [["ada"], ids["ada"]!],
        [[null], ids["nobody"]!],
        [["ada", null, "ada"], [...ids["ada"]!, ...ids["nobody"]!]]
      ]
      for (const [owners, expected] of cases) {
        const found: Array<string> = []
        const times: Array<number> = []
        let after: State | undefined
        do {
          const page: ReadonlyArray<State> = yield* store.list(owners, after, 3)
          expect(page.length).toBeLessThanOrEqual(3)
          found.push(...page.map(({ id }) => id))
          times.push(...page.map(({ createdAt }) => createdAt))
          after = page.at(-1)
        } while (after !== undefined)
        expect(found.toSorted()).toEqual(expected.toSorted())
        expect(times).toEqual(times.toSorted((a, b) => b - a))
      }
      expect(yield* store.list([], undefined, 10)).toEqual([])
      expect(yield* store.list(["eve"], undefined, 10)).toEqual([])
      expect(yield* store.list(["ada"], { createdAt: Number.NaN, id: "" }, 10)).toEqual([])
      expect(yield* store.list(["ada"], undefined, 0)).toEqual([])
    }))

  it.effect("checks limits at the insert, and reports which one is reached", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const refused = (options: Parameters<typeof task>[0]) => {
        let begun = false
        const insert = store.insert(task(options), undefined, () => Effect.sync(() => void (begun = true)))
        return Effect.map(Effect.flip(insert), ({ message, reason }) => ({ begun, message, reason }))
      }
      const limits = { all: { live: 3, retained: 4 }, tool: { live: 2, retained: 3 }, client: { live: 1, retained: 2 } }
      const first = yield* insert(opened, { limits })
      expect(yield* refused({ limits })).toMatchObject({
        begun: false,
        reason: { _tag: "LimitExceeded" },
        message: "limit reached: 1 tasks of the owner that have not ended"
      })
      yield* insert(opened, { limits, owner: "bob" })
      expect((yield* refused({ limits, owner: "cyd" })).message).toContain(
        `2 tasks of the tool "report" that have not ended`
      )
      yield* insert(opened, { limits, owner: "cyd", tool: "other" })
      expect((yield* refused({ limits, owner: "dan", tool: "third" })).message).toContain(
        "3 tasks in total that have not ended"
      )
      yield* store.finish(first.id, { status: "cancelled" })
      const second = yield* insert(opened, { limits })
      yield* store.finish(second.id, { status: "cancelled" })
      expect((yield* refused({ limits: { ...limits, all: {}, tool: {} } })).message).toContain(
        "2 stored tasks of the owner"
      )
      expect((yield* refused({ limits: { ...limits, all: {} }, owner: "dan" })).message).toContain(
        `3 stored tasks of the tool "report"`
      )
      expect((yield* refused({ limits, owner: "dan", tool: "third" })).message).toContain("4 stored tasks in total")
      yield* store.remove([first.id])
      yield* insert(opened, { limits })
      const { counted, kept } = yield* counters(opened)
      expect(kept).toEqual(counted)
      expect(
        (yield* refused({ limits: { all: {}, tool: {}, client: { live: 0 } }, owner: "new", tool: "new" })).message
      )
        .toContain("0 tasks of the owner")
    }))

  it.effect("counts tasks without an owner too", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const limits = { all: {}, tool: {}, client: { live: 1 } }
      yield* insert(opened, { limits, owner: null })
      const error = yield* Effect.flip(insert(opened, { limits, owner: null }))
      expect(error).toMatchObject({
        reason: { _tag: "LimitExceeded" },
        message: "limit reached: 1 tasks without an owner that have not ended"
      })
      yield* insert(opened, { limits, owner: "" })
    }))

  it.effect("counts the tasks of a client without an owner, apart from those of owners and other clients", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const limits = { all: {}, tool: {}, client: { live: 1, retained: 2 } }
      const anonymous = (client: string) => insert(opened, { limits, owner: null, client })
      const first = yield* anonymous("a")
      expect((yield* Effect.flip(anonymous("a"))).message).toBe(
        "limit reached: 1 tasks of the client that have not ended"
      )
      yield* anonymous("b")
      for (const owner of ["a", "~a", null]) yield* insert(opened, { limits, owner })
      yield* store.finish(first.id, completed({}))
      const second = yield* anonymous("a")
      yield* store.finish(second.id, { status: "cancelled" })
      expect((yield* Effect.flip(anonymous("a"))).message).toBe("limit reached: 2 stored tasks of the client")
      yield* store.remove([first.id, second.id])
      yield* anonymous("a")
      const { counted, kept } = yield* counters(opened)
      expect(kept).toEqual(counted)
      // The client does not own it: every caller that has the id sees the task.
      expect((yield* store.list([null], undefined, 10)).length).toBe(3)
    }))

  it.effect("an expired task cannot be read, before and after the sweep", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { store } = opened
      const { id } = yield* insert(opened, { ttlMs: 1000 })
      const forever = yield* insert(opened, { ttlMs: null })
      yield* store.ask(id, { key: "k", method: "elicitation/create", params: {} })
      expect(yield* store.nextExpiry(0)).toBe(1000)
      yield* TestClock.adjust(999)
      expect(yield* store.findExpired(10)).toEqual([])
      expect((yield* stateOf(opened, id)).questions).toHaveLength(1)
      yield* TestClock.adjust(1)
      expect(yield* store.get(id)).toBeUndefined()
      expect((yield* store.list(["ada"], undefined, 10)).map(({ id }) => id)).toEqual([forever.id])
      expect(yield* store.answer(id, "k", {})).toBe(false)
      expect(yield* store.findExpired(10)).toMatchObject([
        { id, status: "input_required", settled: false, expiresAt: 1000 }
      ])
      // It is cancelled and compensated before it is deleted.
      expect(yield* store.load(id)).toMatchObject({ id, status: "input_required" })
      expect(yield* store.finish(id, { status: "cancelled" })).toBe(true)
      expect(yield* store.nextExpiry(999)).toBe(1000)
      expect(yield* store.nextExpiry(1000)).toBeUndefined()
      yield* store.remove([id])
      expect(yield* store.load(id)).toBeUndefined()
      expect(yield* store.nextExpiry(0)).toBeUndefined()
      expect((yield* counters(opened)).kept).toEqual(["0  1 1", "1 report 1 1", "2 =ada 1 1"])
    }))

  it.effect("finds expired tasks page by page, the earliest expiry first", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const ids: Array<string> = []
      for (const ttl of [30, 10, 20, 10, 10]) ids.push((yield* insert(opened, { ttlMs: ttl })).id)
      yield* TestClock.adjust(25)
      const first = yield* opened.store.findExpired(2)
      const second = yield* opened.store.findExpired(2, first[1])
      expect([...first, ...second].map(({ expiresAt }) => expiresAt)).toEqual([10, 10, 10, 20])
      expect(new Set([...first, ...second].map(({ id }) => id))).toEqual(new Set(ids.slice(1)))
      expect(yield* opened.store.findExpired(2, second[1])).toEqual([])
    }))

  it.effect("removes tasks together with their questions, logs and places in the queue, or not at all", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const { id } = yield* insert(opened)
      const { id: other } = yield* insert(opened)
      for (const each of [id, other]) {
        yield* store.ask(each, { key: "k", method: "elicitation/create", params: {} })
        yield* store.append(each, event(1))
      }
      const removed = sql.withTransaction(Effect.andThen(store.remove([id, other]), Effect.fail("no")))
      expect(yield* Effect.flip(removed)).toBe("no")
      expect((yield* stateOf(opened, id)).questions).toHaveLength(1)
      expect(yield* store.readLog(id)).toHaveLength(1)
      expect((yield* counters(opened)).kept).toEqual(["0  2 2", "1 report 2 2", "2 =ada 2 2"])
      yield* store.remove([id])
      expect(yield* store.get(id)).toBeUndefined()
      expect((yield* counters(opened)).kept).toEqual(["0  1 1", "1 report 1 1", "2 =ada 1 1"])
      for (const table of ["skein_task_questions", "skein_task_log", "skein_task_queue"]) {
        expect(yield* sql`SELECT DISTINCT task_id FROM ${sql(table)}`).toEqual([{ task_id: other }])
      }
      yield* store.remove([id, other, "'; --"])
      for (const table of ["skein_tasks", "skein_task_questions", "skein_task_log", "skein_task_queue"]) {
        expect([table, ...yield* sql`SELECT * FROM ${sql(table)}`]).toEqual([table])
      }
      // The counter of a caller at zero is deleted; otherwise each caller would leave a row forever.
      expect((yield* storedCounters(opened)).filter(({ kind }) => kind === 2)).toEqual([])
      yield* store.remove([id])
      yield* store.remove([])
      expect((yield* counters(opened)).kept).toEqual([])
    }))

  it.effect("an ended task is settled, and a cancelled task is settled after its compensations", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const queue = Effect.map(
        sql<{ task_id: string }>`SELECT task_id FROM skein_task_queue`,
        (rows) => rows.map(({ task_id }) => task_id).toSorted()
      )
      const ids: Array<string> = []
      for (let index = 0; index < 5; index++) ids.push((yield* insert(opened, { ttlMs: 1000 })).id)
      yield* TestClock.adjust(1000)
      yield* store.finish(ids[0]!, completed({}))
      yield* store.finish(ids[1]!, { status: "failed", outcome: { _tag: "Error", error: { code: 1, message: "no" } } })
      yield* store.finish(ids[2]!, { status: "cancelled" })
      yield* store.finish(ids[3]!, { status: "cancelled" })
      expect(yield* queue).toEqual(ids.slice(2).toSorted())
      // A task that has not ended cannot be settled.
      for (const id of [ids[3]!, ids[4]!, "'; --"]) yield* store.settle(id)
      expect(yield* queue).toEqual([ids[2]!, ids[4]!].toSorted())
      const swept = new Map((yield* store.findExpired(10)).map(({ id, settled }) => [id, settled]))
      expect(ids.map((id) => swept.get(id))).toEqual([true, true, false, true, false])
      yield* store.settle(ids[2]!)
      expect(yield* queue).toEqual([ids[4]])
    }))
})
