/**
 * The costs of single operations of a fleet in PostgreSQL, with few and with many rows. The statements are those of `@skein/fleet`.
 * Processor time is that of all processes of the server; blocks and bytes of its log are exact on a busy machine too.
 */
import * as PostgresEventStore from "@skein/fleet/PostgresEventStore"
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import type { SessionRecord } from "@skein/server/Fleet"
import * as PgClient from "@skein/sql/PgClient"
import * as Effect from "effect/Effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { encode } from "../../packages/fleet/src/internal/node/envelope.ts"
import { SessionIds } from "../../packages/fleet/src/internal/node/sessionIds.ts"
import { channelOf } from "../../packages/fleet/src/internal/postgres/database.ts"
import { join, makeNodes } from "../../packages/fleet/src/internal/postgres/nodes.ts"
import { makeRecords } from "../../packages/fleet/src/internal/postgres/records.ts"
import { execute, maintenance } from "../tasks/counters.ts"
import type { Databases } from "../tasks/databases.ts"

/** The cost of one operation in PostgreSQL. */
export interface Cost {
  /** Processor time in microseconds, blocks that were read from the cache or a file, and bytes of the log. */
  readonly micros: number
  readonly blocks: number
  readonly logBytes: number
}

export interface Rows {
  readonly rows: number
  /** Bytes of a session in the table, and in its indexes. */
  readonly tableBytes: number
  readonly indexBytes: number
  readonly costs: { readonly [operation: string]: Cost }
}

const bounds = { maxSessions: 1e9, maxSessionsPerPrincipal: 1_000, idleTimeout: 1_800_000 }
const capabilities = { elicitation: { form: {}, url: {} }, roots: { listChanged: true }, sampling: { tools: {} } }
const fixed = JSON.stringify({
  revision: "2025-11-25",
  principalId: "auth0|6542f0c7a3b9e1d8f4c2a701",
  info: { name: "example-client", title: "Example Client", version: "1.24.3" },
  capabilities
})

/** A database with the tables of a fleet. */
export const connect = (
  databases: Databases
): Effect.Effect<{ readonly url: string; readonly sql: PgClient.Client }, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const url = yield* Effect.promise(() => databases.create("postgres"))
    const sql = yield* PgClient.make({ url, maxConnections: 20 })
    yield* Effect.provideService(PostgresFleet.migrate, SqlClient.SqlClient, sql)
    return { url, sql }
  }).pipe(Effect.provide(Reactivity.layer))

const query = (sql: SqlClient.SqlClient, text: string, parameters: ReadonlyArray<string | number> = []) =>
  sql.unsafe<Readonly<Record<string, unknown>>>(text, parameters)

const countStatements = (sql: SqlClient.SqlClient, url: string) =>
  Effect.gen(function*() {
    yield* query(sql, "CREATE EXTENSION IF NOT EXISTS pg_stat_statements")
    yield* Effect.promise(() => execute(maintenance(url), "ALTER SYSTEM SET pg_stat_statements.track = 'all'"))
    yield* query(sql, "SELECT pg_reload_conf()")
  })

/** Runs an operation a number of times, and returns the cost of one. */
export const costOf = <E>(
  databases: Databases,
  sql: SqlClient.SqlClient,
  count: number,
  run: Effect.Effect<unknown, E>
): Effect.Effect<Cost, unknown> =>
  Effect.gen(function*() {
    yield* query(sql, "SELECT pg_stat_statements_reset()")
    const before = databases.cpu()
    yield* run
    const micros = (databases.cpu() - before) * 1_000 / count
    const [row] = yield* query(
      sql,
      `SELECT sum(shared_blks_hit + shared_blks_read)::float8 AS blocks, sum(wal_bytes)::float8 AS log_bytes
       FROM pg_stat_statements WHERE toplevel AND query ~ 'skein_' AND query !~ 'pg_stat_statements'`
    )
    return { micros, blocks: Number(row!["blocks"]) / count, logBytes: Number(row!["log_bytes"]) / count }
  })

/** Adds rows of sessions, up to a number. */
const fill = (sql: SqlClient.SqlClient, from: number, to: number) =>
  query(
    sql,
    `INSERT INTO skein_fleet_sessions SELECT 'default',
       n || '-' || left(translate(encode(sha256(n::text::bytea), 'base64'), '+/=', 'abc'), 22) || '-0123456789abcdef',
       translate(encode(sha256((n / 3)::text::bytea), 'base64'), '+/=', '-_'),
       translate(encode(sha256((n / 3)::text::bytea), 'base64'), '+/=', '-_'),
       $1, TRUE, NULL, '{}', 1, '{1}', 1800000,
       extract(epoch FROM now()) * 1000 + 600000 + (n::bigint * 7919) % 1380000
     FROM generate_series($2::integer, $3::integer) n`,
    [fixed, from + 1, to]
  )

