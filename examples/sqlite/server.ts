/**
 * Gives a model read access to a SQLite database: its schema and tables are resources, and a tool runs SELECT queries.
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
    title: "Schema",
    description: "The SQL statements that create the tables, views, indices and triggers.",
    mimeType: "application/sql"
  }),
  Effect.flatMap(Database, ({ schema }) => schema)
)

const tables = Resource.layer(
  Resource.make("sqlite://tables", {
    name: "tables",
    title: "Tables",
    description: "The names of the tables and views. Each is a resource sqlite://tables/{name}.",
    mimeType: "application/json"
  }),
  Effect.flatMap(Database, ({ tables }) => Effect.map(tables, json))
)

const table = ResourceTemplate.layer(
  ResourceTemplate.make("sqlite://tables/{table}", {
    name: "table",
    title: "Table",
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
  description: "The maximum number of rows, 100 by default"
})

const query = Tool.layer(
  Tool.make("query", {
    title: "Query the database",
    description:
      "Runs one SELECT statement and returns its rows. Read the resource sqlite://schema for the tables and columns.",
    input: {
      sql: Schema.String.annotate({ description: "A SELECT statement in SQLite's dialect" }),
      limit: Schema.optionalKey(limit)
    },
    output: {
      rows: Schema.Array(Schema.Record(Schema.String, Cell)),
      more: Schema.Boolean.annotate({ description: "Whether the query has more rows than these" })
    },
    annotations: { readOnlyHint: true, openWorldHint: false }
  }),
  ({ sql, limit = 100 }) => Effect.flatMap(Database, (database) => database.select(sql, limit))
)

/** The server. It requires a `Database`. */
export const SqliteExplorer = McpServer.layer(
  {
    name: "sqlite-explorer",
    version: "1.0.0",
    instructions: "Read sqlite://schema before you use the query tool."
  },
  schema,
  tables,
  table,
  query
)
