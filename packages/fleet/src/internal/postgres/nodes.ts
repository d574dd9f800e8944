/**
 * The nodes of a fleet in PostgreSQL: their leases, by the clock of the database, and the removal of rows.
 */
import { FleetError, maxNode } from "@skein/server/Fleet"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { randomBytes } from "node:crypto"
import type { Backend, Members } from "../node/backend.ts"
import { now, prepare, statementTime } from "./database.ts"
import { maxDeleted } from "./records.ts"

// How often all nodes together count the sessions, in milliseconds. If that takes long, they wait 20 times as long.
const countMillis = 4_000
const countPause = 20

// How many sessions above the bound one statement deletes: it ranks all sessions.
const maxExcess = 20_000

/** Adds a node. Its number is that of a sequence, so no later node has it. */
export const join = (
  sql: SqlClient.SqlClient,
  namespace: string,
  leaseMillis: number
): Effect.Effect<{ readonly node: number; readonly key: string }, FleetError> =>
  Effect.gen(function*() {
    const insertKey = prepare(
      sql,
      "INSERT INTO skein_fleet_keys (namespace, key) VALUES ($1, $2) ON CONFLICT (namespace) DO NOTHING"
    )
    const selectKey = prepare(sql, "SELECT key FROM skein_fleet_keys WHERE namespace = $1")
    const insertNode = prepare(
      sql,
      `INSERT INTO skein_fleet_nodes (namespace, expires_at) VALUES ($1, ${now} + $2) RETURNING node`
    )
    yield* insertKey(namespace, randomBytes(32).toString("base64url"))
    const [row] = yield* selectKey(namespace)
    const [inserted] = yield* insertNode(namespace, leaseMillis)
    const node = Number(inserted!["node"])
    if (node > maxNode) {
      yield* deleteNode(sql)(node)
      return yield* new FleetError({
        message: `the number of this node would be ${node}, and the largest is ${maxNode}: ` +
          "stop all nodes, delete the rows of skein_fleet_sessions, and restart the sequence skein_fleet_nodes_node_seq"
      })
    }
    return { node, key: row!["key"] as string }
  })

const deleteNode = (sql: SqlClient.SqlClient) => prepare(sql, "DELETE FROM skein_fleet_nodes WHERE node = $1")

/** The operations of `Backend` on nodes, and the removal of rows. */
export const makeNodes = (sql: SqlClient.SqlClient, namespace: string, node: number, leaseMillis: number) => {
  // The row is missing if the lease has ended and another node has noticed that.
  const renewLease = prepare(
    sql,
    `WITH gone AS (DELETE FROM skein_fleet_nodes WHERE namespace = $1 AND expires_at < ${now} AND node <> $2),
     own AS (
       INSERT INTO skein_fleet_nodes (namespace, node, expires_at) VALUES ($1, $2, ${now} + $3)
       ON CONFLICT (node) DO UPDATE SET expires_at = excluded.expires_at RETURNING xmax = 0 AS was_lost
     )
     SELECT own.was_lost, (
       SELECT json_agg(other.node) FROM skein_fleet_nodes AS other
       WHERE other.namespace = $1 AND other.node <> $2 AND other.expires_at >= ${now}
     ) AS others FROM own`
  )
  const remove = deleteNode(sql)
  // One node counts the sessions at a time. No statement waits for the lock of a row that another node uses.
  const claim = prepare(
    sql,
    `UPDATE skein_fleet_keys SET counted_at = ${now}
     WHERE namespace = $1 AND counted_at < ${now} - ${countMillis} RETURNING namespace`
  )
  const deleteExpired = prepare(
    sql,
    `DELETE FROM skein_fleet_sessions WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM skein_fleet_sessions WHERE namespace = $1 AND expires_at <= ${statementTime}
       ORDER BY expires_at LIMIT ${maxDeleted} FOR UPDATE SKIP LOCKED)) RETURNING id`
  )
  const deletePayloads = prepare(
    sql,
    `DELETE FROM skein_fleet_payloads WHERE ctid = ANY (ARRAY(
       SELECT ctid FROM skein_fleet_payloads WHERE expires_at <= ${statementTime}
       ORDER BY expires_at LIMIT ${maxDeleted} FOR UPDATE SKIP LOCKED)) RETURNING id`
  )
  const postpone = prepare(
    sql,
    `UPDATE skein_fleet_keys SET counted_at = ${now} + $2 - ${countMillis} WHERE namespace = $1`
  )
  const count = prepare(sql, "SELECT COUNT(*) AS count FROM skein_fleet_sessions WHERE namespace = $1")
  // The later sessions of the clients with the most come first, and of one client those used least recently.
  const deleteExcess = prepare(
    sql,
    `DELETE FROM skein_fleet_sessions WHERE namespace = $1 AND id IN (
       SELECT id FROM skein_fleet_sessions WHERE namespace = $1 AND id IN (
         SELECT id FROM (
           SELECT id, row_number() OVER (PARTITION BY client ORDER BY expires_at DESC, id) AS place
           FROM skein_fleet_sessions WHERE namespace = $1
         ) AS ranked ORDER BY place DESC LIMIT $2
       ) FOR UPDATE SKIP LOCKED) RETURNING id`
  )

  const renew: Backend["renew"] = Effect.map(renewLease(namespace, node, leaseMillis), ([row]): Members => ({
    nodes: [node, ...(row?.["others"] as ReadonlyArray<number> | null) ?? []],
    wasLost: row?.["was_lost"] === true
  }))

  const clean: Backend["clean"] = (maxSessions) =>
    Effect.gen(function*() {
      for (const statement of [deleteExpired(namespace), deletePayloads()]) {
        while ((yield* statement).length === maxDeleted);
      }
      if (maxSessions === undefined || (yield* claim(namespace)).length === 0) return []
      const started = yield* Clock.currentTimeMillis
      const [row] = yield* count(namespace)
      const excess = Math.min(Number(row!["count"]) - maxSessions, maxExcess)
      const ended = excess > 0 ? yield* deleteExcess(namespace, excess) : []
      const pause = ((yield* Clock.currentTimeMillis) - started) * countPause
      if (pause > countMillis) yield* postpone(namespace, pause)
      return ended.map((row) => row["id"] as string)
    })

  return { renew, leave: Effect.asVoid(remove(node)), clean }
}
