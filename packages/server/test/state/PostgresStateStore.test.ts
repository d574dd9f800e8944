/** The store of states in PostgreSQL, which the processes of several machines share. */
import { expect, it } from "@effect/vitest"
import * as PgClient from "@skein/sql/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { describePostgres } from "../../../sql/test/describePostgres.ts"
import { sqlStoreTests, storeIn } from "./sqlStoreTests.ts"

describePostgres("states of several machines", (postgres) => {
  const client = (url: string) =>
    Effect.map(
      Layer.build(Layer.fresh(PgClient.layer({ url }))),
      (context) => Context.get(context, SqlClient.SqlClient)
    )
  const open = Effect.gen(function*() {
    const place = yield* Effect.promise(() => postgres().createDatabase())
    return { place, clients: [yield* client(place), yield* client(place)] as const }
  })

  sqlStoreTests("PostgreSQL", open)

  it.live("needs no right to create tables where they exist", () =>
    Effect.gen(function*() {
      const { clients: [sql], place } = yield* open
      yield* storeIn(sql)
      yield* sql`CREATE ROLE reader LOGIN`
      yield* sql`REVOKE CREATE ON SCHEMA public FROM PUBLIC`
      yield* sql`GRANT SELECT, INSERT, UPDATE, DELETE ON skein_states TO reader`
      yield* sql`GRANT SELECT ON skein_state_versions TO reader`
      const url = new URL(place)
      url.username = "reader"
      const store = yield* storeIn(yield* client(url.href))
      const key = { owner: "principal ada", scope: "user", name: "cart" } as const
      expect(yield* store.set(key, { json: "1", expected: undefined, ttlMs: Infinity })).toBe(true)
      expect((yield* store.get(key))?.json).toBe("1")
    }))
})
