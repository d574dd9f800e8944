import { describe, expect, it } from "@effect/vitest"
import * as Client from "@skein/client/Client"
import * as Stdio from "@skein/client/Stdio"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import * as kit from "./testKit.ts"
import * as Database from "./sqlite/database.ts"
import { SqliteExplorer } from "./sqlite/server.ts"

const Answer = Schema.Struct({ rows: Schema.Array(Schema.Any), more: Schema.Boolean })

/** A client of the explorer in memory, with the database in `file` or the demo database. */
const explorer = (file?: string) =>
  Effect.gen(function*() {
    const server = yield* Layer.build(Layer.provide(SqliteExplorer, Database.layer(file)))
    return yield* Effect.flatMap(McpServer.McpServer, ({ serve }) => Client.make(InMemoryTransport.transport(serve)))
      .pipe(
        Effect.provide(server)
      )
  })

const ask = (client: Client.Client, sql: string, limit?: number) =>
  client.callTool("query", limit === undefined ? { sql } : { sql, limit }, { output: Answer })

/** A folder with a database. Closing the scope deletes it. */
const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const path = mkdtempSync(join(tmpdir(), "skein-sqlite-"))
    const database = new DatabaseSync(join(path, "data.db"))
    database.exec("CREATE TABLE \"odd \"\"name\"\"\" (a); INSERT INTO \"odd \"\"name\"\"\" VALUES (1), (2)")
    database.exec(
      "CREATE TABLE kinds AS SELECT 9007199254740993 AS big, 9e999 AS huge, x'010203' AS blob, NULL AS none"
    )
    database.close()
    return path
  }),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

