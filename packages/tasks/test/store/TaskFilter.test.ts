/**
 * The tasks that an operator selects, and how the database finds them.
 */
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { TaskFilter } from "../../src/TaskAdmin.ts"
import { Database } from "../../src/internal/store/database.ts"
import { isInQueue, select } from "../../src/internal/store/taskFilter.ts"
import { all, completed, each, file, fresh, insert, type Opened, pg, stateOf } from "./kit.ts"

/** The tools of the tasks that match, in the order of the listing. */
const toolsOf = ({ store }: Opened, filter: TaskFilter) =>
  Effect.map(store.admin.list(filter, undefined, 100), (tasks) => tasks.map(({ state: { tool } }) => tool).sort())

each(all, (backend) => {
  it.effect("lists by the times of creation and end, and by the worker", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const { sql, store } = opened
      const at = { first: 1000, second: 2000, third: 3000 }
      for (const [tool, time] of Object.entries(at)) {
        const { id } = yield* insert(opened, { tool })
        if (tool !== "third") yield* store.finish(id, completed({}))
        yield* sql.unsafe(`UPDATE skein_tasks SET created_at = ${time}, updated_at = ${time + 500} WHERE id = '${id}'`)
      }
      expect(yield* toolsOf(opened, { createdAfter: 2000 })).toEqual(["second", "third"])
      expect(yield* toolsOf(opened, { createdBefore: 2000 })).toEqual(["first"])
      expect(yield* toolsOf(opened, { createdAfter: 1001, createdBefore: 3000 })).toEqual(["second"])
      expect(yield* toolsOf(opened, { endedAfter: 1500 })).toEqual(["first", "second"])
      expect(yield* toolsOf(opened, { endedAfter: 1501 })).toEqual(["second"])
      expect(yield* toolsOf(opened, { endedBefore: 2500 })).toEqual(["first"])
      expect(yield* toolsOf(opened, { endedBefore: 9000, createdBefore: 1 })).toEqual([])
      expect(yield* toolsOf(opened, { status: ["working"] })).toEqual(["third"])
      yield* store.claim("w1", ["default"], 10)
      expect(yield* toolsOf(opened, { worker: "w1" })).toEqual(["third"])
      expect(yield* toolsOf(opened, { worker: "w2" })).toEqual([])
    }))

  it.effect("pages through tasks that have not ended, however they are found", () =>
    Effect.gen(function*() {
      const opened = yield* fresh(backend)
      const ids: Array<string> = []
      for (let count = 0; count < 7; count++) ids.push((yield* insert(opened)).id)
      yield* opened.store.finish(ids[3]!, completed({}))
      const found: Array<string> = []
      let after = undefined
      do {
        const page: ReadonlyArray<{ readonly state: { readonly id: string; readonly createdAt: number } }> =
          yield* opened.store.admin.list({ status: ["working", "input_required"] }, after, 2)
        found.push(...page.map(({ state }) => state.id))
        after = page.at(-1)?.state
      } while (after !== undefined)
      expect(found).toHaveLength(6)
      expect(found.toSorted()).toEqual(ids.filter((id) => id !== ids[3]).sort())
      expect((yield* stateOf(opened, ids[3]!)).status).toBe("completed")
    }))
})

each([file, pg], (backend) => {
  it.effect("reads no whole table for a page", () =>
    Effect.gen(function*() {
      const { sql } = yield* fresh(backend)
      const isPostgres = backend === pg
      const after = { createdAt: 5, id: "x" }
      const filters: ReadonlyArray<TaskFilter> = [
        {},
        { tool: "bake", pool: "gpu" },
        { owner: "ada" },
        { hasFailed: true },
        { status: ["completed", "failed"] },
        { status: ["working", "input_required"] },
        { worker: "w" },
        { createdAfter: 1, createdBefore: 9 },
        { endedAfter: 1, endedBefore: 9 }
      ]
      for (const filter of filters) {
        for (const readsQueue of filter.worker !== undefined ? [true] : isInQueue(filter) ? [true, false] : [false]) {
          const { from, parameters } = select(filter, { after, database: new Database(sql), readsQueue })!
          const text = `SELECT skein_tasks.id, queue.state ${from}
            ORDER BY skein_tasks.created_at DESC, skein_tasks.id DESC LIMIT 5`
          let number = 0
          const rows = yield* isPostgres
            // As the connections of the engine.
            ? sql.withTransaction(Effect.andThen(
              sql`SET LOCAL enable_seqscan = off`,
              sql.unsafe(`EXPLAIN ${text.replaceAll("?", () => `$${++number}`)}`, parameters)
            ))
            : sql.unsafe(`EXPLAIN QUERY PLAN ${text}`, parameters)
          const plan = JSON.stringify(rows)
          expect(plan).not.toMatch(
            isPostgres ? /Seq Scan on skein_tasks/ : /SCAN skein_tasks(?! USING INDEX)/
          )
          expect(plan).toMatch(
            readsQueue
              ? /skein_task_queue|(SCAN|SEARCH) queue/
              : filter.hasFailed === true
              ? /skein_tasks_failed/
              : /skein_tasks_(created|owner)/
          )
          if (!readsQueue) expect(plan).not.toMatch(/"Sort|TEMP B-TREE/)
        }
      }
    }))
})
