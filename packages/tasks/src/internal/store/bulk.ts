/**
 * Changes of many tasks by an operator, each in one statement or transaction, and the notes about what operators have
 * done to a task.
 */
import type { TaskStatus } from "@skein/protocol/Task"
import { cut } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import type { OperatorAction, TaskCount } from "../../TaskAdmin.ts"
import { truncateLine } from "../base/text.ts"
import { maxNameChars, numberOf, optionalTextOf, type Row, textOf } from "./database.ts"
import { associatedData, queued, type StoreContext } from "./rows.ts"
import { rankOf, tooLong } from "./lifecycle.ts"
import type { BulkStore } from "./store.ts"
import { escape, unescape } from "./storedText.ts"
import { isInQueue, select } from "./taskFilter.ts"

const idOf = (row: Row): string => textOf(row, "id")

/** Makes the operations. */
export const make = ({ database, signals, texts }: StoreContext): BulkStore => {
  const inTasks = `IN (${database.textsOfJson})`

  const updatePriority = database.prepare(
    `UPDATE skein_task_queue SET priority = CAST(? AS INTEGER) WHERE task_id ${inTasks} RETURNING task_id AS id`
  )
  const updatePool = database.prepare(
    `UPDATE skein_task_queue SET pool = CAST(? AS TEXT) WHERE task_id ${inTasks} RETURNING task_id AS id, pool, state, gate`
  )
  const updateTaskPool = database.prepare(`UPDATE skein_tasks SET pool = CAST(? AS TEXT) WHERE id ${inTasks}`)
  const insertNote = database.prepare(
    `INSERT INTO skein_task_notes (task_id, at, action, source, detail)
     SELECT id, CAST(? AS BIGINT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT)
     FROM skein_tasks WHERE id ${inTasks}`
  )
  const selectNotes = database.prepare(
    "SELECT at, action, source, detail FROM skein_task_notes WHERE task_id = ? AND action <> 'undo' ORDER BY at"
  )
  const insertFailed = database.prepare(
    `INSERT INTO skein_task_notes (task_id, at, action, source, detail)
     SELECT id, CAST(? AS BIGINT), 'undo', CAST(? AS TEXT), CAST(? AS TEXT) FROM skein_tasks
     WHERE id = ? AND NOT EXISTS (
       SELECT 1 FROM skein_task_notes WHERE task_id = skein_tasks.id AND action = 'undo' AND source = CAST(? AS TEXT)
     )`
  )
  const selectFailed = database.prepare(
    "SELECT at, source, detail FROM skein_task_notes WHERE task_id = ? AND action = 'undo' ORDER BY at"
  )
  const undoData = (id: string, number: number) => associatedData.other(`undo ${id} ${number}`)
  const selectRerun = database.prepare(
    `SELECT DISTINCT task_id AS id FROM skein_task_notes WHERE action = 'rerun' AND task_id ${inTasks}`
  )

  return {
    count: (filter) =>
      Effect.suspend(() => {
        const selected = select(filter, { database, readsQueue: isInQueue(filter) })
        if (selected === undefined) return Effect.succeed([])
        const statement = database.prepare(
          `SELECT skein_tasks.tool, skein_tasks.status, COUNT(*) AS tasks ${selected.from}
           GROUP BY skein_tasks.tool, skein_tasks.status ORDER BY skein_tasks.tool, skein_tasks.status`
        )
        return Effect.map(statement(...selected.parameters), (rows) =>
          rows.map((row): TaskCount => ({
            tool: unescape(textOf(row, "tool")),
            status: textOf(row, "status") as TaskStatus,
            count: numberOf(row, "tasks")
          })))
      }),
    setPriority: (ids, priority) =>
      Effect.map(updatePriority(rankOf(priority), JSON.stringify(ids)), (rows) => rows.map(idOf)),
    setPool: (ids, given) => {
      const pool = escape(given)
      if (pool.length > maxNameChars) return Effect.fail(tooLong("pool"))
      return database.transaction(
        Effect.gen(function*() {
          const moved = yield* updatePool(pool, JSON.stringify(ids))
          const found = moved.map(idOf)
          if (found.length > 0) yield* updateTaskPool(pool, JSON.stringify(found))
          yield* signals.announce(moved.filter(({ state }) => Number(state) === queued.ready))
          return found
        })
      )
    },
    note: (ids, { action, by, detail }) =>
      Effect.flatMap(database.now, (now) =>
        insertNote(
          now,
          action,
          by === undefined ? null : escape(cut(by, maxNameChars)),
          detail ?? null,
          JSON.stringify(ids)
        )),
    readNotes: (id) =>
      Effect.map(selectNotes(id), (rows) =>
        rows.map((row): OperatorAction => {
          const by = optionalTextOf(row, "source")
          return {
            at: numberOf(row, "at"),
            action: textOf(row, "action") as OperatorAction["action"],
            by: by === undefined ? undefined : unescape(by),
            detail: optionalTextOf(row, "detail")
          }
        })),
    noteFailedCompensation: (id, number, message) =>
      Effect.flatMap(
        Effect.all([database.now, texts.encrypt(escape(truncateLine(message)), undoData(id, number))]),
        ([now, text]) => insertFailed(now, String(number), text, id, String(number))
      ),
    readFailedCompensations: (id) =>
      Effect.flatMap(selectFailed(id), (rows) =>
        Effect.forEach(rows, (row) => {
          const number = numberOf(row, "source")
          const text = texts.decrypt(textOf(row, "detail"), undoData(id, number))
          // An operator without the key sees that it has failed.
          const message = Effect.catchIf(text, ({ reason }) => reason._tag === "KeyError", () => Effect.succeed(""))
          return Effect.map(message, (message) => ({ at: numberOf(row, "at"), number, message: unescape(message) }))
        })),
    findRerun: (ids) => Effect.map(selectRerun(JSON.stringify(ids)), (rows) => new Set(rows.map(idOf)))
  }
}
