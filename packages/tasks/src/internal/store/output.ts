/**
 * The output of tasks: the items that their bodies emit, in one order per task, for readers that follow it while the task
 * runs.
 *
 * Each statement that adds an item locks the row of the task in the queue, so that none is added after its end or its
 * deletion.
 */
import * as Effect from "effect/Effect"
import { InvalidOutput, TaskError, TooMuchOutput } from "../../TaskError.ts"
import type { OutputItem } from "../../TaskState.ts"
import type { Bounds } from "../base/bounds.ts"
import { numberOf, textOf } from "./database.ts"
import type { OutputStore } from "./outputStore.ts"
import { associatedData, live, type StoreContext } from "./rows.ts"
import { fromJson, isPermanent, toJson } from "./storedText.ts"

/** Items of a page, and bytes of their values as JSON in UTF-8. A page has at least one item, if there is one. */
const maxPageItems = 1000
const maxPageBytes = 1_048_576

const utf8Encoder = new TextEncoder()

const invalid = (message: string) => Effect.fail(new TaskError({ reason: new InvalidOutput({ message }) }))

/** The key of the listeners of an output. */
const listenerKey = (id: string): string => `output:${id}`

/** The operations of `TaskStore` on output. */
export const make = ({ changes, database, texts }: StoreContext, bounds: Bounds): OutputStore => {
  const { maxOutputBytes, maxOutputItemBytes, maxOutputItems } = bounds
  const columns = "task_id, place, value, total, at"
  const selectLast = database.prepare(
    "SELECT place, total FROM skein_task_output WHERE task_id = ? ORDER BY place DESC LIMIT 1"
  )
  // Of two items at once, the second one waits for the transaction of the first one, and takes the next place.
  const insert = changes.prepare(
    `INSERT INTO skein_task_output (${columns})
     SELECT queue.task_id, COALESCE(last.place + 1, 0), CAST(? AS TEXT), COALESCE(last.total, 0) + CAST(? AS BIGINT),
       CAST(? AS BIGINT)
     FROM skein_task_queue AS queue
     LEFT JOIN (
       SELECT place, total FROM skein_task_output WHERE task_id = ? ORDER BY place DESC LIMIT 1
     ) AS last ON 1 = 1
     WHERE queue.task_id = ? AND EXISTS (SELECT 1 FROM skein_tasks WHERE id = queue.task_id AND ${live})
       AND COALESCE(last.place + 1, 0) < CAST(? AS INTEGER)
       AND COALESCE(last.total, 0) + CAST(? AS BIGINT) <= CAST(? AS BIGINT)
     ${database.isPostgres ? "FOR KEY SHARE OF queue" : ""}
     ON CONFLICT (task_id, place) DO NOTHING RETURNING '${listenerKey("")}' || task_id AS id, place`
  )
  const selectLive = database.prepare(
    `SELECT 1 FROM skein_task_queue WHERE task_id = ? AND EXISTS (SELECT 1 FROM skein_tasks WHERE id = task_id AND ${live})`
  )
  const selectPage = database.prepare(
    `SELECT place, value, at FROM skein_task_output
     WHERE task_id = ? AND place >= ? AND (place = ? OR total <= CAST(? AS BIGINT) + COALESCE(
       (SELECT total FROM skein_task_output AS page WHERE task_id = ? AND place < ? ORDER BY place DESC LIMIT 1), 0))
     ORDER BY place LIMIT ${maxPageItems}`
  )
  const selectUntil = database.prepare(
    `SELECT ${columns} FROM skein_task_output WHERE task_id = ? AND place < ? AND at <= ? ORDER BY place`
  )
  const insertCopy = database.prepare(`INSERT INTO skein_task_output (${columns}) VALUES (?, ?, ?, ?, ?)`)

  const check: OutputStore["check"] = (value) =>
    Effect.flatMap(
      Effect.catchIf(toJson(value), isPermanent, ({ message }) => invalid(`an item of output is invalid: ${message}`)),
      (text) => {
        const bytes = utf8Encoder.encode(text).length
        return bytes <= maxOutputItemBytes
          ? Effect.succeed(text)
          : invalid(`an item of output has ${bytes} bytes, and may have at most ${maxOutputItemBytes}`)
      }
    )

  /** The number of items, and the bytes of their values. */
  const size = (id: string) =>
    Effect.map(selectLast(id), ([last]) =>
      last === undefined
        ? { items: 0, bytes: 0 }
        : { items: numberOf(last, "place") + 1, bytes: numberOf(last, "total") })

  const add: OutputStore["add"] = Effect.fnUntraced(function*(id, text) {
    const bytes = utf8Encoder.encode(text).length
    const encrypted = yield* texts.encrypt(text, associatedData.output(id))
    while (true) {
      const now = yield* database.now
      const added = yield* insert(encrypted, bytes, now, id, id, maxOutputItems, bytes, maxOutputBytes)
      if (added !== undefined) return numberOf(added, "place")
      const present = yield* size(id)
      if (present.items >= maxOutputItems || present.bytes + bytes > maxOutputBytes) {
        const has = `the task has emitted ${present.items} items of ${present.bytes} bytes`
        const message = `${has}, and may emit at most ${maxOutputItems} items of ${maxOutputBytes} bytes`
        return yield* Effect.fail(new TaskError({ reason: new TooMuchOutput({ message }) }))
      }
      if ((yield* selectLive(id)).length === 0) return undefined
    }
  })

  const read: OutputStore["read"] = (id, from) =>
    Effect.flatMap(
      selectPage(id, from, from, maxPageBytes, id, from),
      (rows) =>
        Effect.forEach(rows, (row) =>
          Effect.map(
            Effect.flatMap(texts.decrypt(textOf(row, "value"), associatedData.output(id)), fromJson<unknown>),
            (value): OutputItem => ({ offset: numberOf(row, "place"), at: numberOf(row, "at"), value })
          ))
    )

  const copy: OutputStore["copy"] = (id, to, before, until) =>
    Effect.flatMap(
      selectUntil(id, Math.min(before, maxOutputItems), until),
      (rows) =>
        Effect.forEach(rows, (row) =>
          Effect.flatMap(
            Effect.flatMap(
              texts.decrypt(textOf(row, "value"), associatedData.output(id)),
              (text) => texts.encrypt(text, associatedData.output(to))
            ),
            (value) => insertCopy(to, numberOf(row, "place"), value, numberOf(row, "total"), numberOf(row, "at"))
          ), { discard: true })
    )

  const count: OutputStore["count"] = (id) => Effect.map(size(id), ({ items }) => items)

  return { check, add, read, count, copy, listen: (id, listener) => changes.listen(listenerKey(id), listener) }
}
