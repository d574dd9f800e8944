/**
 * The tables of a fleet in PostgreSQL.
 */
import { FleetError } from "@skein/server/Fleet"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { expiry, fleetError, now } from "./database.ts"

/** The statements of one version. */
type Migration = ReadonlyArray<string>

const name = `TEXT COLLATE "C" NOT NULL`

/**
 * - `principal` and `client` are digests. `record` has what never changes; the members of `subscriptions` are JSON texts,
 *   because a URI may have characters that PostgreSQL cannot store. `nodes` are the nodes that have the session.
 * - `skein_fleet_create` counts the sessions of a principal after it has the lock of the principal: a single statement
 *   would count those that were committed before it waited.
 * - A session is updated soon after it is created. There is room for that on its page, so that no index changes.
 * - A payload is a message that is too long for a notification.
 */
const createTables: Migration = [
  `CREATE TABLE skein_fleet_nodes (node SERIAL PRIMARY KEY, namespace ${name}, expires_at BIGINT NOT NULL)`,
  `CREATE TABLE skein_fleet_keys (namespace ${name} PRIMARY KEY, key TEXT NOT NULL, counted_at BIGINT NOT NULL DEFAULT 0)`,
  `CREATE TABLE skein_fleet_sessions (namespace ${name}, id ${name}, principal ${name}, client ${name},
    record TEXT NOT NULL, is_initialized BOOLEAN NOT NULL, log_level TEXT, subscriptions TEXT[] NOT NULL,
    listens_at INTEGER NOT NULL, nodes INTEGER[] NOT NULL, idle_millis BIGINT NOT NULL, expires_at BIGINT NOT NULL,
    PRIMARY KEY (id, namespace)) WITH (fillfactor = 70)`,
  `CREATE INDEX skein_fleet_sessions_principal ON skein_fleet_sessions (namespace, principal) WHERE principal <> ''`,
  `CREATE INDEX skein_fleet_sessions_expiry ON skein_fleet_sessions (namespace, expires_at)`,
  `CREATE UNLOGGED TABLE skein_fleet_payloads (id ${name} PRIMARY KEY, text TEXT NOT NULL, expires_at BIGINT NOT NULL)`,
  `CREATE INDEX skein_fleet_payloads_expiry ON skein_fleet_payloads (expires_at)`,
  `CREATE FUNCTION skein_fleet_create(of_namespace TEXT, new_id TEXT, of_principal TEXT, of_client TEXT, new_record TEXT,
      new_log_level TEXT, new_node INTEGER, new_idle_millis BIGINT, most BIGINT) RETURNS BOOLEAN LANGUAGE plpgsql AS $$
    BEGIN
      IF of_principal <> '' THEN
        PERFORM pg_advisory_xact_lock(hashtextextended(of_namespace || ' ' || of_principal, 7061826311408));
        IF (SELECT COUNT(*) FROM skein_fleet_sessions
            WHERE namespace = of_namespace AND principal = of_principal AND expires_at > ${now}) >= most THEN
          RETURN FALSE;
        END IF;
      END IF;
      INSERT INTO skein_fleet_sessions VALUES (of_namespace, new_id, of_principal, of_client, new_record, FALSE,
        new_log_level, '{}', new_node, ARRAY[new_node], new_idle_millis, ${expiry("new_idle_millis")});
      RETURN TRUE;
    END $$`
]

/** A published migration never changes: a later one alters the tables. */
const migrations: ReadonlyArray<Migration> = [createTables]

const versionOf = Effect.fnUntraced(function*(sql: SqlClient.SqlClient): Effect.fn.Return<number, SqlError> {
  const [table] = yield* sql<
    { readonly found: boolean }
  >`SELECT to_regclass('skein_fleet_versions') IS NOT NULL AS found`
  if (table?.found !== true) return 0
  const [row] = yield* sql<{ readonly version: unknown }>`SELECT MAX(version) AS version FROM skein_fleet_versions`
  return Number(row?.version ?? 0)
})

const unsupported = (version: number): FleetError =>
  new FleetError({
    message: `the tables of the fleet have version ${version}, and this program needs version ${migrations.length}: ` +
      (version > migrations.length ? "a later version created them" : "call PostgresFleet.migrate")
  })

/** Fails unless the tables have the version of this program. */
export const check: Effect.Effect<void, FleetError, SqlClient.SqlClient> = Effect.gen(function*() {
  const version = yield* Effect.mapError(versionOf((yield* SqlClient.SqlClient).withoutTransforms()), fleetError)
  if (version !== migrations.length) return yield* unsupported(version)
})

/** Creates the tables, or brings them to the version of this program. If they have it, nothing is locked or changed. */
export const migrate: Effect.Effect<void, FleetError, SqlClient.SqlClient> = Effect.gen(function*() {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  const run = Effect.gen(function*() {
    // Of two processes that start at once one would fail: IF NOT EXISTS does not wait for the other.
    yield* sql`SELECT pg_advisory_xact_lock(7061826311408)`
    yield* sql`CREATE TABLE IF NOT EXISTS skein_fleet_versions (version INTEGER NOT NULL PRIMARY KEY)`
    for (let next = yield* versionOf(sql); next < migrations.length; next++) {
      for (const statement of migrations[next]!) yield* sql.unsafe(statement)
      yield* sql`INSERT INTO skein_fleet_versions (version) VALUES (${next + 1})`
    }
  })
  const version = yield* Effect.mapError(versionOf(sql), fleetError)
  if (version < migrations.length) yield* Effect.mapError(sql.withTransaction(run), fleetError)
  yield* check
})