/** Measures the operations on sessions with a number of rows. */
export const measureRows = (
  databases: Databases,
  sizes: ReadonlyArray<number>,
  count: number
): Effect.Effect<ReadonlyArray<Rows>, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const { sql, url } = yield* connect(databases)
    yield* countStatements(sql, url)
    const { key, node } = yield* join(sql, "default", 3_600_000)
    const ids = new SessionIds(key)
    const records = makeRecords(sql, "default", node, channelOf("default"))
    const nodes = makeNodes(sql, "default", node, 3_600_000)
    const found: Array<Rows> = []
    let rows = 0
    for (const size of sizes) {
      yield* fill(sql, rows, size)
      rows = size
      yield* query(sql, "VACUUM (ANALYZE) skein_fleet_sessions")
      const [bytes] = yield* query(
        sql,
        `SELECT pg_table_size('skein_fleet_sessions')::float8 AS table_bytes,
           pg_indexes_size('skein_fleet_sessions')::float8 AS index_bytes`
      )
      const some = (yield* query(sql, `SELECT id FROM skein_fleet_sessions ORDER BY md5(id) LIMIT ${count}`))
        .map((row) => row["id"] as string)
      yield* query(sql, `UPDATE skein_fleet_sessions SET principal = '' WHERE id = ANY ($1)`, [`{${some.join()}}`])
      const opened = Array.from({ length: count }, (_, n): SessionRecord => ({
        id: ids.make(node),
        principalId: `user ${n}`,
        revision: "2025-11-25",
        info: { name: "example-client", title: "Example Client", version: "1.24.3" },
        capabilities,
        isInitialized: false,
        logLevel: undefined,
        subscriptions: [],
        listensAt: node
      }))
      const text = encode({
        from: node,
        content: {
          _tag: "Session",
          message: { _tag: "Changed", id: opened[0]!.id, change: { isInitialized: true } },
          change: 1
        }
      })
      const each = <A, E>(items: ReadonlyArray<A>, run: (item: A) => Effect.Effect<unknown, E>) =>
        costOf(databases, sql, items.length, Effect.forEach(items, run, { discard: true }))
      const costs = {
        create: yield* each(opened, (record) => records.create(record, bounds, record.principalId!)),
        find: yield* each(some, (id) => records.find(id, undefined)),
        change: yield* each(opened, ({ id }) => records.change(id, { isInitialized: true }, text, true)),
        touch: yield* Effect.andThen(
          query(sql, `UPDATE skein_fleet_sessions SET expires_at = expires_at - 400000 WHERE id = ANY ($1)`, [
            `{${some.join()}}`
          ]),
          costOf(databases, sql, some.length, records.touch(some))
        ),
        // Sessions that were written a moment ago.
        skip: yield* costOf(databases, sql, some.length, records.touch(some)),
        end: yield* each(opened, ({ id }) => records.end(id, text)),
        expire: yield* Effect.andThen(
          query(sql, `UPDATE skein_fleet_sessions SET expires_at = 1 WHERE id = ANY ($1)`, [`{${some.join()}}`]),
          costOf(databases, sql, some.length, nodes.clean(undefined))
        ),
        count: yield* costOf(databases, sql, 1, nodes.clean(1e9))
      }
      found.push({
        rows,
        tableBytes: Number(bytes!["table_bytes"]) / rows,
        indexBytes: Number(bytes!["index_bytes"]) / rows,
        costs
      })
    }
    return found
  })

/** The cost of the renewal of a lease, by the number of nodes. */
export const measureLeases = (
  databases: Databases,
  sizes: ReadonlyArray<number>,
  count: number
): Effect.Effect<ReadonlyArray<readonly [nodes: number, cost: Cost]>, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const { sql, url } = yield* connect(databases)
    yield* countStatements(sql, url)
    const { node } = yield* join(sql, "default", 3_600_000)
    const { renew } = makeNodes(sql, "default", node, 3_600_000)
    const found: Array<readonly [number, Cost]> = []
    let nodes = 1
    for (const size of sizes) {
      yield* query(
        sql,
        `INSERT INTO skein_fleet_nodes (namespace, expires_at)
         SELECT 'default', extract(epoch FROM now()) * 1000 + 3600000 FROM generate_series($1::integer, $2::integer)`,
        [nodes + 1, size]
      )
      nodes = size
      yield* query(sql, "VACUUM (ANALYZE) skein_fleet_nodes")
      const times = Math.max(20, Math.min(count, Math.round(count * 100 / size)))
      found.push([size, yield* costOf(databases, sql, times, Effect.repeat(renew, { times: times - 1 }))])
    }
    return found
  })

/** The cost of an event of a stream that is stored, in batches of 100, and the bytes of its row of 200 characters. */
export const measureEvents = (
  databases: Databases,
  count: number
): Effect.Effect<Cost & { readonly bytes: number }, unknown, Scope.Scope> =>
  Effect.gen(function*() {
    const { sql, url } = yield* connect(databases)
    yield* countStatements(sql, url)
    const store = yield* Effect.provideService(PostgresEventStore.make(), SqlClient.SqlClient, sql)
    const write = Effect.gen(function*() {
      for (let event = 1; event <= count; event++) {
        store.append(`1-${"a".repeat(22)}-0123456789abcdef`, 1, event, "x".repeat(200), "client")
        if (event % 100 === 0) yield* store.flush!
      }
      yield* store.flush!
    })
    const cost = yield* costOf(databases, sql, count, write)
    const [row] = yield* query(sql, "SELECT pg_total_relation_size('skein_fleet_events')::float8 AS bytes")
    return { ...cost, bytes: Number(row!["bytes"]) / count }
  })
