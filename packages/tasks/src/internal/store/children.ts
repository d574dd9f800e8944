/**
 * The children of tasks: their places in their parents, and whether they have ended. The statement that ends a child
 * notes it here and signals its parent.
 */
import * as Effect from "effect/Effect"
import type { State } from "../../TaskState.ts"
import { numberOf, optionalNumberOf, textOf } from "./database.ts"
import { live, stateColumns, type StoreContext, toState } from "./rows.ts"
import { recordSignal } from "./runSignals.ts"
import type { ChildStore } from "./childStore.ts"
import { escape, unescape } from "./storedText.ts"

/** The states of a row. */
const states = { live: 0, completed: 1, failed: 2 } as const

/**
 * The statement that reserves the place of a child, unless it is taken or the parent has ended. The lock lets a
 * cancellation of the parent wait, so that it finds the child.
 */
export const linkChild = (isPostgres: boolean, condition: string): string =>
  `INSERT INTO skein_task_children (parent, name, item, child, detached)
   SELECT parent.id, CAST(? AS TEXT), CAST(? AS INTEGER), CAST(? AS TEXT), CAST(? AS INTEGER)
   FROM (SELECT id FROM skein_tasks WHERE id = ? AND ${live} ${isPostgres ? "FOR SHARE" : ""}) AS parent
   WHERE ${condition} ON CONFLICT (parent, name, item) DO NOTHING RETURNING child`

/** The query for the parent of a task. */
export const parentOf = (id: string): string => `SELECT parent FROM skein_task_children WHERE child = ${id}`

/**
 * Notes the end of the task in the row `changed`, if it is a child, and signals its parent, in a statement of PostgreSQL. On
 * SQLite a trigger does it.
 */
export const noteChildEnd = `child AS (
    UPDATE skein_task_children SET state = CASE
      WHEN (SELECT status FROM changed) = 'completed' AND (SELECT is_error FROM changed) = 0 THEN ${states.completed}
      ELSE ${states.failed} END
    WHERE child = (SELECT id FROM changed) RETURNING parent
  ),
  parent_signalled AS (
    UPDATE skein_task_queue SET ${recordSignal("(SELECT updated_at FROM changed)")}
    WHERE task_id = (SELECT parent FROM child) RETURNING task_id, state, pool, gate
  )`

/** Makes the operations. */
export const make = ({ database, texts }: StoreContext): ChildStore => {
  const selectProgress = database.prepare(
    `SELECT
       (SELECT MAX(item) FROM skein_task_children WHERE parent = ? AND name = ? AND item >= 0) AS last,
       (SELECT COUNT(*) FROM skein_task_children WHERE parent = ? AND state = ${states.live} AND name = ?) AS live,
       (SELECT MIN(item) FROM skein_task_children WHERE parent = ? AND state = ${states.failed} AND name = ?) AS failed`
  )
  const selectGroup = database.prepare(
    "SELECT child, item FROM skein_task_children WHERE parent = ? AND name = ? AND item >= ? AND item < ?"
  )
  const selectStates = database.prepare(
    `SELECT ${stateColumns(database.isPostgres)} FROM skein_tasks WHERE id IN (${database.textsOfJson})`
  )
  const selectEnded = database.prepare(
    `SELECT name FROM skein_task_children
     WHERE parent = ? AND state IN (${states.completed}, ${states.failed}) AND item < 0`
  )
  const selectLive = database.prepare(
    `SELECT child FROM skein_task_children WHERE parent = ? AND state = ${states.live} AND detached = 0 LIMIT ?`
  )
  const selectLiveOf = database.prepare(
    `SELECT child FROM skein_task_children
     WHERE parent = ? AND state = ${states.live} AND name = ? AND detached = 0 LIMIT ?`
  )
  const selectParent = database.prepare(parentOf("?"))
  const selectCounts = database.prepare(
    "SELECT state, COUNT(*) AS children FROM skein_task_children WHERE parent = ? GROUP BY state"
  )

  return {
    progress: (parent, given) => {
      const name = escape(given)
      return Effect.map(selectProgress(parent, name, parent, name, parent, name), ([row]) => ({
        started: (optionalNumberOf(row!, "last") ?? -1) + 1,
        live: numberOf(row!, "live"),
        failed: optionalNumberOf(row!, "failed")
      }))
    },
    states: Effect.fnUntraced(function*(parent, name, from, limit) {
      const places = yield* selectGroup(parent, escape(name), from, from + limit)
      const ids = places.map((row) => textOf(row, "child"))
      const rows = new Map((yield* selectStates(JSON.stringify(ids))).map((row) => [textOf(row, "id"), row]))
      const found = new Map<number, State | undefined>()
      for (const place of places) {
        const row = rows.get(textOf(place, "child"))
        found.set(numberOf(place, "item"), row && (yield* toState(row, texts)))
      }
      return found
    }),
    findEnded: (parent) =>
      Effect.map(selectEnded(parent), (rows) => new Set(rows.map((row) => unescape(textOf(row, "name"))))),
    findLive: (parent, name, limit) =>
      Effect.map(
        name === undefined ? selectLive(parent, limit) : selectLiveOf(parent, escape(name), limit),
        (rows) => rows.map((row) => textOf(row, "child"))
      ),
    relatives: Effect.fnUntraced(function*(id) {
      const [row] = yield* selectParent(id)
      const counts = new Map(
        (yield* selectCounts(id)).map((row) => [numberOf(row, "state"), numberOf(row, "children")])
      )
      return {
        parent: row && textOf(row, "parent"),
        children: {
          live: counts.get(states.live) ?? 0,
          completed: counts.get(states.completed) ?? 0,
          failed: counts.get(states.failed) ?? 0
        }
      }
    })
  }
}
