/**
 * The tasks that the sweeper reads: unsettled, cancelled and expired ones.
 */
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import type { Store } from "./store.ts"
import { currentMillis, maxTime, toStoredMillis } from "./database.ts"
import { live, type StoreContext, sweptColumns, toSwept } from "./rows.ts"

/** The operations of `TaskStore` for the sweeper. */
export const make = ({ database }: StoreContext) => {
  const selectUnsettled = database.prepare(
    `SELECT ${sweptColumns} FROM skein_tasks WHERE settled = 0 AND id > ? AND updated_at <= ? ORDER BY id LIMIT ?`
  )
  // The condition is literal, as in the partial index, so that the index is used.
  const selectUndoing = database.prepare(
    `SELECT ${sweptColumns} FROM skein_tasks WHERE settled = 0 AND status = 'cancelled' AND id > ? ORDER BY id LIMIT ?`
  )
  const markSettled = database.prepare(
    `UPDATE skein_tasks SET settled = 1 WHERE id IN (${database.textsOfJson}) AND NOT (${live})`
  )
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

  const findUnsettled: Store["findUnsettled"] = (quiet, limit, after) =>
    Effect.flatMap(
      currentMillis,
      (time) =>
        Effect.map(selectUnsettled(after?.id ?? "", time - toStoredMillis(quiet), limit), (rows) => rows.map(toSwept))
    )

  const findUndoing: Store["findUndoing"] = (limit, after) =>
    Effect.map(selectUndoing(after?.id ?? "", limit), (rows) => rows.map(toSwept))

  const settle = (ids: ReadonlyArray<string>): Effect.Effect<void, TaskError> =>
    Effect.asVoid(markSettled(JSON.stringify(ids)))

  const expireWithin: Store["expireWithin"] = (id, after) =>
    Effect.flatMap(currentMillis, (time) => {
      const at = toStoredMillis(time + after)
      return Effect.as(setExpiry(at, id, at), at)
    })

  const findExpired: Store["findExpired"] = (limit, after) =>
    Effect.flatMap(
      currentMillis,
      (time) =>
        Effect.map(selectExpired(time, after?.expiresAt ?? -1, after?.id ?? "", limit), (rows) => rows.map(toSwept))
    )

  const nextExpiry: Store["nextExpiry"] = (after) =>
    Effect.map(
      selectNextExpiry(toStoredMillis(after)),
      ([row]) => row?.["next"] == null ? undefined : Number(row["next"])
    )

  return { findUnsettled, findUndoing, settle, expireWithin, findExpired, nextExpiry }
}
