import { assert, describe, it } from "@effect/vitest"
import * as SqlTokenStore from "@skein/auth/SqlTokenStore"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { join } from "node:path"
import { read, reasonOf, shown, storeTests, write } from "./conformance.ts"
import { temporary } from "./folder.ts"
import { sqlStoreTests } from "./sqlStoreTests.ts"

const sqlite = (filename: string) =>
  Effect.map(
    Layer.build(SqliteClient.layer({ filename })),
    (context) => Context.get(context, SqlClient.SqlClient)
  )

const open = (options: SqlTokenStore.Options) =>
  Effect.gen(function*() {
    const filename = join(yield* temporary, "tokens.db")
    const clients = yield* Effect.all([sqlite(filename), sqlite(filename)])
    const stores = yield* Effect.forEach(clients, (sql) =>
      Effect.provideService(SqlTokenStore.make(options), SqlClient.SqlClient, sql))
    return { clients, stores: [stores[0]!, stores[1]!] as const }
  })

storeTests("SqlTokenStore on SQLite", (options) => Effect.map(open(options), ({ stores }) => stores))

sqlStoreTests("SqlTokenStore on SQLite", open)

describe("SqlTokenStore on SQLite", () => {
  it.live("refuses a use in a transaction of its client, which a rollback would undo", () =>
    Effect.gen(function*() {
      const { clients: [sql], stores: [store] } = yield* open({})
      for (const use of [write(store, "a", "s3cret"), store.get("a"), store.withLock("a", Effect.void)]) {
        const error = yield* Effect.flip(sql!.withTransaction(use as Effect.Effect<unknown, Error>))
        assert.include((error as Error).message, "in a transaction of its SqlClient")
        assert.notInclude(shown(error), "s3cret")
      }
      yield* write(store, "a", "value")
      assert.strictEqual(yield* read(store, "a"), "value")
    }))

  it.live("refuses another database", () =>
    Effect.gen(function*() {
      const sql = yield* sqlite(":memory:")
      const mysql = {
        ...sql,
        withoutTransforms: () => mysql,
        onDialectOrElse: (options: { readonly orElse: () => unknown }) => options.orElse()
      } as unknown as SqlClient.SqlClient
      const make = Effect.provideService(SqlTokenStore.make(), SqlClient.SqlClient, mysql)
      assert.strictEqual(yield* reasonOf(make), "StoreUnavailable")
    }))
})
