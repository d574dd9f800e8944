/**
 * A store of `State` in a database, for a server that runs in several processes. It uses Effect's `SqlClient` on
 * PostgreSQL or SQLite, and creates its tables (`skein_states`, `skein_state_versions`) when the layer is built.
 *
 * - **Updates** are atomic between all processes that share the database: each write is one statement, which changes the
 *   row only if no other request has changed it meanwhile. `update` and `modify` then read the value again.
 * - **Transactions**: in a transaction of the same `SqlClient`, an operation commits and rolls back with it.
 * - **Expiry**: a value is not read after its `lifetime`. While values are written, each process deletes the rows that have
 *   expired, at most 1,000 in a statement and, unless more are left, once a minute. The clocks of the machines must agree to
 *   within seconds.
 * - **Owners** are stored as digests, so ids of any form are safe. The values are not encrypted.
 *
 * The state of sessions is in memory. A session lives in one process and ends with it, so no other process could read it.
 *
 * **Gotchas**
 *
 * - On PostgreSQL, concurrent writes of different states of one user may exceed `maxBytesPerClient` by their own size.
 * - On SQLite a write survives a power failure only with `synchronous: "full"`.
 *
 * @example
 * const server = McpServer.layer({ name: "shop", version: "1.0.0" }, carts).pipe(
 *   Layer.provide(SqlStateStore.layer({ namespace: "shop" })),
 *   Layer.provide(PgClient.layer({ url: process.env.DATABASE_URL }))
 * )
 */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Hex from "effect/encoding/Hex"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { sha256 } from "./internal/base/digest.ts"
import { StateError, TooLarge, Unavailable } from "./StateError.ts"
import * as StateStore from "./StateStore.ts"

/** The name of the server in the tables, and the bounds. */
export interface Options {
  /**
   * The server, or the group of processes, whose values these are: `default` by default. Two servers that share a database
   * need two namespaces: otherwise states with the same name share their values.
   */
  readonly namespace?: string | undefined
  /**
   * The size of the values of one user, in bytes of JSON: 1 MiB by default. More fails: `StateError` `TooLarge`. With
   * `lifetime` and the number of users, this bounds the table.
   */
  readonly maxBytesPerClient?: number | undefined
  /** The bounds of the memory for the state of sessions. */
  readonly memory?: StateStore.MemoryOptions | undefined
}

/** How often a process deletes expired rows, in milliseconds, unless more than `maxSwept` have expired. */
const sweepMillis = 60_000

/** How many expired rows one statement deletes: it runs before a write, which waits for it. */
const maxSwept = 1_000

const encoder = new TextEncoder()

const unavailable = (problem: string, cause?: unknown): StateError =>
  new StateError({ reason: new Unavailable({ message: `The state is not available: ${problem}`, cause }) })

// Without the message of the driver, which may quote the value.
const failed = (cause: SqlError): StateError => unavailable("the database failed", cause)

const digestOf = (...parts: ReadonlyArray<string>): string => Hex.encode(sha256(JSON.stringify(parts)))

/** A text that both databases can store: PostgreSQL has no NUL, and UTF-8 has no lone surrogates. */
const printable = (text: string): string => text.toWellFormed().replaceAll("\0", "\ufffd")

type Sql = SqlClient.SqlClient

const isPostgres = (sql: Sql): Effect.Effect<boolean, StateError> =>
  sql.onDialectOrElse({
    pg: () => Effect.succeed(true),
    sqlite: () => Effect.succeed(false),
    orElse: () => Effect.fail(unavailable("SqlStateStore supports PostgreSQL and SQLite, and no other database"))
  })

type Migration = (sql: Sql, isPostgres: boolean) => Effect.Effect<unknown, SqlError>

// `id` is a digest of the owner, the scope and the name. `name` is for people who look at the table.
const createTables: Migration = (sql, isPostgres) => {
  const text = sql.literal(isPostgres ? `TEXT COLLATE "C"` : "TEXT")
  return Effect.all([
    sql`CREATE TABLE skein_states (id ${text} NOT NULL PRIMARY KEY, owner ${text} NOT NULL, namespace TEXT NOT NULL,
      name TEXT NOT NULL, value TEXT NOT NULL, bytes INTEGER NOT NULL, version TEXT NOT NULL, expires_at BIGINT)`,
    sql`CREATE INDEX skein_states_owner ON skein_states (owner)`,
    sql`CREATE INDEX skein_states_expiry ON skein_states (expires_at)`
  ])
}

