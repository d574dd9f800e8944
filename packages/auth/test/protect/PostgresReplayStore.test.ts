/** The store of DPoP proofs on PostgreSQL, which several instances share. */
import { expect, it } from "@effect/vitest"
import * as SqlReplayStore from "@skein/auth/SqlReplayStore"
import * as PgClient from "@skein/sql/PgClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { describePostgres } from "../../../sql/test/describePostgres.ts"

describePostgres("SqlReplayStore on PostgreSQL", (postgres) => {
  /** Instances with one new database. All of them create the table at once. */
  const open = (options?: SqlReplayStore.Options) =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => postgres().createDatabase())
      const clients = yield* Effect.forEach(
        [1, 2, 3],
        () => Effect.map(Layer.build(PgClient.layer({ url })), (context) => Context.get(context, SqlClient.SqlClient))
      )
      const stores = yield* Effect.forEach(
        clients,
        (sql) => Effect.provideService(SqlReplayStore.make(options), SqlClient.SqlClient, sql),
        { concurrency: "unbounded" }
      )
      return { sql: clients[0]!, stores }
    })

  it.live("RFC 9449, 11.1 · accepts each of 200 proofs once among three instances", () =>
    Effect.gen(function*() {
      const { sql, stores } = yield* open()
      const ids = Array.from({ length: 200 }, (_, n) => `proof ${n}`)
      const uses = ids.flatMap((id) => stores.map((store) => ({ id, store })))
      const accepted = yield* Effect.forEach(
        uses,
        ({ id, store }) =>
          Effect.map(store.add({ id, owner: "ada", now: 0, expiresAt: 70_000 }), (isFirst) => isFirst ? [id] : []),
        { concurrency: 50 }
      )
      expect(accepted.flat().toSorted()).toEqual(ids.toSorted())
      expect(yield* sql`SELECT count(*)::int AS rows FROM skein_dpop_proofs`).toEqual([{ rows: 200 }])
    }))

  it.live("deletes the rows that have expired, from all instances at once", () =>
    Effect.gen(function*() {
      const { sql, stores } = yield* open()
      yield* Effect.forEach(
        Array.from({ length: 300 }, (_, n) => n),
        (n) => stores[n % 3]!.add({ id: `old ${n}`, owner: "ada", now: 0, expiresAt: 15_000 }),
        { concurrency: 30 }
      )
      yield* Effect.forEach(
        stores,
        (store, n) => store.add({ id: `new ${n}`, owner: "ada", now: 20_000, expiresAt: 90_000 }),
        { concurrency: "unbounded" }
      )
      expect(yield* sql`SELECT id FROM skein_dpop_proofs ORDER BY id`).toEqual([
        { id: "new 0" },
        { id: "new 1" },
        { id: "new 2" }
      ])
    }))

  it.live("has at most maxProofs rows for each instance", () =>
    Effect.gen(function*() {
      const { sql, stores } = yield* open({ maxProofs: 5 })
      for (const [n, store] of stores.entries()) {
        for (let id = 0; id < 8; id++) {
          yield* Effect.exit(store.add({ id: `${n} ${id}`, owner: `user ${id}`, now: 0, expiresAt: 70_000 }))
        }
      }
      expect(yield* sql`SELECT count(*)::int AS rows FROM skein_dpop_proofs`).toEqual([{ rows: 15 }])
    }))
})
