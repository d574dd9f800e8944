import { describe, expect, it } from "@effect/vitest"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as SqlClient from "effect/sql/SqlClient"
import * as Stream from "effect/Stream"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { openTransaction, reasonOf } from "./kit.ts"
import { CachedStatements } from "../src/internal/sqlite/sqliteConnection.ts"

const on = <A, E>(
  filename: string,
  program: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>,
  options: Omit<SqliteClient.Options, "filename"> = {}
) => Effect.provide(Effect.flatMap(SqlClient.SqlClient, program), SqliteClient.layer({ filename, ...options }))

const inMemory = <A, E>(
  program: (sql: SqlClient.SqlClient) => Effect.Effect<A, E>,
  options?: Omit<SqliteClient.Options, "filename">
) => on(":memory:", program, options)

/** Returns the path of a file in a folder that is removed with the scope. */
const temporary = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "skein-sqlite-"))),
  (folder) => Effect.sync(() => rmSync(folder, { recursive: true }))
).pipe(Effect.map((folder) => join(folder, "test.db")))

describe("loadNodeSqlite", () => {
  it("leaves out the warning about SQLite and no other", async () => {
    const program = `
      import { loadNodeSqlite } from "@skein/sql/SqliteClient"
      new (loadNodeSqlite().DatabaseSync)(":memory:").close()
      process.emitWarning("SQLite has news")
      process.emitWarning("Coffee is experimental", "ExperimentalWarning")`
    const args = ["--conditions=@skein/source", "--input-type=module", "--eval", program]
    const child = spawn(process.execPath, args, { cwd: import.meta.dirname, stdio: ["ignore", "inherit", "pipe"] })
    let stderr = ""
    child.stderr.setEncoding("utf8").on("data", (text: string) => void (stderr += text))
    expect(await once(child, "close")).toEqual([0, null])
    expect(stderr.match(/\w*Warning: .*/g)).toEqual([
      "Warning: SQLite has news",
      "ExperimentalWarning: Coffee is experimental"
    ])
  })

  it("restores the function of the process", () => {
    const { emitWarning } = process
    expect(SqliteClient.loadNodeSqlite().DatabaseSync).toBe(DatabaseSync)
    expect(process.emitWarning).toBe(emitWarning)
  })
})

