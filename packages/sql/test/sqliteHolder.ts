/** Holds a file for itself and commits a row after the other, telling each, until it is killed. */
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Effect from "effect/Effect"
import * as SqlClient from "effect/sql/SqlClient"
import { writeSync } from "node:fs"

await Effect.gen(function*() {
  const sql = yield* SqlClient.SqlClient
  yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY)`
  for (let id = 1;; id++) {
    yield* sql.withTransaction(sql`INSERT INTO t VALUES (${id})`)
    writeSync(1, `${id}\n`)
    // Lets the pipe be read, and a signal arrive, between any two.
    yield* Effect.yieldNow
  }
}).pipe(
  Effect.provide(SqliteClient.layer({ filename: process.argv[2]!, exclusive: true })),
  Effect.runPromise
)