describe("the SQLite explorer", () => {
  it.effect("has resources for the schema and the names of the tables", () =>
    Effect.gen(function*() {
      const client = yield* explorer()
      const { resources } = yield* client.listResourcesPage()
      expect(resources.map(({ uri }) => uri)).toEqual(["sqlite://schema", "sqlite://tables"])
      const { contents: [schema] } = yield* client.readResource("sqlite://schema")
      expect(schema).toMatchObject({
        mimeType: "application/sql",
        text: expect.stringContaining("CREATE TABLE mountains")
      })
      const { contents: [tables] } = yield* client.readResource("sqlite://tables")
      expect(tables).toMatchObject({ text: JSON.stringify(["mountains", "ranges", "unclimbed"], null, 2) })
    }))

  it.effect("has a resource for each table and view, and fails for unknown names", () =>
    Effect.gen(function*() {
      const client = yield* explorer(join(yield* folder, "data.db"))
      const { contents: [table] } = yield* client.readResource(`sqlite://tables/${encodeURIComponent("odd \"name\"")}`)
      expect(table).toMatchObject({ text: JSON.stringify({ rows: [{ a: 1 }, { a: 2 }], more: false }, null, 2) })
      for (const missing of ["missing", "sqlite_schema", encodeURIComponent("kinds\"; --")]) {
        const error = yield* Effect.flip(client.readResource(`sqlite://tables/${missing}`))
        expect(error).toMatchObject({ reason: { _tag: "ProtocolError", error: { reason: "ResourceNotFound" } } })
      }
    }))

  it.effect("returns the rows of a query up to the limit, and whether there are more", () =>
    Effect.gen(function*() {
      const client = yield* explorer()
      const sql =
        "SELECT m.name, r.name AS range FROM mountains m JOIN ranges r ON r.id = m.range ORDER BY metres DESC;\n"
      expect(yield* ask(client, sql, 1)).toEqual({ rows: [{ name: "Mount Everest", range: "Himalaya" }], more: true })
      expect(yield* ask(client, "WITH n(x) AS (VALUES (1), (2)) SELECT x FROM n -- both", 2)).toEqual({
        rows: [{ x: 1 }, { x: 2 }],
        more: false
      })
      const endless = "WITH RECURSIVE n(x) AS (VALUES (1) UNION ALL SELECT x + 1 FROM n) SELECT x FROM n"
      expect(yield* ask(client, endless)).toMatchObject({ rows: { length: 100 }, more: true })
    }))

  it.effect("returns numbers outside the range of JSON as text, and the sizes of blobs", () =>
    Effect.gen(function*() {
      const client = yield* explorer(join(yield* folder, "data.db"))
      const { rows } = yield* ask(client, "SELECT * FROM kinds")
      expect(rows).toEqual([{ big: "9007199254740993", huge: "Infinity", blob: "<3 bytes>", none: null }])
    }))

  it.effect("returns errors of SQLite and of the limit as tool errors", () =>
    Effect.gen(function*() {
      const client = yield* explorer()
      const result = yield* client.callTool("query", { sql: "SELECT * FROM missing" })
      expect(result).toMatchObject({ isError: true, content: [{ text: "no such table: missing" }] })
      const refused = yield* client.callTool("query", { sql: "SELECT 1", limit: 5000 })
      expect(refused).toMatchObject({ isError: true })
    }))

  it.effect("rejects everything except a single SELECT, in a file and in memory", () =>
    Effect.gen(function*() {
      const path = yield* folder
      for (const file of [join(path, "data.db"), undefined]) {
        const client = yield* explorer(file)
        const { contents: before } = yield* client.readResource("sqlite://schema")
        const table = file === undefined ? "mountains" : "kinds"
        for (
          const sql of [
            `DELETE FROM ${table}`,
            `DELETE FROM ${table} RETURNING *`,
            `SELECT 1; DELETE FROM ${table}`,
            `INSERT INTO ${table} DEFAULT VALUES`,
            `WITH x AS (SELECT 1) DELETE FROM ${table}`,
            `DROP TABLE ${table}`,
            "PRAGMA query_only = OFF",
            `ATTACH '${join(path, "new.db")}' AS other`,
            `VACUUM INTO '${join(path, "new.db")}'`
          ]
        ) expect(yield* client.callTool("query", { sql })).toMatchObject({ isError: true })
        for (const sql of [`SELECT 1 AS one); DELETE FROM ${table}; --`, "SELECT 1 AS one) /*"]) {
          expect((yield* ask(client, sql)).rows).toEqual([{ one: 1 }])
        }
        expect((yield* ask(client, `SELECT count(*) > 0 AS kept FROM ${table}`)).rows).toEqual([{ kept: 1 }])
        expect((yield* client.readResource("sqlite://schema")).contents).toEqual(before)
      }
      expect(readdirSync(path)).toEqual(["data.db"])
    }))

  it.effect("fails for a file that is missing or not a database, and creates none", () =>
    Effect.gen(function*() {
      const path = yield* folder
      for (const file of [join(path, "nothing.db"), import.meta.filename]) {
        expect(yield* Effect.flip(explorer(file))).toMatchObject({ _tag: "DatabaseError" })
      }
      expect(readdirSync(path)).toEqual(["data.db"])
    }))

  it.effect("completes the names of tables", () =>
    Effect.gen(function*() {
      const client = yield* explorer(join(yield* folder, "data.db"))
      const table = { type: "ref/resource", uri: "sqlite://tables/{table}" } as const
      const complete = (value: string) =>
        Effect.map(client.complete({ ref: table, argument: { name: "table", value } }), ({ completion }) =>
          completion.values)
      expect(yield* complete("")).toEqual(["kinds", "odd \"name\""])
      expect(yield* complete("NAME")).toEqual(["odd \"name\""])
      expect(yield* complete("nothing")).toEqual([])
    }))

  it.live("serves a file and the demo database over stdio", () =>
    Effect.gen(function*() {
      const start = (...args: ReadonlyArray<string>) =>
        Client.make(Stdio.transport(kit.program("sqlite/main.ts", "--stdio", ...args)))
      const withFile = yield* start(join(yield* folder, "data.db"))
      expect((yield* ask(withFile, "SELECT count(*) AS n FROM kinds")).rows).toEqual([{ n: 1 }])
      const demo = yield* start()
      expect((yield* ask(demo, "SELECT count(*) AS n FROM mountains")).rows).toEqual([{ n: 7 }])
    }))

  it.live("serves a file over HTTP in each revision", () =>
    Effect.gen(function*() {
      const server = yield* kit.start(kit.program("sqlite/main.ts", "--port", "0", join(yield* folder, "data.db")))
      const url = yield* kit.urlOf(server)
      for (const revision of kit.httpRevisions) {
        const ask = yield* kit.connect(url, revision)
        const { result: { contents: [schema] } } = yield* ask("resources/read", { uri: "sqlite://schema" })
        expect(schema.text).toContain("CREATE TABLE kinds")
        const sql = "SELECT count(*) AS n FROM kinds"
        const { result } = yield* ask("tools/call", { name: "query", arguments: { sql } })
        expect(JSON.parse(result.content[0].text)).toEqual({ rows: [{ n: 1 }], more: false })
      }
      server.kill("SIGTERM")
      expect(yield* Effect.promise(() => server.ended)).toBe(143)
    }))

  it.live("exits with 1 and prints the reason when it cannot open the database", () =>
    Effect.gen(function*() {
      for (const option of ["--stdio", "--port=0"]) {
        const server = yield* kit.start(kit.program("sqlite/main.ts", option, join(yield* folder, "nothing.db")))
        expect(yield* Effect.promise(() => server.ended)).toBe(1)
        expect(server.err()).toContain("unable to open database file")
        expect(server.out()).toBe("")
      }
    }))
})