/** A published migration never changes: a later one alters the tables. */
const migrations: ReadonlyArray<Migration> = [createTables]

const versionOf = Effect.fnUntraced(function*(sql: Sql, isPostgres: boolean): Effect.fn.Return<number, SqlError> {
  const [table] = isPostgres
    ? yield* sql<{ readonly found: unknown }>`SELECT to_regclass('skein_state_versions') IS NOT NULL AS found`
    : yield* sql<{ readonly found: unknown }>`SELECT COUNT(*) > 0 AS found FROM sqlite_master
        WHERE name = 'skein_state_versions'`
  if (!table?.found) return 0
  const [row] = yield* sql<{ readonly version: unknown }>`SELECT MAX(version) AS version FROM skein_state_versions`
  return Number(row?.version ?? 0)
})

/**
 * Creates the tables, or brings them to the version of this program. `make` and `layer` do this. Call it in the
 * migrations of an application whose servers may not create tables: if the tables have this version, nothing is locked
 * or changed, and no right to create tables is needed. Fails with `StateError` `Unavailable`.
 *
 * @example
 * const migrations = Effect.andThen(applicationMigrations, SqlStateStore.migrate)
 */
export const migrate: Effect.Effect<void, StateError, SqlClient.SqlClient> = /* @__PURE__ */ Effect.gen(function*() {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const postgres = yield* isPostgres(sql)
  const version = Effect.mapError(versionOf(sql, postgres), failed)
  const target = migrations.length
  const run = Effect.gen(function*() {
    // Of two processes that start at once on PostgreSQL, one would fail: IF NOT EXISTS does not wait for the other.
    if (postgres) yield* sql`SELECT pg_advisory_xact_lock(7061826311407)`
    yield* sql`CREATE TABLE IF NOT EXISTS skein_state_versions (version INTEGER NOT NULL PRIMARY KEY)`
    for (let next = yield* versionOf(sql, postgres); next < target; next++) {
      yield* migrations[next]!(sql, postgres)
      yield* sql`INSERT INTO skein_state_versions (version) VALUES (${next + 1})`
    }
  })
  if ((yield* version) < target) yield* Effect.mapError(sql.withTransaction(run), failed)
  const now = yield* version
  if (now > target) {
    return yield* Effect.fail(
      unavailable(`its tables have version ${now}, and this program supports ${target}: a later version created them`)
    )
  }
})

/**
 * Makes a store for the state of users, and creates or migrates its tables. Fails with `StateError` `Unavailable` if the
 * database cannot be used, or is neither PostgreSQL nor SQLite.
 *
 * @example
 * const store = yield* SqlStateStore.make({ namespace: "shop", maxBytesPerClient: 65_536 })
 */
