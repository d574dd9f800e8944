/**
 * What a running task tells, and what is known of it.
 */
import type { Progress } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import type { Owner, Position, State } from "../../TaskState.ts"
import type { Work } from "./store.ts"
import { longest, now, type Table } from "./context.ts"
import { never } from "./database.ts"
import { about, listed, live, ownerToRow, toListed, toState, toWork, whole, workColumns } from "./rows.ts"
import { escape } from "./stored.ts"

const none: Effect.Effect<ReadonlyArray<never>> = /* @__PURE__ */ Effect.succeed([])

/** Where a page begins; `undefined` where nothing can be. */
const start = (after: Position | undefined): Position | undefined => {
  if (after === undefined) return { createdAt: never, id: "" }
  return Number.isSafeInteger(after.createdAt) ? { createdAt: after.createdAt, id: escape(after.id) } : undefined
}

/** A page of each owner, and of these one. */
const listOf = (owners: number): string => {
  const order = "ORDER BY created_at DESC, id DESC LIMIT ?"
  const page = `SELECT ${listed} FROM skein_tasks
    WHERE owner = ? AND expires_at > ? AND (created_at, id) < (?, ?) ${order}`
  const pages = Array.from({ length: owners }, (_, index) => `SELECT * FROM (${page}) AS page${index}`)
  return owners === 1 ? page : `${pages.join(" UNION ALL ")} ${order}`
}

/** See `TaskStore`. */
export const make = ({ changes, database, vault }: Table) => {
  const { latest, pg } = database
  const reads = database.prepare(`SELECT ${whole(pg)} FROM skein_tasks WHERE id = ? AND expires_at > ?`)
  const works = database.prepare(`SELECT ${workColumns} FROM skein_tasks WHERE id = ?`)
  const listsOne = database.prepare(listOf(1))
  const says = changes.prepare(
    `UPDATE skein_tasks SET message = ?, version = version + 1, updated_at = ${latest}(updated_at, ?)
     WHERE id = ? AND ${live} RETURNING id`
  )
  const saysNumber = changes.prepare(
    `UPDATE skein_tasks SET message = ?, said = ?, version = version + 1, updated_at = ${latest}(updated_at, ?)
     WHERE id = ? AND ${live} AND said < ? RETURNING id`
  )
  const waitings = changes.prepare(
    `UPDATE skein_tasks SET waits = ?, version = version + 1, updated_at = ${latest}(updated_at, ?)
     WHERE id = ? AND ${live} AND waits <> ? RETURNING id`
  )
  const progresses = changes.prepare(
    `UPDATE skein_tasks SET progress = ?, progress_total = ?, progress_message = ?, version = version + 1,
       updated_at = ${latest}(updated_at, ?)
     WHERE id = ? AND ${live} AND (progress IS NULL OR progress < ?) RETURNING id`
  )

  const state = (id: string): Effect.Effect<State | undefined, TaskError> =>
    Effect.flatMap(
      Effect.flatMap(now, (time) => reads(id, time)),
      ([row]) => row === undefined ? Effect.undefined : toState(row, vault)
    )

  const work = (id: string): Effect.Effect<Work | undefined, TaskError> =>
    Effect.flatMap(works(id), ([row]) => row === undefined ? Effect.undefined : toWork(row, vault))

  const list = (
    owners: ReadonlyArray<Owner>,
    after: Position | undefined,
    limit: number
  ): Effect.Effect<ReadonlyArray<State>, TaskError> => {
    const names = [...new Set(owners.map(ownerToRow))].filter((name) => name.length <= longest)
    const from = start(after)
    if (names.length === 0 || from === undefined || limit < 1) return none
    return Effect.flatMap(now, (time) => {
      const pages = names.flatMap((name) => [name, time, from.createdAt, from.id, limit])
      const rows = names.length === 1 ? listsOne(...pages) : database.prepare(listOf(names.length))(...pages, limit)
      return Effect.flatMap(rows, (rows) => Effect.forEach(rows, (row) => toListed(row, vault)))
    })
  }

  const say = (id: string, message: string, number?: number): Effect.Effect<void, TaskError> =>
    Effect.asVoid(
      Effect.flatMap(Effect.all([now, vault.seal(escape(message), about.message(id))]), ([time, text]) =>
        number === undefined ? says(text, time, id) : saysNumber(text, number, time, id, number))
    )

  const waits = (id: string, waits: boolean): Effect.Effect<void, TaskError> =>
    Effect.asVoid(Effect.flatMap(now, (time) => waitings(Number(waits), time, id, Number(waits))))

  const progress = (id: string, { message, progress, total }: Progress): Effect.Effect<void, TaskError> => {
    // Numbers that JSON cannot say are said to nobody.
    if (!Number.isFinite(progress)) return Effect.void
    const text = message === undefined ? Effect.succeed(null) : vault.seal(escape(message), about.progress(id))
    const known = total !== undefined && Number.isFinite(total) ? total : null
    return Effect.asVoid(
      Effect.flatMap(Effect.all([now, text]), ([time, text]) => progresses(progress, known, text, time, id, progress))
    )
  }

  return { state, work, list, say, waits, progress }
}
