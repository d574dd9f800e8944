/** `PostgresFleet` through PgBouncer. */
import { describe, expect, it } from "@effect/vitest"
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import * as PgClient from "@skein/sql/PgClient"
import * as Effect from "effect/Effect"
import { SqlClient } from "effect/sql/SqlClient"
import { afterAll, beforeAll } from "vitest"
import { type Postgres, required, startPostgres, unavailable } from "../../../sql/test/postgres.ts"
import { noPgBouncer, type PgBouncer, startPgBouncer } from "../../../sql/test/startPgBouncer.ts"
import { open, start } from "../kit.ts"

const reason = unavailable ?? noPgBouncer
const skipped = reason !== undefined && !required

describe.skipIf(skipped)(
  skipped ? `PostgresFleet through PgBouncer (${reason})` : "PostgresFleet through PgBouncer",
  () => {
    let postgres: Postgres
    let pooler: PgBouncer | undefined
    beforeAll(async () => {
      if (reason !== undefined) throw new Error(reason)
      postgres = await startPostgres()
    })
    afterAll(async () => {
      await postgres?.stop()
    })
    const database = (poolMode: "session" | "transaction") =>
      Effect.gen(function*() {
        pooler = yield* Effect.acquireRelease(
          Effect.promise(() => startPgBouncer(postgres.port, { poolMode, roundRobin: true })),
          ({ stop }) => Effect.promise(() => stop())
        )
        return pooler.through(yield* Effect.promise(() => postgres.createDatabase()))
      })

    it.live("session mode · two nodes share a session", () =>
      Effect.gen(function*() {
        const layer = PostgresFleet.layer({ url: yield* database("session") })
        const [a, b] = [yield* start(layer), yield* start(layer)]
        const { id } = yield* open(a)
        yield* b.fleet.find(id, undefined)
        yield* b.fleet.change(id, { logLevel: "error" })
        expect(a.arrived).toEqual([{ _tag: "Changed", id, change: { logLevel: "error" } }])
      }).pipe(Effect.scoped))

    it.live("transaction mode · the layer fails with FleetError, which names the mode", () =>
      Effect.gen(function*() {
        const url = yield* database("transaction")
        // Opens several connections to the server, which take turns then.
        yield* Effect.provide(
          Effect.forEach([1, 2, 3], () => Effect.flatMap(SqlClient, (sql) => sql`SELECT pg_sleep(0.1)`), {
            concurrency: 3
          }),
          PgClient.layer({ url })
        )
        const error = yield* Effect.flip(start(PostgresFleet.layer({ url, connectTimeout: "1 second" })))
        expect(error._tag).toBe("FleetError")
        expect(error.message).toContain("pool_mode = session")
      }).pipe(Effect.scoped))
  }
)