export const make = Effect.fnUntraced(function*(
  { maxBytesPerClient = 1024 * 1024, namespace = "default" }: Options = {}
): Effect.fn.Return<StateStore.Store, StateError, SqlClient.SqlClient> {
  yield* migrate
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const postgres = yield* isPostgres(sql)
  const ownerOf = (key: StateStore.Key) => digestOf(namespace, key.owner)
  const idOf = (key: StateStore.Key) => digestOf(namespace, key.owner, key.scope, key.name)
  const valid = (now: number) => sql`(expires_at IS NULL OR expires_at > ${now})`

  let nextSweep = 0
  // Processes delete different rows: none waits for another. The outer condition is for a row that is written meanwhile.
  const skipLocked = sql.literal(postgres ? "FOR UPDATE SKIP LOCKED" : "")
  const sweep = (now: number) =>
    Effect.withFiber((fiber) => {
      // A failure would end the transaction of the caller, and a rollback would bring the rows back.
      const inTransaction = Context.getOrUndefined(fiber.context, sql.transactionService) !== undefined
      if (now < nextSweep || inTransaction) return Effect.void
      nextSweep = now + sweepMillis
      return sql`DELETE FROM skein_states WHERE expires_at <= ${now} AND id IN (SELECT id FROM skein_states
          WHERE expires_at <= ${now} ORDER BY expires_at LIMIT ${maxSwept} ${skipLocked}) RETURNING id`.pipe(
        Effect.map(({ length }) => {
          if (length === maxSwept) nextSweep = now
        }),
        Effect.catch((cause) => Effect.logWarning("failed to delete the states that have expired", failed(cause)))
      )
    })

  const othersOf = (key: StateStore.Key, now: number) =>
    sql`(SELECT COALESCE(SUM(bytes), 0) FROM skein_states
        WHERE owner = ${ownerOf(key)} AND id <> ${idOf(key)} AND ${valid(now)})`

  /** Writes the row if it is in the expected version and fits. Returns whether it did. */
  const write = (key: StateStore.Key, { expected, json, ttlMs }: StateStore.Write, bytes: number, now: number) => {
    const expires = Number.isFinite(ttlMs) ? Math.ceil(now + ttlMs) : null
    const version = globalThis.crypto.randomUUID()
    const fits = sql`${othersOf(key, now)} <= ${Math.floor(Math.min(maxBytesPerClient, maxInteger)) - bytes}`
    const statement = expected === undefined
      // The row of a value that has expired counts as none.
      ? sql`INSERT INTO skein_states (id, owner, namespace, name, value, bytes, version, expires_at)
          SELECT ${idOf(key)}, ${ownerOf(key)}, ${printable(namespace)}, ${printable(key.name)}, ${json},
            CAST(${bytes} AS INTEGER), ${version}, CAST(${expires} AS BIGINT) WHERE ${fits}
          ON CONFLICT (id) DO UPDATE SET value = excluded.value, bytes = excluded.bytes, version = excluded.version,
            expires_at = excluded.expires_at WHERE skein_states.expires_at <= ${now} RETURNING id`
      : sql`UPDATE skein_states SET value = ${json}, bytes = ${bytes}, version = ${version}, expires_at = ${expires}
          WHERE id = ${idOf(key)} AND version = ${expected} AND ${valid(now)} AND ${fits} RETURNING id`
    return Effect.map(statement, ({ length }) => length === 1)
  }

  return {
    get: (key) =>
      Effect.flatMap(Clock.currentTimeMillis, (now) =>
        Effect.mapBoth(
          sql<{ readonly value: string; readonly version: string }>`SELECT value, version FROM skein_states
              WHERE id = ${idOf(key)} AND ${valid(now)}`,
          {
            onFailure: failed,
            onSuccess: ([row]) => row === undefined ? undefined : { json: row.value, version: row.version }
          }
        )),
    set: Effect.fnUntraced(function*(key, change) {
      const now = yield* Clock.currentTimeMillis
      const bytes = encoder.encode(change.json).byteLength
      yield* sweep(now)
      if (yield* Effect.mapError(write(key, change, bytes, now), failed)) return true
      const [row] = yield* Effect.mapError(
        sql<{ readonly others: number | string }>`SELECT ${othersOf(key, now)} AS others`,
        failed
      )
      if (Number(row!.others) + bytes <= maxBytesPerClient) return false
      const message = `The state ${key.name} exceeds maxBytesPerClient (${maxBytesPerClient} bytes)`
      return yield* Effect.fail(new StateError({ reason: new TooLarge({ message }) }))
    }),
    remove: (key) => Effect.mapError(Effect.asVoid(sql`DELETE FROM skein_states WHERE id = ${idOf(key)}`), failed)
  }
})

/** The largest integer that a number of JavaScript has exactly. */
const maxInteger = Number.MAX_SAFE_INTEGER

/**
 * Provides a store in the database of an `SqlClient` for the state of users.
 *
 * @example
 * const stores = SqlStateStore.layer().pipe(Layer.provide(SqliteClient.layer({ filename: "shop.db" })))
 */
export const layer = (options: Options = {}): Layer.Layer<never, StateError, SqlClient.SqlClient> =>
  Layer.effect(
    StateStore.StateStores,
    Effect.map(make(options), (users) => ({ users, sessions: StateStore.makeMemory(options.memory) }))
  )
