import { assert, it } from "@effect/vitest"
import * as SqlTokenStore from "@skein/auth/SqlTokenStore"
import * as PgClient from "@skein/sql/PgClient"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { describePostgres } from "../../../sql/test/describePostgres.ts"
import { forkInLock, read, storeTests, write } from "./conformance.ts"
import { sqlStoreTests } from "./sqlStoreTests.ts"
import { PoolBounds } from "../../../sql/src/internal/postgres/pgConnection.ts"

const client = (options: PgClient.Options) =>
  Effect.map(Layer.build(PgClient.layer(options)), (context) => Context.get(context, SqlClient.SqlClient))

describePostgres("SqlTokenStore on PostgreSQL", (postgres) => {
  const openWith = (pg: PgClient.Options) => (options: SqlTokenStore.Options) =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => postgres().createDatabase())
      const clients = yield* Effect.all([client({ url, ...pg }), client({ url, ...pg })])
      // Both create the tables.
      const stores = yield* Effect.forEach(
        clients,
        (sql) => Effect.provideService(SqlTokenStore.make(options), SqlClient.SqlClient, sql),
        { concurrency: "unbounded" }
      )
      return { clients, stores: [stores[0]!, stores[1]!] as const }
    })
  const open = openWith({})

  storeTests("with a pool", (options) => Effect.map(open(options), ({ stores }) => stores))

  // A pooler by transaction gives each statement outside of a transaction any connection. So does a pool that closes
  // each connection at once.
  storeTests(
    "with another connection for each transaction",
    (options) =>
      Effect.map(openWith({ prepare: false })(options), ({ stores }) => stores).pipe(
        Effect.provideService(PoolBounds, { maxPreparedStatements: 0, idleTimeout: 1 })
      )
  )

  sqlStoreTests("SqlTokenStore on PostgreSQL", open)

  it.live("holds no connection while it holds locks", () =>
    Effect.gen(function*() {
      const { stores: [store] } = yield* openWith({ maxConnections: 1 })({})
      const nested = ["a", "b", "c", "d"].reduce<Effect.Effect<void, unknown>>(
        (inner, key) => store.withLock(key, inner),
        write(store, "a", "value")
      )
      yield* nested
      assert.strictEqual(yield* read(store, "a"), "value")
    }))

  it.live("releases a lock when the connection of the release is lost", () =>
    Effect.gen(function*() {
      const { clients: [sql, other], stores: [store] } = yield* open({})
      const isOver = yield* Deferred.make<void>()
      const holder = yield* forkInLock(store, "a", Deferred.await(isOver))
      // The release waits for this transaction, and its connection ends meanwhile.
      yield* other!.withTransaction(Effect.gen(function*() {
        yield* other!`SELECT name FROM skein_token_locks FOR UPDATE`
        yield* Deferred.succeed(isOver, undefined)
        const end = sql!`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE datname = current_database() AND wait_event_type = 'Lock'`
        yield* Effect.repeat(end, { until: (rows) => rows.length > 0 })
      }))
      yield* Fiber.join(holder)
      assert.deepEqual(yield* sql!`SELECT name FROM skein_token_locks`, [])
    }))

  it.live("keeps what was written in a transaction of the caller that is rolled back", () =>
    Effect.gen(function*() {
      const { clients: [sql], stores: [store] } = yield* open({})
      const rolledBack = sql!.withTransaction(
        Effect.andThen(store.withLock("a", write(store, "a", "kept")), Effect.fail("rolled back"))
      )
      assert.strictEqual(yield* Effect.flip(rolledBack), "rolled back")
      assert.strictEqual(yield* read(store, "a"), "kept")
    }))
})
