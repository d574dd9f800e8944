/** Opens a file exclusively and commits rows, writing the id of each to stdout, until it is killed. */
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
    // Lets a signal arrive between two commits.
    yield* Effect.yieldNow
  }
}).pipe(
  Effect.provide(SqliteClient.layer({ filename: process.argv[2]!, exclusive: true })),
  Effect.runPromise
)
