/**
 * A `ReplayStore` in a database, for several instances that serve one resource. It uses Effect's `SqlClient` on PostgreSQL
 * or SQLite and creates its table, `skein_dpop_proofs`, when the layer is built. Each proof costs one statement.
 *
 * A row is deleted when its proof could not be used again, after about 70 seconds. Each instance bounds the rows that it
 * writes, so there are at most `maxProofs` rows for each instance.
 *
 * @example
 * const Store = SqlReplayStore.layer().pipe(Layer.provide(PgClient.layer({ url: process.env.DATABASE_URL })))
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { makeMemory, type MemoryOptions, ReplayStore, ReplayStoreError, type Use } from "./ReplayStore.ts"

// How often expired rows are deleted, in milliseconds.
const sweepInterval = 10_000

const failed = (cause: unknown): ReplayStoreError =>
  new ReplayStoreError({ message: "the database of DPoP proofs is not available", cause })

/**
 * Bounds of the proofs of one instance, with the defaults of the store in memory: an instance remembers its own proofs,
 * so that a second use at the same instance costs no statement.
 */
export type Options = MemoryOptions

/**
 * Makes a store, and creates its table. At a bound, and when the database fails, it fails with `ReplayStoreError`.
 *
 * @example
 * const store = yield* SqlReplayStore.make({ maxProofs: 50_000 })
 */
export const make = (
  options: Options = {}
): Effect.Effect<ReplayStore["Service"], ReplayStoreError, SqlClient.SqlClient> =>
  Effect.gen(function*() {
    const sql = yield* SqlClient.SqlClient
    const create = Effect.gen(function*() {
      yield* sql`CREATE TABLE IF NOT EXISTS skein_dpop_proofs (id TEXT PRIMARY KEY, expires_at BIGINT NOT NULL)`
      yield* sql`CREATE INDEX IF NOT EXISTS skein_dpop_proofs_expires_at ON skein_dpop_proofs (expires_at)`
    })
    // Of two instances that start at once on PostgreSQL, one would fail: IF NOT EXISTS does not wait for the other.
    const alone = sql.onDialectOrElse({
      pg: () => Effect.asVoid(sql`SELECT pg_advisory_xact_lock(7061826311406)`),
      orElse: () => Effect.void
    })
    yield* Effect.mapError(sql.withTransaction(Effect.andThen(alone, create)), failed)
    let nextSweep = 0
    const sweep = (now: number) => {
      if (now < nextSweep) return Effect.void
      nextSweep = now + sweepInterval
      // Instances may delete the same rows at the same time. The next one deletes what this one could not.
      return Effect.catch(
        sql`DELETE FROM skein_dpop_proofs WHERE expires_at <= ${now}`,
        (cause) => Effect.logWarning("failed to delete the DPoP proofs that have expired", failed(cause))
      )
    }
    const own = makeMemory(options)
    const insert = ({ expiresAt, id, now }: Use) =>
      Effect.andThen(
        sweep(now),
        Effect.map(
          sql`INSERT INTO skein_dpop_proofs (id, expires_at) VALUES (${id}, ${expiresAt})
            ON CONFLICT (id) DO NOTHING RETURNING id`,
          (rows) => rows.length > 0
        )
      ).pipe(Effect.mapError(failed))
    return ReplayStore.of({
      add: (use) => Effect.flatMap(own.add(use), (isFirst) => isFirst ? insert(use) : Effect.succeed(false))
    })
  })

/**
 * Provides a store in the database of an `SqlClient`.
 *
 * @example
 * const Store = SqlReplayStore.layer().pipe(Layer.provide(SqliteClient.layer({ filename: "replays.db" })))
 */
export const layer = (options?: Options): Layer.Layer<ReplayStore, ReplayStoreError, SqlClient.SqlClient> =>
  Layer.effect(ReplayStore, make(options))
