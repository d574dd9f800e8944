/**
 * The details that running steps have reported last (`Step.heartbeat`): one row for each of these steps, until it ends.
 */
import * as Effect from "effect/Effect"
import { numberOf, type Row, textOf, toStoredMillis } from "./database.ts"
import { queued, type StoreContext } from "./rows.ts"
import type { HeartbeatStore, StoredHeartbeat } from "./store.ts"
import { escape, unescape } from "./storedText.ts"

const toHeartbeat = (row: Row): StoredHeartbeat => ({
  step: unescape(textOf(row, "name")),
  at: numberOf(row, "at"),
  details: textOf(row, "details")
})

/** Makes the operations. */
export const make = ({ database }: StoreContext): HeartbeatStore => {
  // The lock of the row in the queue makes a removal of the task wait, so that it deletes the details, too.
  const upsert = database.prepare(
    `INSERT INTO skein_task_heartbeats (task_id, name, at, details)
     SELECT task_id, CAST(? AS TEXT), CAST(? AS BIGINT), CAST(? AS TEXT) FROM skein_task_queue AS queue
     WHERE task_id = ? AND state = ${queued.running} AND worker = ? ${
      database.isPostgres ? "FOR KEY SHARE OF queue" : ""
    }
     ON CONFLICT (task_id, name) DO UPDATE SET at = excluded.at, details = excluded.details`
  )
  const select = database.prepare("SELECT name, at, details FROM skein_task_heartbeats WHERE task_id = ? ORDER BY name")
  const remove = database.prepare("DELETE FROM skein_task_heartbeats WHERE task_id = ? AND name = ?")
  return {
    set: (id, worker, { at, details, step }) =>
      Effect.asVoid(upsert(escape(step), toStoredMillis(at), details, id, worker)),
    list: (id) => Effect.map(select(id), (rows) => rows.map(toHeartbeat)),
    remove: (id, step) => Effect.asVoid(remove(id, escape(step)))
  }
}
