/**
 * Where the cluster keeps its messages, and the replies to them.
 *
 * A run that is interrupted clears its clocks, also one that rings in this moment; and what is forgotten clears all that it had. The
 * cluster writes the reply to a message that is gone meanwhile nevertheless; and nobody would find that again, since a reply is only
 * known by its message. Here a reply is written where its message is, and both go together.
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

/** What is written of messages, and read. `prefix` is that of the cluster's tables, which have to be there. */
export const make = (
  prefix = "cluster"
): Effect.Effect<MessageStorage.Encoded, never, SqlClient.SqlClient | Digest> =>
  Effect.gen(function*() {
    const encoded = yield* SqlMessageStorage.makeEncodedStorage({ prefix })
    const sql = (yield* SqlClient.SqlClient).withoutTransforms()
    const messages = sql(`${prefix}_messages`)
    const replies = sql(`${prefix}_replies`)
    const among = sql.onDialectOrElse({
      pg: () => (ids: string) => sql`= ANY (CAST(${`{${ids}}`} AS BIGINT[]))`,
      orElse: () => (ids: string) => sql`IN (SELECT CAST(value AS INTEGER) FROM json_each(${`[${ids}]`}))`
    })
    /** What goes together: what a statement finds, and what is to be done about it. */
    const both = <A>(
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
      // Who clears the message meanwhile waits for this; or this waits for them, and finds it gone.
      saveReply: (reply) => {
        if (reply._tag === "Chunk") return encoded.saveReply(reply)
        const { exit, id, requestId } = reply
        const row = { id, kind: 0, request_id: requestId, payload: JSON.stringify(exit), sequence: null }
        return both(
          sql<{ readonly kind: unknown }>`
            UPDATE ${messages} SET processed = TRUE, last_reply_id = ${id} WHERE request_id = ${requestId} RETURNING kind`,
          (rows) =>
            rows.some(({ kind }) => Number(kind) === 0) ? sql`INSERT INTO ${replies} ${sql.insert(row)}` : undefined
        )
      },
      // The messages first: what is replied before that is seen by the statement after it.
      clearAddress: ({ entityId, entityType }) =>
        both(
          sql<{ readonly id: string }>`
            DELETE FROM ${messages} WHERE entity_type = ${entityType} AND entity_id = ${entityId}
            RETURNING CAST(id AS TEXT) AS id`,
          (rows) =>
            rows.length === 0
              ? undefined
              : sql`DELETE FROM ${replies} WHERE request_id ${among(rows.map(({ id }) => id).join())}`
        )
    }
  })

/** Them, in tables that are made where they are not there. */
export const layer: Layer.Layer<MessageStorage.MessageStorage, never, SqlClient.SqlClient | Digest> = Layer.effect(
  MessageStorage.MessageStorage,
  Effect.flatMap(make(), MessageStorage.makeEncoded)
).pipe(
  Layer.provide(Snowflake.layerGenerator),
  Layer.provide(SqlMessageStorage.layerMigrations({}))
)
