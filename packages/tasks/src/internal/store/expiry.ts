/**
 * The expiry of tasks.
 */
import * as Effect from "effect/Effect"
import type { Store } from "./store.ts"
import { currentMillis, maxTime, toStoredMillis } from "./database.ts"
import { live, type StoreContext, sweptColumns, toSwept } from "./rows.ts"

/** The operations of `TaskStore` on expired tasks. */
export const make = ({ database }: StoreContext) => {
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

  return { expireWithin, findExpired, nextExpiry }
}
