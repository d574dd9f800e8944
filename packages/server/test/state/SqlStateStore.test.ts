/** The store of states in SQLite. */
import { describe, expect, it } from "@effect/vitest"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as SqlClient from "effect/sql/SqlClient"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { sqlStoreTests, storeIn } from "./sqlStoreTests.ts"

const open = Effect.gen(function*() {
  const folder = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-states-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true }))
  )
  const place = join(folder, "states.db")
  const client = Effect.map(
    Layer.build(Layer.fresh(SqliteClient.layer({ filename: place }))),
    (context) => Context.get(context, SqlClient.SqlClient)
  )
  return { place, clients: [yield* client, yield* client] as const }
})

sqlStoreTests("SQLite", open)

describe("SqlStateStore", () => {
  it.effect("refuses a database that is neither PostgreSQL nor SQLite", () =>
    Effect.gen(function*() {
      const { clients: [sqlite] } = yield* open
      const mysql: SqlClient.SqlClient = Object.assign(sqlite.withoutTransforms(), {
        withoutTransforms: () => mysql,
        onDialectOrElse: ((options) => options.orElse()) as SqlClient.SqlClient["onDialectOrElse"]
      })
      expect((yield* Effect.flip(storeIn(mysql))).message).toBe(
        "The state is not available: SqlStateStore supports PostgreSQL and SQLite, and no other database"
      )
    }))
})
