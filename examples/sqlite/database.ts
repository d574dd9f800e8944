/**
 * A read-only SQLite database.
 */
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { DatabaseSync, SQLOutputValue } from "node:sqlite"
import { demo } from "./demo.ts"

/** A value as JSON. Integers and numbers outside the range of JSON are text. A blob is replaced by its size. */
export type Cell = string | number | null

/** The first rows of a table or query, and whether there are more. */
export interface Rows {
  readonly rows: ReadonlyArray<Readonly<Record<string, Cell>>>
  readonly more: boolean
}

/** An error of SQLite about a file or a query. */
export class DatabaseError extends Data.TaggedError("DatabaseError")<{ readonly message: string }> {}

export class Database extends Context.Service<Database, {
  /** The statements that create the tables, views, indices and triggers. */
  readonly schema: Effect.Effect<string, DatabaseError>
  /** The names of the tables and views. */
  readonly tables: Effect.Effect<ReadonlyArray<string>, DatabaseError>
  /**
   * The first rows of a query, `limit` at most. SQLite runs on the main thread: a slow query blocks the server and
   * cannot be interrupted.
   */
  readonly select: (sql: string, limit: number) => Effect.Effect<Rows, DatabaseError>
}>()("Database") {}

/** Quotes the name of a table for a query. */
export const quoted = (table: string): string => `"${table.replaceAll("\"", "\"\"")}"`

/** Opens the database in a file, or a demo database in memory. Closing the scope closes it. */
export const layer = (file?: string): Layer.Layer<Database, DatabaseError> =>
  Layer.effect(
    Database,
    Effect.gen(function*() {
      const database = yield* Effect.acquireRelease(open(file), (database) => Effect.sync(() => database.close()))
      // SQLite does not open the file before the first read.
      yield* attempt(() => database.exec("SELECT 1 FROM sqlite_schema"))
      return make(database)
    }).pipe(Effect.mapError(({ message }) => new DatabaseError({ message: `${file}: ${message}` })))
  )

const attempt = <A>(run: () => A): Effect.Effect<A, DatabaseError> =>
  Effect.try({
    try: run,
    catch: (error) => new DatabaseError({ message: error instanceof Error ? error.message : String(error) })
  })

const open = (file: string | undefined): Effect.Effect<DatabaseSync, DatabaseError> =>
  attempt(() => {
    const { DatabaseSync } = SqliteClient.loadNodeSqlite()
    if (file !== undefined) return new DatabaseSync(file, { readOnly: true })
    const database = new DatabaseSync(":memory:")
    database.exec(demo)
    database.exec("PRAGMA query_only = ON")
    return database
  })

const make = (database: DatabaseSync): Database["Service"] => {
  const texts = (sql: string): Effect.Effect<ReadonlyArray<string>, DatabaseError> =>
    attempt(() => database.prepare(sql).all().map(({ text }) => String(text)))
  return {
    schema: Effect.map(
      texts("SELECT sql AS text FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, rowid"),
      (statements) => statements.map((statement) => `${statement};\n`).join("\n")
    ),
    tables: texts(
      "SELECT name AS text FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite!_%' ESCAPE '!' ORDER BY name"
    ),
    select: (sql, limit) =>
      attempt(() => {
        // Only a SELECT can be in parentheses. Statements that write, attach another file or set a pragma are a syntax
        // error there. Closing the parenthesis in the query does not help: SQLite runs only the first of several
        // statements.
        const statement = database.prepare(`SELECT * FROM (\n${sql.replace(/[\s;]+$/, "")}\n)`)
        statement.setReadBigInts(true)
        const rows: Array<Rows["rows"][number]> = []
        for (const values of statement.iterate()) {
          if (rows.length === limit) return { rows, more: true }
          rows.push(row(values))
        }
        return { rows, more: false }
      })
  }
}

const row = (values: Record<string, SQLOutputValue>): Record<string, Cell> =>
  Object.fromEntries(Object.entries(values).map(([column, value]) => [column, cell(value)]))

const cell = (value: SQLOutputValue): Cell => {
  if (value === null || typeof value === "string") return value
  if (value instanceof Uint8Array) return `<${value.length} bytes>`
  const number = Number(value)
  return typeof value === "bigint" ?
    Number.isSafeInteger(number) ? number : String(value)
    : Number.isFinite(number) ?
    number
    : String(number)
}
