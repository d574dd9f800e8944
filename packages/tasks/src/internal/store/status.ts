/**
 * Reads tasks, and writes what a running task reports: status messages and progress. Finds the tasks that have expired.
 */
import * as Effect from "effect/Effect"
import type { ListPosition } from "../../TaskState.ts"
import type { Store } from "./store.ts"
import { maxNameChars, maxTime, optionalNumberOf, toStoredMillis } from "./database.ts"
import {
  associatedData,
  listColumns,
  live,
  ownerToRow,
  stateColumns,
  type StoreContext,
  sweptColumns,
  taskColumns,
  toListed,
  toState,
  toStoredTask,
  toSwept,
  waitKinds
} from "./rows.ts"
import { escape } from "./storedText.ts"

const none: Effect.Effect<ReadonlyArray<never>> = /* @__PURE__ */ Effect.succeed([])

/** The position before a page; `undefined` for a position that no task can have. */
const start = (after: ListPosition | undefined): ListPosition | undefined => {
  if (after === undefined) return { createdAt: maxTime, id: "" }
  return Number.isSafeInteger(after.createdAt) ? { createdAt: after.createdAt, id: escape(after.id) } : undefined
}

/** Selects a page of the tasks of each owner, and from these one page. */
const listOf = (owners: number): string => {
  const order = "ORDER BY created_at DESC, id DESC LIMIT ?"
  const page = `SELECT ${listColumns} FROM skein_tasks
    WHERE owner = ? AND expires_at > ? AND (created_at, id) < (?, ?) ${order}`
  const pages = Array.from({ length: owners }, (_, index) => `SELECT * FROM (${page}) AS page${index}`)
  return owners === 1 ? page : `${pages.join(" UNION ALL ")} ${order}`
}

/** The operations of `TaskStore` on the state of a task. */
export const make = ({ changes, database, texts }: StoreContext) => {
  const { greatest, isPostgres } = database
  const selectState = database.prepare(
    `SELECT ${stateColumns(isPostgres)} FROM skein_tasks WHERE id = ? AND expires_at > ?`
  )
  const selectTask = database.prepare(`SELECT ${taskColumns} FROM skein_tasks WHERE id = ?`)
  const listOne = database.prepare(listOf(1))
  const update = (columns: string, condition = "") =>
    changes.prepare(
      `UPDATE skein_tasks SET ${columns}, version = version + 1, updated_at = ${greatest}(updated_at, ?)
       WHERE id = ? AND ${live} ${condition} RETURNING id`
    )
  const updateMessage = update("message = ?")
  const updateNumberedMessage = update("message = ?, said = ?", "AND said < ?")
  const updateWaits = update("waits = ?", "AND waits <> ?")
  // Clients have seen the end of the task, of which this changes nothing.
  const updateEndedWaits = database.prepare(`UPDATE skein_tasks SET waits = ? WHERE id = ? AND NOT (${live})`)
  const updateProgress = update(
    "progress = ?, progress_total = ?, progress_message = ?",
    "AND (progress IS NULL OR progress < ?)"
  )

  const get: Store["get"] = (id) =>
    Effect.flatMap(
      Effect.flatMap(database.now, (time) => selectState(id, time)),
      ([row]) => row === undefined ? Effect.undefined : toState(row, texts)
    )

  const load: Store["load"] = (id) =>
    Effect.flatMap(selectTask(id), ([row]) => row === undefined ? Effect.undefined : toStoredTask(row, texts))

  const list: Store["list"] = (owners, after, limit) => {
    const names = [...new Set(owners.map(ownerToRow))].filter((name) => name.length <= maxNameChars)
    const from = start(after)
    if (names.length === 0 || from === undefined || limit < 1) return none
    return Effect.flatMap(database.now, (time) => {
      const pages = names.flatMap((name) => [name, time, from.createdAt, from.id, limit])
      const rows = names.length === 1 ? listOne(...pages) : database.prepare(listOf(names.length))(...pages, limit)
      return Effect.flatMap(rows, (rows) => Effect.forEach(rows, (row) => toListed(row, texts)))
    })
  }

  const setStatusMessage: Store["setStatusMessage"] = (id, message, number) =>
    Effect.asVoid(
      Effect.flatMap(
        Effect.all([database.now, texts.encrypt(escape(message), associatedData.message(id))]),
        ([time, text]) =>
          number === undefined ? updateMessage(text, time, id) : updateNumberedMessage(text, number, time, id, number)
      )
    )

  const setWaitsForWorker: Store["setWaitsForWorker"] = (id, waits) =>
    Effect.asVoid(Effect.flatMap(database.now, (time) => {
      const stored = waitKinds[waits === "code" ? "code" : waits ? "tool" : "no"]
      return Effect.andThen(updateWaits(stored, time, id, stored), updateEndedWaits(stored, id))
    }))

  const setProgress: Store["setProgress"] = (id, { message, progress, total }) => {
    // JSON has no infinite numbers and no NaN.
    if (!Number.isFinite(progress)) return Effect.void
    const text = message === undefined
      ? Effect.succeed(null)
      : texts.encrypt(escape(message), associatedData.progress(id))
    const known = total !== undefined && Number.isFinite(total) ? total : null
    return Effect.asVoid(
      Effect.flatMap(
        Effect.all([database.now, text]),
        ([time, text]) => updateProgress(progress, known, text, time, id, progress)
      )
    )
  }

  // The bound is literal, as in the partial index, so that the index is used.
  const selectExpired = database.prepare(
    `SELECT ${sweptColumns} FROM skein_tasks
     WHERE expires_at < ${maxTime} AND expires_at <= ? AND (expires_at, id) > (?, ?) ORDER BY expires_at, id LIMIT ?`
  )
  const selectNextExpiry = database.prepare(
    `SELECT MIN(expires_at) AS next FROM skein_tasks WHERE expires_at < ${maxTime} AND expires_at > ?`
  )

  const setExpiry = database.prepare(
    `UPDATE skein_tasks SET expires_at = ? WHERE id = ? AND expires_at > ? AND NOT (${live})`
  )

  const expireWithin: Store["expireWithin"] = (id, after) =>
    Effect.flatMap(database.now, (time) => {
      const at = toStoredMillis(time + after)
      return Effect.as(setExpiry(at, id, at), at)
    })

  const findExpired: Store["findExpired"] = (limit, after) =>
    Effect.flatMap(
      database.now,
      (time) =>
        Effect.map(selectExpired(time, after?.expiresAt ?? -1, after?.id ?? "", limit), (rows) => rows.map(toSwept))
    )

  const nextExpiry: Store["nextExpiry"] = (after) =>
    Effect.map(
      selectNextExpiry(toStoredMillis(after)),
      ([row]) => row && optionalNumberOf(row, "next")
    )

  return { get, load, list, setStatusMessage, setWaitsForWorker, setProgress, expireWithin, findExpired, nextExpiry }
}
