/** The common features of both drivers. Their own features are in `PgClient.test.ts` and `SqliteClient.test.ts`. */
import { describe, expect, it } from "@effect/vitest"
import * as PgClient from "@skein/sql/PgClient"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import { describePostgres } from "./describePostgres.ts"
import { openTransaction, reasonOf } from "./kit.ts"

type Names = Pick<PgClient.Options & SqliteClient.Options, "transformQueryNames" | "transformResultNames">

/** Runs a program on an empty database. */
type On = <A, E>(
  program: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>,
  names?: Names
) => Effect.Effect<A, E | SqlError>

const tests = (on: On) => {
  it.live("runs templates, helpers, values and streams", () =>
    on((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)`
        yield* sql`INSERT INTO t ${sql.insert([{ id: 1, name: "one" }, { id: 2, name: undefined }])}`
        expect(yield* sql`SELECT * FROM t WHERE ${sql.in("id", [2])}`).toEqual([{ id: 2, name: null }])
        expect(yield* sql`UPDATE t SET ${sql.update({ name: "two" })} WHERE id = ${2} RETURNING id, name`.values)
          .toEqual([[2, "two"]])
        expect(yield* Stream.runCollect(sql`SELECT name FROM t ORDER BY id`.stream))
          .toEqual([{ name: "one" }, { name: "two" }])
      })
    ))

  it.live("renames identifiers and columns with the transform options", () =>
    on((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (task_id TEXT)`
        yield* sql`INSERT INTO t ${sql.insert({ taskId: "a" })}`
        expect(yield* sql`SELECT * FROM t`).toEqual([{ taskId: "a" }])
        expect(yield* Stream.runCollect(sql`SELECT * FROM t`.stream)).toEqual([{ taskId: "a" }])
        expect(yield* sql`SELECT * FROM t`.withoutTransform).toEqual([{ task_id: "a" }])
      }), {
      transformQueryNames: (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
      transformResultNames: (name) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
    }))

  it.live("reads safe integers as numbers, and as bigints with SafeIntegers", () =>
    on((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (n BIGINT)`
        yield* sql`INSERT INTO t VALUES (${2 ** 53 - 1})`
        const all = sql`SELECT n FROM t`
        expect(yield* all).toEqual([{ n: 2 ** 53 - 1 }])
        expect(yield* Effect.provideService(all, SqlClient.SafeIntegers, true)).toEqual([{ n: 2n ** 53n - 1n }])
        expect(yield* all).toEqual([{ n: 2 ** 53 - 1 }])
      })
    ))

  it.live("rolls a failed transaction back, and a nested one alone", () =>
    on((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY)`
        const add = (id: number) => sql`INSERT INTO t VALUES (${id})`
        const inner = sql.withTransaction(Effect.andThen(add(2), Effect.fail("no" as const)))
        yield* sql.withTransaction(Effect.andThen(add(1), Effect.ignore(inner)))
        expect(yield* Effect.flip(sql.withTransaction(Effect.andThen(add(3), Effect.fail("no" as const))))).toBe("no")
        yield* sql.withTransaction(Effect.forEach([4, 5, 6], add, { concurrency: "unbounded" }))
        expect(yield* sql`SELECT id FROM t ORDER BY id`.values).toEqual([[1], [4], [5], [6]])
      })
    ))

  it.live("rolls back a transaction that fails at its commit, and runs the next one", () =>
    on((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE a (id INTEGER PRIMARY KEY)`
        yield* sql`CREATE TABLE b (id INTEGER REFERENCES a DEFERRABLE INITIALLY DEFERRED)`
        expect(yield* reasonOf(sql.withTransaction(sql`INSERT INTO b VALUES (1)`))).toBe("ConstraintError")
        yield* sql.withTransaction(sql`INSERT INTO a VALUES (1)`)
        expect(yield* sql`SELECT (SELECT count(*) FROM a) AS a, (SELECT count(*) FROM b) AS b`)
          .toEqual([{ a: 1, b: 0 }])
      })
    ))

  it.live("shows nothing of an interrupted transaction, and runs other statements after it", () =>
    on((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY)`
        const transaction = yield* openTransaction(sql, sql`INSERT INTO t VALUES (1)`)
        yield* Fiber.interrupt(transaction)
        expect(yield* sql`SELECT id FROM t`).toEqual([])
        yield* sql`INSERT INTO t VALUES (1)`
      })
    ))

  it.live("sets the reasons of errors", () =>
    on((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE, n INTEGER NOT NULL CHECK (n > 0))`
        yield* sql`INSERT INTO t VALUES (1, 'x', 1)`
        const reasons = yield* Effect.forEach([
          sql`INSERT INTO t VALUES (1, 'y', 1)`,
          sql`INSERT INTO t VALUES (2, 'x', 1)`,
          sql`INSERT INTO t VALUES (2, 'y', 0)`,
          sql`INSERT INTO t VALUES (2, 'y', ${null})`,
          sql`SELEC`
        ], (failing) => Effect.map(Effect.flip(failing), ({ reason }) => reason))
        expect(reasons.map(({ _tag }) => _tag)).toEqual([
          "UniqueViolation",
          "UniqueViolation",
          "ConstraintError",
          "ConstraintError",
          "SqlSyntaxError"
        ])
        expect(reasons.map(({ isRetryable }) => isRetryable)).toEqual([false, false, false, false, false])
        expect(yield* sql`SELECT 1 AS fine`).toEqual([{ fine: 1 }])
      })
    ))

  it.live("runs a repeated statement again after its table has changed", () =>
    on((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (a TEXT)`
        yield* sql`INSERT INTO t VALUES ('x')`
        const all = () => sql`SELECT * FROM t`
        for (let n = 0; n < 3; n++) expect(yield* all()).toEqual([{ a: "x" }])
        yield* sql`ALTER TABLE t ADD COLUMN b TEXT DEFAULT 'y'`
        for (let n = 0; n < 3; n++) expect(yield* all()).toEqual([{ a: "x", b: "y" }])
      })
    ))
}

describePostgres(
  "PgClient",
  (postgres) =>
    tests((program, names) =>
      Effect.flatMap(
        Effect.promise(() => postgres().createDatabase()),
        (url) => Effect.provide(Effect.flatMap(SqlClient.SqlClient, program), PgClient.layer({ url, ...names }))
      )
    )
)

describe("SqliteClient", () =>
  tests((program, names) =>
    Effect.provide(
      Effect.flatMap(SqlClient.SqlClient, program),
      SqliteClient.layer({ filename: ":memory:", ...names })
    )
  ))