describe("SqliteClient", () => {
  it.effect("runs templates, helpers, values, raw statements and streams", () =>
    inMemory((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT, done INTEGER, bytes BLOB, at TEXT)`
        const bytes = new Uint8Array([1, 2, 3])
        yield* sql`INSERT INTO t ${
          sql.insert([
            { id: 1, name: "one", done: true, bytes, at: new Date(0) },
            { id: 2, name: undefined, done: false, bytes: null, at: null }
          ])
        }`
        expect(yield* sql`SELECT * FROM t WHERE ${sql.in("id", [1])}`)
          .toEqual([{ id: 1, name: "one", done: 1, bytes, at: "1970-01-01T00:00:00.000Z" }])
        expect(yield* sql`UPDATE t SET ${sql.update({ name: "two" })} WHERE id = ${2} RETURNING id, name`.values)
          .toEqual([[2, "two"]])
        expect(yield* sql`SELECT name FROM t WHERE name IS ${undefined}`).toEqual([])
        expect(yield* sql`SELECT name FROM t ORDER BY id`.raw).toEqual([{ name: "one" }, { name: "two" }])
        expect(yield* sql`DELETE FROM t`.raw).toEqual({ changes: 2, lastInsertRowid: 2 })
      })
    ))

  it.effect("reads a stream chunk by chunk, while the same statement runs elsewhere", () =>
    inMemory((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY)`
        yield* sql`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) INSERT INTO t SELECT i FROM n`
        const all = sql<{ id: number }>`SELECT id FROM t ORDER BY id`
        const seen = yield* sql.withTransaction(
          Stream.runCollect(
            Stream.mapEffect(all.stream, ({ id }) => id % 500 === 0 ? Effect.as(all, id) : Effect.succeed(id))
          )
        )
        expect(seen).toEqual(Array.from({ length: 1000 }, (_, index) => index + 1))
        expect(yield* Stream.runCollect(Stream.take(all.stream, 2))).toEqual([{ id: 1 }, { id: 2 }])
        // A stream that was stopped midway is released: a table in use cannot be dropped.
        yield* sql`DROP TABLE t`
      })
    ))

  it.effect("reads integers as numbers, and as bigints with SafeIntegers, also for the same statement", () =>
    inMemory((sql) =>
      Effect.gen(function*() {
        const one = sql`SELECT 9007199254740991 AS n`
        expect(yield* one).toEqual([{ n: 9007199254740991 }])
        expect(yield* Effect.provideService(one, SqlClient.SafeIntegers, true)).toEqual([{ n: 9007199254740991n }])
        expect(yield* one).toEqual([{ n: 9007199254740991 }])
        const big = sql`SELECT ${2n ** 60n} AS n`
        expect(yield* reasonOf(big)).toBe("UnknownError")
        expect(yield* Effect.provideService(big, SqlClient.SafeIntegers, true)).toEqual([{ n: 2n ** 60n }])
      })
    ))

  it.effect("runs other statements after a transaction, and shows nothing of an interrupted one", () =>
    inMemory((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY)`
        const transaction = yield* openTransaction(sql, sql`INSERT INTO t VALUES (1)`)
        const outside = yield* Effect.forkChild(sql`SELECT id FROM t`, { startImmediately: true })
        yield* Effect.yieldNow
        expect(outside.pollUnsafe()).toBe(undefined)
        yield* Fiber.interrupt(transaction)
        expect(yield* Fiber.join(outside)).toEqual([])
      })
    ))

  it.effect("sets the reasons of errors", () =>
    inMemory((sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE, n INTEGER NOT NULL CHECK (n > 0))`
        yield* sql`INSERT INTO t VALUES (1, 'x', 1)`
        const unique = (id: number, a: string) => Effect.flip(sql`INSERT INTO t VALUES (${id}, ${a}, 1)`)
        expect((yield* unique(2, "x")).reason).toMatchObject({ _tag: "UniqueViolation", constraint: "t.a" })
        expect((yield* unique(1, "y")).reason).toMatchObject({ _tag: "UniqueViolation", constraint: "t.id" })
        expect(yield* reasonOf(sql`INSERT INTO t VALUES (2, 'y', 0)`)).toBe("ConstraintError")
        expect(yield* reasonOf(sql`INSERT INTO t VALUES (2, 'y', ${null})`)).toBe("ConstraintError")
        expect(yield* reasonOf(sql`SELEC`)).toBe("SqlSyntaxError")
        expect(yield* reasonOf(sql`SELECT * FROM nothing`)).toBe("SqlSyntaxError")
        expect(yield* reasonOf(sql`SELECT ${{ an: "object" }}`)).toBe("UnknownError")
        expect(yield* reasonOf(sql.unsafe("SELECT ?", [1, 2]))).toBe("UnknownError")
      })
    ))

  it.effect("runs more statements than it caches, and those it dropped again", () =>
    inMemory((sql) =>
      Effect.gen(function*() {
        for (let round = 0; round < 2; round++) {
          for (let n = 0; n < 20; n++) expect(yield* sql.unsafe(`SELECT ${n} AS n`)).toEqual([{ n }])
        }
      })
    ).pipe(Effect.provideService(CachedStatements, 3)))

  it.effect("opens a separate database for each client of :memory:, also for an exclusive one", () =>
    inMemory((one) =>
      inMemory((two) =>
        Effect.gen(function*() {
          yield* one`CREATE TABLE t AS SELECT 1 AS a`
          expect(yield* reasonOf(two`SELECT * FROM t`)).toBe("SqlSyntaxError")
        }), { exclusive: true }), { exclusive: true }))

  it.effect("fails with an error, not a defect, after the database was closed", () =>
    Effect.gen(function*() {
      const sql = yield* inMemory(Effect.succeed)
      expect(yield* reasonOf(sql`SELECT 1`)).toBe("ConnectionError")
    }))
})

