/**
 * The records of sessions in PostgreSQL. Each operation is one statement.
 */
import type { SessionBounds, SessionChange, SessionRecord } from "@skein/server/Fleet"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { type Backend, digestOf, principalOf } from "../node/backend.ts"
import { contentOf, notifyReceivers } from "./carrier.ts"
import { expiry, now, prepare, type Row } from "./database.ts"

// How many rows one statement deletes.
export const maxDeleted = 1_000

const isOld = `expires_at < ${now} + idle_millis`

// An index on `expires_at` need not change if that does not.
const nextExpiry = `CASE WHEN ${isOld} THEN ${expiry("idle_millis")} ELSE expires_at END`

// A record, by its primary key. Without the operator PostgreSQL takes another index and reads all records, if it knows no
// statistics of the table when it plans the statement.
const inNamespace = "namespace || '' = $1"

/** The part of a record that never changes. */
interface Fixed
  extends Pick<SessionRecord, "revision" | "capabilities">, Partial<Pick<SessionRecord, "principalId" | "info">>
{}

const toRecord = (id: string, row: Row): SessionRecord => {
  const { capabilities, info, principalId, revision } = JSON.parse(row["record"] as string) as Fixed
  return {
    id,
    principalId,
    revision,
    info,
    capabilities,
    isInitialized: row["is_initialized"] === true,
    logLevel: (row["log_level"] as string | null) ?? undefined,
    subscriptions: (JSON.parse(row["subscriptions"] as string) as ReadonlyArray<string>)
      .map((text) => JSON.parse(text) as string),
    listensAt: Number(row["listens_at"])
  }
}

const jsonOf = (text: string | undefined): string | null => text === undefined ? null : JSON.stringify(text)

/** The operations of `Backend` on records, for one node. `channel` is that of all nodes. */
export const makeRecords = (sql: SqlClient.SqlClient, namespace: string, node: number, channel: string) => {
  const insert = prepare(sql, "SELECT skein_fleet_create($1, $2, $3, $4, $5, $6, $7, $8, $9) AS created")
  const live = `WHERE id = $2 AND ${inNamespace} AND expires_at > ${now}`
  // A node that has gone is removed from the list of those that have the session. The commit need not be durable: a node
  // reads its sessions again when the connection to the database was lost.
  const select = prepare(
    sql,
    `UPDATE skein_fleet_sessions AS session SET expires_at = ${nextExpiry}, nodes = CAST($4 AS INTEGER) || ARRAY(
       SELECT other.node FROM skein_fleet_nodes AS other WHERE other.node = ANY (session.nodes) AND other.node <> $4)
     ${live} AND principal || '' = $3
     RETURNING record, is_initialized, log_level, listens_at, CAST(array_to_json(subscriptions) AS TEXT) AS subscriptions,
       set_config('synchronous_commit', 'off', TRUE)`
  )
  /**
   * A statement that changes at most one row and notifies the nodes that have the session, and this one if `$7`. Its
   * parameters are `$1` to `$7`.
   */
  const notifying = (text: string) =>
    prepare(
      sql,
      `WITH changed AS (${text} RETURNING nodes), receivers AS (
         SELECT other.node FROM changed, skein_fleet_nodes AS other
         WHERE other.node = ANY (changed.nodes) AND other.node <> $3 AND other.expires_at > ${now}
         UNION ALL SELECT CAST($3 AS INTEGER) WHERE $7
       )${notifyReceivers(4, 5, 6)}`
    )
  const update = notifying(
    `UPDATE skein_fleet_sessions SET expires_at = ${nextExpiry}, is_initialized = is_initialized OR $8,
       log_level = COALESCE($9, log_level), listens_at = COALESCE($10, listens_at),
       subscriptions = CASE WHEN CAST($11 AS TEXT) IS NULL THEN array_remove(subscriptions, $12)
         ELSE array_append(array_remove(subscriptions, $11), $11) END
     ${live}`
  )
  const remove = notifying(`DELETE FROM skein_fleet_sessions WHERE id = $2 AND ${inNamespace}`)
  // The lock of a row that another node uses is not waited for: two nodes could wait for each other.
  const use = prepare(
    sql,
    `UPDATE skein_fleet_sessions SET expires_at = ${expiry("idle_millis")} WHERE ctid = ANY (ARRAY(
       SELECT session.ctid FROM json_array_elements_text(CAST($2 AS JSON)) AS used, LATERAL (
         SELECT ctid FROM skein_fleet_sessions WHERE id = used.value AND ${inNamespace} AND expires_at > ${now} AND ${isOld}
         FOR UPDATE SKIP LOCKED) AS session))`
  )

  const toOthers = (rows: ReadonlyArray<Row>): ReadonlyArray<number> =>
    rows.map((row) => row["node"] as number).filter((other) => other !== node)

  const create: Backend["create"] = (record, { idleTimeout, maxSessionsPerPrincipal }: SessionBounds, client) => {
    const { capabilities, id, info, logLevel, principalId, revision } = record
    const fixed: Fixed = { principalId, revision, info, capabilities }
    const most = Math.min(maxSessionsPerPrincipal, Number.MAX_SAFE_INTEGER)
    const idle = Math.ceil(Math.min(idleTimeout, 2 ** 50))
    return Effect.map(
      insert(
        namespace,
        id,
        principalOf(principalId),
        digestOf(client),
        JSON.stringify(fixed),
        logLevel ?? null,
        node,
        idle,
        most
      ),
      ([row]) => row?.["created"] === true
    )
  }

  const find: Backend["find"] = (id, principalId) =>
    Effect.map(
      select(namespace, id, principalOf(principalId), node),
      ([row]) => row === undefined ? undefined : toRecord(id, row)
    )

  const change: Backend["change"] = (id, change: SessionChange, text, isEchoed) =>
    Effect.map(
      update(
        namespace,
        id,
        node,
        channel,
        text,
        contentOf(text).row,
        isEchoed,
        change.isInitialized === true,
        change.logLevel ?? null,
        change.listensAt ?? null,
        jsonOf(change.subscribe),
        jsonOf(change.unsubscribe)
      ),
      toOthers
    )

  const end: Backend["end"] = (id, text) =>
    Effect.map(remove(namespace, id, node, channel, text, contentOf(text).row, true), toOthers)

  const touch: Backend["touch"] = (ids) => Effect.asVoid(use(namespace, JSON.stringify(ids)))

  return { create, find, change, end, touch }
}
