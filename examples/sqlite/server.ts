/**
 * Shows a SQLite database to a model: its schema and its tables are resources, and a tool asks it whatever SQL can ask. Nothing can
 * be written.
 */
import * as McpServer from "@skein/server/McpServer"
import * as Resource from "@skein/server/Resource"
import * as ResourceTemplate from "@skein/server/ResourceTemplate"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Database, quoted } from "./database.ts"

const json = (value: unknown): string => JSON.stringify(value, null, 2)

const schema = Resource.layer(
  Resource.make("sqlite://schema", {
    name: "schema",
    title: "The schema",
    description: "The SQL that makes the tables, views, indices and triggers.",
    mimeType: "application/sql"
  }),
  Effect.flatMap(Database, ({ schema }) => schema)
)

const tables = Resource.layer(
  Resource.make("sqlite://tables", {
    name: "tables",
    title: "The tables",
    description: "The names of the tables and views; each is a resource of its own.",
    mimeType: "application/json"
  }),
  Effect.flatMap(Database, ({ tables }) => Effect.map(tables, json))
)

const table = ResourceTemplate.layer(
  ResourceTemplate.make("sqlite://tables/{table}", {
    name: "table",
    title: "A table",
    description: "The first 100 rows of a table or view.",
    mimeType: "application/json"
  }),
  ({ table }, uri) =>
    Effect.gen(function*() {
      const database = yield* Database
      if (!(yield* database.tables).includes(table)) return yield* Effect.fail(Resource.notFound(uri))
      return json(yield* database.select(`SELECT * FROM ${quoted(table)}`, 100))
    }),
  { complete: { table: Effect.flatMap(Database, ({ tables }) => tables) } }
)

const Cell = Schema.Union([Schema.String, Schema.Finite, Schema.Null])
const limit = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 1000 })).annotate({
  description: "How many rows at most: 100 unless given"
})

const query = Tool.layer(
  Tool.make("query", {
    title: "Ask the database",
    description: "Runs one SELECT and returns its rows. The resource sqlite://schema says what there is.",
    input: { sql: Schema.String.annotate({ description: "A SELECT of SQLite" }), limit: Schema.optionalKey(limit) },
    output: {
      rows: Schema.Array(Schema.Record(Schema.String, Cell)),
      more: Schema.Boolean.annotate({ description: "Whether there are more rows than these" })
    },
    annotations: { readOnlyHint: true, openWorldHint: false }
  }),
  ({ sql, limit = 100 }) => Effect.flatMap(Database, (database) => database.select(sql, limit))
)

/** The server; it needs a `Database`. */
export const SqliteExplorer = McpServer.layer(
  {
    name: "sqlite-explorer",
    version: "1.0.0",
    instructions: "Read sqlite://schema before you ask with the query tool."
  },
  schema,
  tables,
  table,
  query
)