describe("SqliteClient on a file", () => {
  it.effect("uses a write-ahead log, sets synchronous, and reads committed rows after a reopen", () =>
    Effect.scoped(Effect.gen(function*() {
      const filename = yield* temporary
      const read = (sql: SqlClient.SqlClient) =>
        Effect.map(Effect.all([sql`PRAGMA journal_mode`.values, sql`PRAGMA synchronous`.values]), (all) => all.flat(2))
      expect(yield* on(filename, read)).toEqual(["wal", 1])
      expect(yield* on(filename, read, { synchronous: "full", exclusive: true })).toEqual(["wal", 2])
      yield* on(filename, (sql) => sql`CREATE TABLE t AS SELECT 1 AS a`)
      expect(yield* on(filename, (sql) => sql`SELECT * FROM t`)).toEqual([{ a: 1 }])
      expect(() => statSync(`${filename}-wal`)).toThrow("ENOENT")
    })))

  it.effect("fails the layer with the file name where the file cannot be opened or is not a database", () =>
    Effect.scoped(Effect.gen(function*() {
      const filename = yield* temporary
      const error = yield* Effect.flip(on(join(filename, "below"), Effect.succeed))
      expect(error.reason).toMatchObject({ _tag: "ConnectionError", operation: "open" })
      expect(error.message).toContain(filename)
    })))

  it.effect("shows commits to other clients of the file, and fails with LockTimeoutError after lockTimeout", () =>
    Effect.scoped(Effect.gen(function*() {
      const filename = yield* temporary
      yield* on(filename, (one) =>
        on(filename, (two) =>
          Effect.gen(function*() {
            yield* one`CREATE TABLE t (id INTEGER)`
            yield* one.withTransaction(Effect.gen(function*() {
              yield* one`INSERT INTO t VALUES (1)`
              expect(yield* reasonOf(two`INSERT INTO t VALUES (2)`)).toBe("LockTimeoutError")
              expect((yield* Effect.flip(two`INSERT INTO t VALUES (2)`)).message).toBe(
                "SQLite: database is locked: another process or client has held its lock for longer than lockTimeout. Try " +
                  "again, or end the transaction that holds it"
              )
              expect(yield* reasonOf(two.withTransaction(Effect.void))).toBe("LockTimeoutError")
            }))
            expect(yield* two`SELECT id FROM t`).toEqual([{ id: 1 }])
          }), { lockTimeout: 0 }))
    })))

  const refused = (filename: string, exclusive: boolean) =>
    Effect.map(
      Effect.flip(on(filename, (sql) => sql`SELECT 1`, { exclusive, lockTimeout: 0 })),
      ({ reason }) => ({ tag: reason._tag, operation: reason.operation, message: reason.message })
    )

  it.effect("exclusive · refuses another exclusive client in the same process until it is closed", () =>
    Effect.scoped(Effect.gen(function*() {
      const filename = yield* temporary
      yield* on(filename, (sql) =>
        Effect.gen(function*() {
          yield* sql`CREATE TABLE t AS SELECT 1 AS a`
          const error = yield* refused(filename, true)
          expect(error).toMatchObject({ tag: "LockTimeoutError", operation: "open" })
          expect(error.message).toContain(`"${filename}" is in use`)
          expect(yield* refused(`file:${filename}?cache=private`, true)).toMatchObject({ tag: "LockTimeoutError" })
          expect(yield* sql`SELECT * FROM t`).toEqual([{ a: 1 }])
        }), { exclusive: true })
      expect(yield* on(filename, (sql) => sql`SELECT * FROM t`, { exclusive: true })).toEqual([{ a: 1 }])
    })))

  it.effect("creates a file for its owner only, with the files beside it, and leaves the mode of an existing one", () =>
    Effect.scoped(Effect.gen(function*() {
      const filename = yield* temporary
      const modes = () =>
        ["", "-wal", "-owner"].map((suffix) => (statSync(`${filename}${suffix}`).mode & 0o777).toString(8))
      const write = (expected: ReadonlyArray<string>) =>
        on(filename, (sql) =>
          Effect.gen(function*() {
            yield* sql`CREATE TABLE IF NOT EXISTS t (a)`
            yield* sql`INSERT INTO t VALUES (1)`
            expect(modes()).toEqual(expected)
          }), { exclusive: true })
      yield* write(["600", "600", "600"])
      chmodSync(filename, 0o644)
      yield* write(["644", "644", "644"])
    })))

  it.effect("exclusive · gives the file of the lock the mode of the database", () =>
    Effect.scoped(Effect.gen(function*() {
      const filename = yield* temporary
      const modeOf = () => statSync(`${filename}-owner`).mode & 0o777
      for (const mode of [0o600, 0o640, 0o600]) {
        writeFileSync(filename, "", { flag: "a" })
        chmodSync(filename, mode)
        yield* on(filename, (sql) =>
          Effect.gen(function*() {
            yield* sql`CREATE TABLE IF NOT EXISTS t AS SELECT 1 AS a`
            expect(modeOf()).toBe(mode)
            // The lock is still there.
            expect(yield* refused(`file:${filename}`, true)).toMatchObject({ tag: "LockTimeoutError" })
          }), { exclusive: true })
      }
    })))

  it.effect("exclusive · closes the file of the lock to other users also when one of them has locked it", () =>
    Effect.scoped(Effect.gen(function*() {
      const filename = yield* temporary
      writeFileSync(filename, "", { mode: 0o600 })
      const lock = new DatabaseSync(`${filename}-owner`)
      yield* Effect.addFinalizer(() => Effect.sync(() => lock.close()))
      chmodSync(`${filename}-owner`, 0o644)
      lock.exec("BEGIN; SELECT COUNT(*) FROM sqlite_master")
      expect(yield* refused(filename, true)).toMatchObject({ tag: "LockTimeoutError", operation: "open" })
      expect(statSync(`${filename}-owner`).mode & 0o777).toBe(0o600)
    })))

  it.effect("exclusive · lets clients read and write beside it that are not exclusive", () =>
    Effect.scoped(Effect.gen(function*() {
      const filename = yield* temporary
      const beside = <A>(use: (sql: SqlClient.SqlClient) => Effect.Effect<A, unknown>) => on(filename, use)
      yield* on(filename, (sql) =>
        Effect.gen(function*() {
          yield* sql`CREATE TABLE t AS SELECT 1 AS a`
          expect(yield* beside((sql) => sql`SELECT * FROM t`)).toEqual([{ a: 1 }])
          yield* beside((sql) => sql`INSERT INTO t VALUES (2)`)
          expect(yield* sql`SELECT * FROM t`).toEqual([{ a: 1 }, { a: 2 }])
        }), { exclusive: true })
    })))

  it.effect("exclusive · fails for a file that a client has locked as version 0.1 did", () =>
    Effect.scoped(Effect.gen(function*() {
      const filename = yield* temporary
      const older = new DatabaseSync(filename)
      older.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; BEGIN EXCLUSIVE; COMMIT")
      expect(yield* refused(filename, true)).toMatchObject({ tag: "LockTimeoutError", operation: "open" })
      older.close()
      yield* on(filename, (sql) =>
        Effect.gen(function*() {
          yield* sql`SELECT 1`
          const again = new DatabaseSync(filename)
          expect(() => again.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; BEGIN EXCLUSIVE"))
            .toThrow(
              "database is locked"
            )
          again.close()
        }), { exclusive: true })
    })))

  it.effect("shared · opens beside other shared clients, and neither beside nor before an exclusive one", () =>
    Effect.scoped(Effect.gen(function*() {
      const filename = yield* temporary
      const select = (sql: SqlClient.SqlClient) => sql`SELECT 1 AS a`
      const refusedBeside = (options: Omit<SqliteClient.Options, "filename">) => reasonOf(on(filename, select, options))
      yield* on(filename, () =>
        Effect.gen(function*() {
          expect(yield* on(filename, select, { shared: true })).toEqual([{ a: 1 }])
          expect(yield* refusedBeside({ exclusive: true })).toBe("LockTimeoutError")
        }), { shared: true })
      yield* on(
        filename,
        () => Effect.map(refusedBeside({ shared: true }), (tag) => expect(tag).toBe("LockTimeoutError")),
        { exclusive: true }
      )
    })))

  it.live.each([{ shared: true }, { lockTimeout: "30 seconds" } as const])(
    "%o · waits for the lock of another connection while the process goes on, up to lockTimeout",
    (options) =>
      Effect.scoped(Effect.gen(function*() {
        const filename = yield* temporary
        const other = new DatabaseSync(filename)
        yield* Effect.addFinalizer(() => Effect.sync(() => other.close()))
        yield* on(filename, (sql) =>
          Effect.gen(function*() {
            yield* sql`CREATE TABLE t (a INTEGER)`
            other.exec("BEGIN IMMEDIATE; INSERT INTO t VALUES (1)")
            const inserted = yield* Effect.forkChild(
              Effect.andThen(sql`INSERT INTO t VALUES (2)`, sql.withTransaction(sql`INSERT INTO t VALUES (3)`))
            )
            yield* Effect.sleep("20 millis")
            expect(inserted.pollUnsafe()).toBeUndefined()
            other.exec("COMMIT")
            yield* Fiber.join(inserted)
            expect(yield* sql`SELECT a FROM t`).toEqual([{ a: 1 }, { a: 2 }, { a: 3 }])
          }), options)
        other.exec("BEGIN IMMEDIATE")
        yield* on(
          filename,
          (sql) =>
            Effect.map(reasonOf(sql`INSERT INTO t VALUES (4)`), (reason) => expect(reason).toBe("LockTimeoutError")),
          { ...options, lockTimeout: "50 millis" }
        )
      }))
  )

  it.live("exclusive · refuses another process; after kill -9 the file opens at once, with every commit", () =>
    Effect.scoped(Effect.gen(function*() {
      const filename = yield* temporary
      const holder = yield* Effect.acquireRelease(
        Effect.sync(() =>
          spawn(process.execPath, [
            "--conditions=@skein/source",
            fileURLToPath(new URL("./sqliteHolder.ts", import.meta.url)),
            filename
          ], { stdio: ["ignore", "pipe", "inherit"] })
        ),
        (child) => Effect.sync(() => child.kill("SIGKILL"))
      )
      // The process prints a number after the commit that wrote it.
      let last = 0
      let rest = ""
      holder.stdout.setEncoding("utf8").on("data", (text: string) => {
        const lines = (rest + text).split("\n")
        rest = lines.pop() ?? ""
        last = Number(lines.at(-1) ?? last)
      })
      yield* Effect.promise(() => once(holder.stdout, "data"))
      expect(yield* refused(filename, true)).toMatchObject({ tag: "LockTimeoutError", operation: "open" })
      holder.kill("SIGKILL")
      yield* Effect.promise(() => once(holder, "close"))
      expect(last).toBeGreaterThan(0)
      const [row] = yield* on(
        filename,
        (sql) => sql<{ last: number; count: number }>`SELECT max(id) AS last, count(*) AS count FROM t`,
        { exclusive: true }
      )
      expect(row!.last).toBeGreaterThanOrEqual(last)
      expect(row!.count).toBe(row!.last)
      const database = new DatabaseSync(filename)
      expect(database.prepare("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }])
      database.close()
    })))
})
