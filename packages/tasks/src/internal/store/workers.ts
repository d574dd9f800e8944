/**
 * The workers of a database that several processes share: the processes that run tasks. A worker renews its lease; the
 * tasks of a worker whose lease is over belong to nobody. The clock of the database decides.
 */
import * as Effect from "effect/Effect"
import type { Database } from "./database.ts"
import type { Store } from "./store.ts"

const now = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"

/** The operations of `TaskStore` on workers. Only PostgreSQL has more than one. */
export const make = (database: Database): Pick<Store, "register" | "renew" | "unregister" | "removeLost"> => {
  const insert = database.prepare(
    `INSERT INTO skein_task_workers (id, pools, host, started_at, expires_at)
     VALUES (?, ?, ?, ${now}, ${now} + CAST(? AS BIGINT))`
  )
  const update = database.prepare(`UPDATE skein_task_workers SET expires_at = ${now} + CAST(? AS BIGINT)
    WHERE id = ? RETURNING id`)
  const remove = database.prepare("DELETE FROM skein_task_workers WHERE id = ?")
  const removeLost = database.prepare(`DELETE FROM skein_task_workers WHERE expires_at < ${now} RETURNING id`)
  return {
    register: (id, { host, leaseMs, pools }) => Effect.asVoid(insert(id, JSON.stringify(pools), host, leaseMs)),
    renew: (id, leaseMs) => Effect.map(update(leaseMs, id), (rows) => rows.length > 0),
    unregister: (id) => Effect.asVoid(remove(id)),
    removeLost: Effect.map(removeLost(), (rows) => rows.length)
  }
}
