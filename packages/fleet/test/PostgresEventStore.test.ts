/** The event store of a fleet on a real PostgreSQL, which is killed and restarted. */
import { expect, it } from "@effect/vitest"
import * as PostgresEventStore from "@skein/fleet/PostgresEventStore"
import * as PgClient from "@skein/sql/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { describePostgres } from "../../sql/test/describePostgres.ts"
import { startPostgres } from "../../sql/test/postgres.ts"
import { type Bounds, eventStoreTests } from "./eventStoreTests.ts"
import { until, untilEffect } from "./kit.ts"

/** Three nodes with one database. All of them create the table at once. */
const open = (url: string, bounds?: Bounds) =>
  Effect.gen(function*() {
    const clients = yield* Effect.forEach(
      [1, 2, 3],
      () =>
        Effect.map(
          Layer.build(PgClient.layer({ url, connectTimeout: "2 seconds" })),
          (context) => Context.get(context, SqlClient.SqlClient)
        )
    )
    const stores = yield* Effect.forEach(
      clients,
      (sql) => Effect.provideService(PostgresEventStore.make(bounds), SqlClient.SqlClient, sql),
      { concurrency: "unbounded" }
    )
    const sql = clients[0]!
    const count = Effect.map(
      sql<{ readonly rows: number }>`SELECT count(*)::int AS rows FROM skein_fleet_events`,
      ([row]) => row!.rows
    )
    return { sql, stores, count: Effect.orDie(count) }
  }).pipe(Effect.orDie)

describePostgres("PostgresEventStore", (postgres) => {
  const url = Effect.promise(() => postgres().createDatabase())

  eventStoreTests((bounds) => Effect.flatMap(url, (url) => open(url, bounds)))

  it.live("writes the events of one moment in one statement", () =>
    Effect.gen(function*() {
      const { sql, stores: [store] } = yield* open(yield* url)
      for (let event = 1; event <= 500; event++) store!.append(`session ${event % 50}`, 1, event, "data")
      yield* store!.flush!
      const [row] = yield* sql`SELECT count(DISTINCT xmin::text)::int AS statements FROM skein_fleet_events`
      expect(row).toEqual({ statements: 1 })
    }))

  it.live("deletes what nodes have left that have gone", () =>
    Effect.gen(function*() {
      const { count, sql, stores: [store] } = yield* open(yield* url, { lifetime: 60_000 })
      for (let event = 1; event <= 10; event++) store!.append("s", 1, event, "data")
      yield* store!.flush!
      yield* sql`INSERT INTO skein_fleet_events (session, stream, event, data, stored_at)
        SELECT 'gone', 1, n, 'data', now() - interval '2 minutes' FROM generate_series(1, 12000) n`
      yield* untilEffect("the rows have expired", Effect.map(count, (rows) => rows === 10))
    }))
})

describePostgres("PostgresEventStore, while the database restarts", () => {
  const server = Effect.acquireRelease(
    Effect.promise(() => startPostgres()),
    (postgres) => Effect.promise(() => postgres.stop())
  )

  it.live("never reads with a gap after the database has crashed", () =>
    Effect.gen(function*() {
      const postgres = yield* server
      const { stores: [one, two] } = yield* open(yield* Effect.promise(() => postgres.createDatabase()))
      for (const event of [1, 2]) one!.append("s", 1, event, `event ${event}`)
      yield* one!.flush!
      yield* Effect.promise(() => postgres.kill())
      for (const event of [3, 4]) one!.append("s", 1, event, `event ${event}`)
      yield* until("the events are lost", () => one!.size === 0)
      yield* Effect.promise(() => postgres.start())
      yield* one!.flush!
      // The table is empty after a crash.
      expect(yield* two!.read("s", 1, 2)).toBeUndefined()
      for (const event of [5, 6]) one!.append("s", 1, event, `event ${event}`)
      yield* one!.flush!
      for (const store of [one!, two!]) {
        expect(yield* store.read("s", 1, 2)).toBeUndefined()
        expect(yield* store.read("s", 1, 4)).toEqual(["event 5", "event 6"])
      }
    }))
})
