import { expect, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import { completed, counters, each, event, insert, pg, question, stateOf, storedCounters } from "./kit.ts"

const at = { concurrency: "unbounded" } as const

each([pg], (backend) => {
  const two = Effect.flatMap(backend.database, (client) => Effect.all([client, client]))

  it.effect("several processes insert at a limit: they reach it, and never exceed it", () =>
    Effect.gen(function*() {
      const [a, b] = yield* two
      const limits = { all: { live: 20 }, tool: { retained: 11 }, client: { live: 5 } }
      const submits = Array.from({ length: 60 }, (_, index) =>
        Effect.exit(insert([a, b][index % 2]!, {
          limits,
          owner: ["ada", "bob", "cyd", "dan", "eve"][index % 5]!,
          tool: ["x", "y"][index % 3 === 0 ? 0 : 1]!
        })))
      const exits = yield* Effect.all(submits, at)
      const ids = exits.flatMap((exit) => Exit.isSuccess(exit) ? [exit.value.id] : [])
      const { counted, kept } = yield* counters(a)
      expect(kept).toEqual(counted)
      expect(kept[0]).toBe(`0  ${ids.length} ${ids.length}`)
      for (const line of kept) {
        const [kind, , live, retained] = line.split(" ").map(Number)
        if (kind === 0) expect(live).toBeLessThanOrEqual(20)
        if (kind === 1) expect(retained).toBeLessThanOrEqual(11)
        if (kind === 2) expect(live).toBeLessThanOrEqual(5)
      }
      // 20 of x and 40 of y were tried: both reach their limit, or the limit on all tasks is reached.
      expect(ids.length).toBe(20)
      for (const exit of exits) {
        if (Exit.isFailure(exit)) expect(exit.cause.toString()).toContain("limit reached")
      }
      yield* Effect.all(ids.flatMap((id) => [a, b].map(({ store }) => store.finish(id, { status: "cancelled" }))), at)
      const after = yield* counters(b)
      expect(after.kept).toEqual(after.counted)
      expect(after.kept[0]).toBe("0  0 20")
      yield* Effect.all(ids.flatMap((id) => [a, b].map(({ store }) => store.remove([id]))), at)
      expect((yield* counters(b)).kept).toEqual([])
      expect((yield* storedCounters(a)).filter(({ kind }) => kind === 2)).toEqual([])
    }))

  it.effect("of concurrent answers one counts, and signals the task once", () =>
    Effect.gen(function*() {
      const [a, b] = yield* two
      const { id } = yield* insert(a)
      const keys = Array.from({ length: 8 }, (_, index) => `q${index}`)
      yield* Effect.forEach(keys, (key) => a.store.ask(id, question(key)))
      const answers = keys.flatMap((key) =>
        Array.from({ length: 4 }, (_, index) => {
          const { store } = [a, b][index % 2]!
          return Effect.map(store.answer(id, key, { by: index }), (won) => won ? [{ key, index }] : [])
        })
      )
      const winners = (yield* Effect.all(answers, at)).flat()
      expect(winners.map(({ key }) => key).toSorted()).toEqual(keys)
      expect(yield* a.store.readSignals(id)).toMatchObject({ signals: keys.length })
      for (const { index, key } of winners) expect(yield* b.store.ask(id, question(key))).toEqual({ by: index })
      expect(yield* stateOf(a, id)).toMatchObject({ status: "working", questions: [], version: 1 + 8 + 8 })
    }))

  it.effect("concurrent answers, questions, an end and a removal do not deadlock", () =>
    Effect.gen(function*() {
      const [a, b] = yield* two
      for (let round = 0; round < 10; round++) {
        const { id } = yield* insert(a)
        yield* Effect.forEach(["a", "b", "c"], (key) => a.store.ask(id, question(key)))
        yield* Effect.all([
          ...["a", "b", "c"].flatMap((key) => [a, b].map(({ store }) => store.answer(id, key, {}))),
          ...["d", "e"].flatMap((key) => [a, b].map(({ store }) => store.ask(id, question(key)))),
          a.store.withdraw(id, "b"),
          ...[a, b].flatMap(({ store }, index) => [
            store.claim(`w${index}`, undefined, 5),
            store.append(id, event(1, { name: `of ${index}` })),
            store.release(id, `w${index}`),
            store.settle(id)
          ]),
          b.store.finish(id, completed({})),
          a.store.finish(id, { status: "cancelled" }),
          ...(round % 2 === 0 ? [b.store.remove([id]), a.store.remove([id])] : [])
        ], at)
        // A removal skips a task that another transaction changes; the sweeper runs again.
        if (round % 2 === 0) yield* a.store.remove([id])
        const { counted, kept } = yield* counters(a)
        expect(kept).toEqual(counted)
        const state = yield* a.store.get(id)
        if (round % 2 === 0) expect(state).toBeUndefined()
        else expect(["completed", "cancelled"]).toContain(state?.status)
      }
      for (const table of ["skein_task_questions", "skein_task_log", "skein_task_queue"]) {
        expect(
          yield* a.sql`SELECT * FROM ${a.sql(table)} AS row WHERE NOT EXISTS (
          SELECT 1 FROM skein_tasks WHERE id = row.task_id)`
        ).toEqual([])
      }
    }))

  for (const how of ["a removal", "an end and a removal"]) {
    it.effect(`leaves no event that is appended during ${how}`, () =>
      Effect.gen(function*() {
        const [a, b] = yield* two
        const { id } = yield* insert(a)
        const [isAppended, commit] = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const appending = yield* Effect.forkChild(a.sql.withTransaction(Effect.gen(function*() {
          yield* a.store.append(id, event(1, { name: "late" }))
          yield* Deferred.succeed(isAppended, undefined)
          yield* Deferred.await(commit)
        })))
        // Fails with the transaction, instead of waiting for it.
        yield* Effect.raceFirst(Deferred.await(isAppended), Fiber.join(appending))
        let isRemoved = false
        const removing = yield* Effect.forkChild(Effect.gen(function*() {
          if (how !== "a removal") yield* b.store.finish(id, completed({}))
          yield* b.store.remove([id])
          isRemoved = true
        }))
        const blocked = a.sql`SELECT pid FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`
        yield* Effect.repeat(blocked, { until: (rows) => isRemoved || rows.length > 0 })
        yield* Deferred.succeed(commit, undefined)
        yield* Fiber.join(appending)
        yield* Fiber.join(removing)
        expect(yield* a.store.get(id)).toBeUndefined()
        expect(yield* a.sql`SELECT seq FROM skein_task_log WHERE task_id = ${id}`).toEqual([])
      }))
  }

  it.effect("of concurrent ends one counts", () =>
    Effect.gen(function*() {
      const [a, b] = yield* two
      const { id } = yield* insert(a)
      const ends = Array.from({ length: 12 }, (_, index) => [a, b][index % 2]!.store.finish(id, completed({ index })))
      const won = yield* Effect.all(ends, at)
      expect(won.filter(Boolean)).toHaveLength(1)
      const { outcome, version } = yield* stateOf(b, id)
      expect(outcome).toEqual({ _tag: "Result", result: { index: won.indexOf(true) } })
      expect(version).toBe(2)
      expect((yield* counters(a)).kept[0]).toBe("0  0 1")
    }))

  it.effect("processes that start at the same time migrate once", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const opened = yield* Effect.all([client, client, client, client], at)
      const versions = yield* opened[0]!.sql<
        { version: number }
      >`SELECT version FROM skein_task_versions ORDER BY version`
      expect(versions.length).toBeGreaterThan(1)
      expect(versions.map(({ version }) => version)).toEqual(versions.map((_, index) => index + 1))
      const { id } = yield* insert(opened[1]!)
      expect(yield* opened[2]!.store.get(id)).toBeDefined()
    }))
})
