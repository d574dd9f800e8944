/** A `ProxyStore` in PostgreSQL or SQLite. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { SqlError } from "effect/sql/SqlError"
import * as SqlClient from "effect/sql/SqlClient"
import { makeLocks } from "../shared/localLocks.ts"
import { makeSqlLocks, waiting } from "./locks.ts"
import { type ProxyStore, ProxyStoreError } from "./store.ts"

/** How often expired rows are removed, in milliseconds. */
const sweepMillis = 60_000

const failed = (error: SqlError): ProxyStoreError =>
  // Only the message: the details of an error of PostgreSQL quote the row.
  new ProxyStoreError({ message: `the database of the proxy failed: ${error.message}` })

interface Row {
  readonly value: string
  readonly used_at: number | string | bigint | null
}

/** Makes the store, and creates its tables. */
export const makeSqlStore: Effect.Effect<ProxyStore["Service"], ProxyStoreError, SqlClient.SqlClient> = Effect.gen(
  function*() {
    const sql = (yield* SqlClient.SqlClient).withoutTransforms()
    const text = sql.literal(sql.onDialectOrElse({ pg: () => `TEXT COLLATE "C"`, orElse: () => "TEXT" }))
    const { transactionService } = sql

    /** Runs outside of a transaction of the caller, whose rollback would undo a token that was renewed. */
    const run = <A>(effect: Effect.Effect<A, SqlError>): Effect.Effect<A, ProxyStoreError> =>
      Effect.mapError(
        Effect.updateContext(
          effect,
          (context: Context.Context<never>) => Context.omit(transactionService)(context) as Context.Context<never>
        ),
        failed
      )

    const createTables = Effect.asVoid(Effect.all([
      sql`CREATE TABLE IF NOT EXISTS skein_proxy (name ${text} NOT NULL PRIMARY KEY, value TEXT NOT NULL,
        group_name ${text}, expires_at BIGINT, used_at BIGINT)`,
      sql`CREATE INDEX IF NOT EXISTS skein_proxy_groups ON skein_proxy (group_name)`,
      sql`CREATE INDEX IF NOT EXISTS skein_proxy_expiry ON skein_proxy (expires_at)`,
      sql`CREATE TABLE IF NOT EXISTS skein_proxy_locks (name ${text} NOT NULL PRIMARY KEY, holder TEXT NOT NULL,
        expires_at BIGINT NOT NULL)`
    ]))
    // Of two instances that start at once on PostgreSQL, one would fail: IF NOT EXISTS does not wait for the other.
    const alone = sql.onDialectOrElse({
      pg: () => Effect.asVoid(sql`SELECT pg_advisory_xact_lock(7061826311405)`),
      orElse: () => Effect.void
    })
    yield* run(sql.withTransaction(Effect.andThen(alone, createTables)))

    let sweptAt = Date.now()
    const sweep = Effect.suspend(() => {
      const now = Date.now()
      if (now - sweptAt < sweepMillis) return Effect.void
      sweptAt = now
      return Effect.asVoid(Effect.all([
        run(sql`DELETE FROM skein_proxy WHERE expires_at <= ${now}`),
        run(sql`DELETE FROM skein_proxy_locks WHERE expires_at <= ${now}`)
      ]))
    })

    const withLock = makeLocks(waiting, makeSqlLocks(sql, run))

    return {
      get: (key) =>
        Effect.map(
          run(sql<Row>`SELECT value, used_at FROM skein_proxy
            WHERE name = ${key} AND (expires_at IS NULL OR expires_at > ${Date.now()})`),
          ([row]) =>
            row === undefined
              ? Option.none()
              : Option.some({ value: row.value, usedAt: row.used_at === null ? undefined : Number(row.used_at) })
        ),
      set: (key, value, { expiresAt, group } = {}) =>
        Effect.andThen(
          sweep,
          run(Effect.asVoid(sql`INSERT INTO skein_proxy (name, value, group_name, expires_at, used_at)
            VALUES (${key}, ${value}, ${group ?? null}, ${expiresAt ?? null}, NULL) ON CONFLICT (name) DO UPDATE
            SET value = excluded.value, group_name = excluded.group_name, expires_at = excluded.expires_at,
              used_at = NULL`))
        ),
      use: (key, now) =>
        Effect.map(
          run(sql`UPDATE skein_proxy SET used_at = ${now} WHERE name = ${key} AND used_at IS NULL RETURNING name`),
          (rows) => rows.length > 0
        ),
      take: (key) =>
        Effect.map(
          run(sql<{ readonly value: string; readonly expires_at: number | string | null }>`DELETE FROM skein_proxy
            WHERE name = ${key} RETURNING value, expires_at`),
          ([row]) =>
            row === undefined || (row.expires_at !== null && Number(row.expires_at) <= Date.now())
              ? Option.none()
              : Option.some(row.value)
        ),
      remove: (key) => run(Effect.asVoid(sql`DELETE FROM skein_proxy WHERE name = ${key}`)),
      removeGroup: (group) => run(Effect.asVoid(sql`DELETE FROM skein_proxy WHERE group_name = ${group}`)),
      withLock: (key, effect) => withLock(key, effect)
    }
  }
)
