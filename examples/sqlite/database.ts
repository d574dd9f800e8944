/**
 * A SQLite database that can only be read.
 */
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { DatabaseSync, type SQLOutputValue } from "node:sqlite"
import { demo } from "./demo.ts"

/** What JSON can say of a value: what is too large for a number is text, and of a blob only the size is told. */
export type Cell = string | number | null

/** Some rows of a table or a query, and whether there are more. */
export interface Rows {
  readonly rows: ReadonlyArray<Readonly<Record<string, Cell>>>
  readonly more: boolean
}

/** What SQLite has to say against a file or a query. */
export class DatabaseError extends Data.TaggedError("DatabaseError")<{ readonly message: string }> {}

export class Database extends Context.Service<Database, {
  /** The statements that make the tables, views, indices and triggers. */
  readonly schema: Effect.Effect<string, DatabaseError>
  /** The names of the tables and views. */
  readonly tables: Effect.Effect<ReadonlyArray<string>, DatabaseError>
  /**
   * The first rows of a query, `limit` at most. SQLite runs on this thread: a query that takes long holds up the server for so
   * long, and cannot be interrupted.
   */
  readonly select: (sql: string, limit: number) => Effect.Effect<Rows, DatabaseError>
}>()("Database") {}

/** Names a table in a query, whatever its name. */
export const quoted = (table: string): string => `"${table.replaceAll("\"", "\"\"")}"`

/** The database in a file, or one with something to look at. The scope closes it. */
export const layer = (file?: string): Layer.Layer<Database, DatabaseError> =>
  Layer.effect(
    Database,
    Effect.gen(function*() {
      const database = yield* Effect.acquireRelease(open(file), (database) => Effect.sync(() => database.close()))
      // SQLite looks into a file only when something is read from it.
      yield* attempt(() => database.exec("SELECT 1 FROM sqlite_schema"))
      return make(database)
    })
  )

const attempt = <A>(run: () => A): Effect.Effect<A, DatabaseError> =>
  Effect.try({
    try: run,
    catch: (error) => new DatabaseError({ message: error instanceof Error ? error.message : String(error) })
  })

const open = (file: string | undefined): Effect.Effect<DatabaseSync, DatabaseError> =>
  attempt(() => {
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
        // Only what reads can stand in parentheses: to write, to attach another file or to set a pragma is a syntax error there. And
        // who closes them gains nothing: of several statements SQLite takes the first.
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
