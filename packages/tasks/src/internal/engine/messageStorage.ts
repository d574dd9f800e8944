/**
 * The storage of the cluster's messages and of the replies to them.
 *
 * An interrupted run clears its timers, even one that fires at that moment, and a deleted task clears all of its
 * messages. The cluster writes the reply to a cleared message nevertheless, and that reply would stay forever, since a
 * reply is only found by its message. This storage writes a reply only if its message exists, and deletes both
 * together.
 */
import { PersistenceError } from "effect/cluster/ClusterError"
import * as MessageStorage from "effect/cluster/MessageStorage"
import * as Snowflake from "effect/cluster/Snowflake"
import * as SqlMessageStorage from "effect/cluster/SqlMessageStorage"
import type { Digest } from "effect/crypto/Digest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"

/** The encoded storage. `prefix` is that of the cluster's tables, which must exist. */
export const make = (
  prefix = "cluster"
): Effect.Effect<MessageStorage.Encoded, never, SqlClient.SqlClient | Digest> =>
  Effect.gen(function*() {
    const encoded = yield* SqlMessageStorage.makeEncodedStorage({ prefix })
    const sql = (yield* SqlClient.SqlClient).withoutTransforms()
    const messages = sql(`${prefix}_messages`)
    const replies = sql(`${prefix}_replies`)
    const inIds = sql.onDialectOrElse({
      pg: () => (ids: string) => sql`= ANY (CAST(${`{${ids}}`} AS BIGINT[]))`,
      orElse: () => (ids: string) => sql`IN (SELECT CAST(value AS INTEGER) FROM json_each(${`[${ids}]`}))`
    })
    /** Runs a statement, and another one for its rows, in one transaction. */
    const inTransaction = <A>(
      first: Effect.Effect<ReadonlyArray<A>, SqlError>,
      then: (rows: ReadonlyArray<A>) => Effect.Effect<unknown, SqlError> | undefined
    ): Effect.Effect<void, PersistenceError> =>
      Effect.flatMap(first, (rows): Effect.Effect<unknown, SqlError> => then(rows) ?? Effect.void).pipe(
        sql.withTransaction,
        Effect.asVoid,
        PersistenceError.refail,
        Effect.withTracerEnabled(false)
      )

    return {
      ...encoded,
      // A concurrent clear of the message waits for this transaction, or this one waits and then finds no message.
      saveReply: (reply) => {
        if (reply._tag === "Chunk") return encoded.saveReply(reply)
        const { exit, id, requestId } = reply
        const row = { id, kind: 0, request_id: requestId, payload: JSON.stringify(exit), sequence: null }
        return inTransaction(
          sql<{ readonly kind: unknown }>`
            UPDATE ${messages} SET processed = TRUE, last_reply_id = ${id} WHERE request_id = ${requestId} RETURNING kind`,
          (rows) =>
            rows.some(({ kind }) => Number(kind) === 0) ? sql`INSERT INTO ${replies} ${sql.insert(row)}` : undefined
        )
      },
      // Deletes the messages first: the second statement sees the replies that were written before that.
      clearAddress: ({ entityId, entityType }) =>
        inTransaction(
          sql<{ readonly id: string }>`
            DELETE FROM ${messages} WHERE entity_type = ${entityType} AND entity_id = ${entityId}
            RETURNING CAST(id AS TEXT) AS id`,
          (rows) =>
            rows.length === 0
              ? undefined
              : sql`DELETE FROM ${replies} WHERE request_id ${inIds(rows.map(({ id }) => id).join())}`
        )
    }
  })

/** The storage. It creates the tables if they do not exist. */
export const layer: Layer.Layer<MessageStorage.MessageStorage, never, SqlClient.SqlClient | Digest> = Layer.effect(
  MessageStorage.MessageStorage,
  Effect.flatMap(make(), MessageStorage.makeEncoded)
).pipe(
  Layer.provide(Snowflake.layerGenerator),
  Layer.provide(SqlMessageStorage.layerMigrations({}))
)
