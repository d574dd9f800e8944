/** The counters of tasks on PostgreSQL. */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { completed, counters, each, insert, pg, storedCounters } from "./kit.ts"

/** Counts a task of one owner that begins and ends, `times` times, and returns the blocks that the database has read. */
const countOften = (times: number) =>
  `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) SELECT counted.* FROM generate_series(1, ${times}) AS number
   CROSS JOIN LATERAL skein_task_count(ARRAY[0, 1, 2], ARRAY['', 'job', '=ada'], ARRAY[number < 0, FALSE, FALSE],
     ARRAY[CASE WHEN number % 2 = 0 THEN 1 ELSE -1 END, 0, 0], ARRAY[0, 0, 0]) AS counted`

each([pg], (backend) => {
  it.effect("cost no more while a transaction is open that keeps all their versions", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const opened = yield* client
      const { sql } = yield* client
      yield* insert(opened)
      const blocks = (times: number) =>
        Effect.map(
          opened.sql.unsafe<{ "QUERY PLAN": ReadonlyArray<{ Plan: { "Shared Hit Blocks": number } }> }>(
            countOften(times)
          ),
          ([row]) => row!["QUERY PLAN"][0]!.Plan["Shared Hit Blocks"] / times
        )
      yield* blocks(10)
      const before = yield* blocks(10)
      yield* sql.withTransaction(Effect.gen(function*() {
        yield* sql`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`
        yield* sql`SELECT COUNT(*) FROM skein_tasks`
        for (let n = 0; n < 20; n++) yield* blocks(200)
        expect(yield* blocks(10)).toBeLessThan(before + 50)
      }))
    }))

  it.effect("are right after changes of several connections at once", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const all = [yield* client, yield* client, yield* client]
      const at = { concurrency: "unbounded" } as const
      const tasks = yield* Effect.forEach(
        Array.from({ length: 60 }, (_, n) => n),
        (n) => insert(all[n % 3]!, { tool: `tool ${n % 2}`, owner: `owner ${n % 5}` }),
        at
      )
      yield* Effect.forEach(tasks.slice(20), ({ id }, n) => all[n % 3]!.store.finish(id, completed({})), at)
      const { counted, kept } = yield* counters(all[0]!)
      expect(kept).toEqual(counted)
      yield* Effect.forEach(tasks, ({ id }, n) => all[n % 3]!.store.remove([id]), at)
      expect((yield* counters(all[0]!)).kept).toEqual([])
      // A row of each owner would stay forever.
      expect((yield* storedCounters(all[0]!)).filter(({ kind }) => kind === 2)).toEqual([])
    }))

  it.effect("take over those of an earlier version, whose processes go on", () =>
    Effect.gen(function*() {
      const client = yield* backend.database
      const { sql } = yield* client
      yield* sql`DROP TABLE skein_task_counters`
      yield* sql`DELETE FROM skein_task_versions WHERE version >= 6`
      const add = (kind: number, name: string, live: number) =>
        sql`INSERT INTO skein_task_counts (kind, name, live, retained) VALUES (${kind}, ${name}, ${live}, 0)
            ON CONFLICT (kind, name) DO UPDATE SET live = skein_task_counts.live + excluded.live`
      yield* add(0, "", 2)
      yield* add(1, "report", 2)
      yield* add(2, "=ada", 2)
      const migrated = yield* client
      yield* add(0, "", -1)
      yield* add(1, "report", -1)
      yield* add(2, "=ada", -1)
      yield* insert(migrated)
      expect((yield* storedCounters(migrated)).map(({ kind, live, name }) => [kind, name, live])).toEqual([
        [0, "", 2],
        [1, "report", 2],
        [2, "=ada", 2]
      ])
      const limits = { all: {}, tool: { live: 2 }, client: {} }
      expect((yield* Effect.flip(insert(migrated, { limits }))).message).toContain("2 tasks of the tool \"report\"")
    }))
})
