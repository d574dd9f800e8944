/**
 * What sweeps look at.
 */
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import type { Swept } from "./store.ts"
import { millis, now, type Table } from "./context.ts"
import { never } from "./database.ts"
import { live, sweptColumns, toSwept } from "./rows.ts"

type Page = Effect.Effect<ReadonlyArray<Swept>, TaskError>

/** See `TaskStore`. */
export const make = ({ database }: Table) => {
  const rests = database.prepare(
    `SELECT ${sweptColumns} FROM skein_tasks WHERE settled = 0 AND id > ? AND updated_at <= ? ORDER BY id LIMIT ?`
  )
  // The condition is in the text, as it is in the index.
  const undoes = database.prepare(
    `SELECT ${sweptColumns} FROM skein_tasks WHERE settled = 0 AND status = 'cancelled' AND id > ? ORDER BY id LIMIT ?`
  )
  const ids = database.pg ? "SELECT json_array_elements_text(CAST(? AS JSON))" : "SELECT value FROM json_each(?)"
  const settles = database.prepare(`UPDATE skein_tasks SET settled = 1 WHERE id IN (${ids}) AND NOT (${live})`)
  // The bound is in the text, as it is in the index.
  const expires = database.prepare(
    `SELECT ${sweptColumns} FROM skein_tasks
     WHERE expires_at < ${never} AND expires_at <= ? AND (expires_at, id) > (?, ?) ORDER BY expires_at, id LIMIT ?`
  )
  const next = database.prepare(
    `SELECT MIN(expires_at) AS next FROM skein_tasks WHERE expires_at < ${never} AND expires_at > ?`
  )

  const lapses = database.prepare(
    `UPDATE skein_tasks SET expires_at = ? WHERE id = ? AND expires_at > ? AND NOT (${live})`
  )

  const unsettled = (quiet: number, limit: number, after?: Swept): Page =>
    Effect.flatMap(
      now,
      (time) => Effect.map(rests(after?.id ?? "", time - millis(quiet), limit), (rows) => rows.map(toSwept))
    )

  const undoing = (limit: number, after?: Swept): Page =>
    Effect.map(undoes(after?.id ?? "", limit), (rows) => rows.map(toSwept))

  const settle = (ids: ReadonlyArray<string>): Effect.Effect<void, TaskError> =>
    Effect.asVoid(settles(JSON.stringify(ids)))

  const lapse = (id: string, after: number): Effect.Effect<number, TaskError> =>
    Effect.flatMap(now, (time) => {
      const at = millis(time + after)
      return Effect.as(lapses(at, id, at), at)
    })

  const expired = (limit: number, after?: Swept): Page =>
    Effect.flatMap(
      now,
      (time) => Effect.map(expires(time, after?.expiresAt ?? -1, after?.id ?? "", limit), (rows) => rows.map(toSwept))
    )

  const nextExpiry = (after: number): Effect.Effect<number | undefined, TaskError> =>
    Effect.map(next(millis(after)), ([row]) => row?.["next"] == null ? undefined : Number(row["next"]))

  return { unsettled, undoing, settle, lapse, expired, nextExpiry }
}
