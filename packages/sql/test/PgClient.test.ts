import { expect, it } from "@effect/vitest"
import * as PgTypes from "@effect/sql-pg/PgTypes"
import * as PgClient from "@skein/sql/PgClient"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Scope from "effect/Scope"
import * as SqlClient from "effect/sql/SqlClient"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import * as Stream from "effect/Stream"
import { toPgError } from "../src/internal/postgres/pgError.ts"
import { makeRegistry } from "../src/internal/postgres/pgTypes.ts"
import * as TestClock from "effect/testing/TestClock"
import { describePostgres } from "./describePostgres.ts"
import { openTransaction, reasonOf } from "./kit.ts"
import type { Postgres } from "./postgres.ts"
import { PoolBounds } from "../src/internal/postgres/pgConnection.ts"

const on = <A, E>(
  postgres: Postgres,
  program: (sql: PgClient.Client, url: string) => Effect.Effect<A, E, PgClient.PgClient | SqlClient.SqlClient>,
  options: Omit<PgClient.Options, "url"> = {}
) =>
  Effect.promise(() => postgres.createDatabase()).pipe(Effect.flatMap((url) =>
    Effect.provide(
      Effect.flatMap(PgClient.PgClient, (sql) => program(sql, url)),
      PgClient.layer({ url: Redacted.make(url), ...options })
    )
  ))

/** Polls the views of the server: nothing else shows that a statement waits there. */
const until = (sql: PgClient.Client, condition: string): Effect.Effect<void, SqlError> =>
  Effect.flatMap(
    sql.unsafe<{ readonly yes: boolean }>(`SELECT ${condition} AS yes`),
    ([row]) => row?.yes === true ? Effect.void : until(sql, condition)
  )

/** Runs an effect while a process of the server is stopped. */
const stopped = <A, E, R>(pid: number, effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.acquireUseRelease(
    Effect.sync(() => process.kill(pid, "SIGSTOP")),
    () => effect,
    () => Effect.sync(() => process.kill(pid, "SIGCONT"))
  )

describePostgres("PgClient", (postgres) => {
  it.live("runs templates, helpers, values and streams", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id int8 PRIMARY KEY, name text, done boolean, data jsonb, bytes bytea)`
        const bytes = new Uint8Array([1, 2, 3])
        yield* sql`INSERT INTO t ${
          sql.insert([
            { id: 1, name: "one", done: true, data: { a: [1] }, bytes },
            { id: 2, name: undefined, done: false, data: null, bytes: null }
          ])
        }`
        const [row] = yield* sql<{ bytes: Uint8Array }>`SELECT * FROM t WHERE ${sql.in("id", [1])}`
        expect(row).toMatchObject({ id: 1, name: "one", done: true, data: { a: [1] } })
        expect([...row!.bytes]).toEqual([1, 2, 3])
        expect(yield* sql`UPDATE t SET ${sql.update({ name: "two" })} WHERE id = 2 RETURNING id, name`.values)
          .toEqual([[2, "two"]])
        yield* sql`UPDATE t SET name = data.name FROM ${
          sql.updateValues([{ id: 1, name: "eins" }, { id: 2, name: "zwei" }], "data")
        } WHERE t.id = data.id::int8`
        expect(yield* Stream.runCollect(sql`SELECT name FROM t ORDER BY id`.stream))
          .toEqual([{ name: "eins" }, { name: "zwei" }])
        expect(yield* sql`DELETE FROM t`.raw).toMatchObject({ rowCount: 2 })
      })))

  it.live("sends settings to each connection, and fails with those that the server refuses", () =>
    Effect.gen(function*() {
      const names = ["search_path", "enable_seqscan", "statement_timeout", "idle_in_transaction_session_timeout"]
      const settings = { search_path: "it's", enable_seqscan: "off" }
      const shown = yield* on(
        postgres(),
        (sql) =>
          Effect.forEach(
            [1, 2],
            () =>
              sql.withTransaction(
                Effect.forEach(names, (name) => Effect.map(sql.unsafe(`SHOW ${name}`).values, ([row]) => row![0]))
              ),
            { concurrency: 2 }
          ),
        { settings, statementTimeout: "20 seconds", idleInTransactionTimeout: Duration.infinity }
      )
      expect(shown).toEqual([["it's", "off", "20s", "0"], ["it's", "off", "20s", "0"]])
      const refused = yield* Effect.flip(
        on(postgres(), (sql) => sql`SELECT 1`, { settings: { no_such_setting: "on" } })
      )
      expect(refused.message).toContain("no_such_setting")
    }))

  it.live("reads int8 as a number where it is safe, as a bigint beyond and with SafeIntegers", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        const values =
          sql`SELECT 7::int8, 9007199254740991::int8, 9007199254740992::int8, count(*) FROM pg_class WHERE false`.values
        expect(yield* values).toEqual([[7, 9007199254740991, 9007199254740992n, 0]])
        expect(yield* Effect.provideService(values, SqlClient.SafeIntegers, true))
          .toEqual([[7n, 9007199254740991n, 9007199254740992n, 0n]])
        expect(yield* sql`SELECT ${2n ** 60n}::int8 AS id`).toEqual([{ id: 2n ** 60n }])
      })))

  it.live("fails the commit of a transaction in which a statement failed, since the server rolls it back", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id int PRIMARY KEY)`
        const error = yield* Effect.flip(sql.withTransaction(
          Effect.andThen(sql`INSERT INTO t VALUES (1)`, Effect.ignore(sql`INSERT INTO t VALUES (1)`))
        ))
        expect(error.message).toContain("rolled back")
        expect(yield* sql`SELECT id FROM t`).toEqual([])
      })))

  it.live("refuses two statements in one text, and executes neither", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id int)`
        expect(yield* reasonOf(sql`INSERT INTO t VALUES (1); INSERT INTO t VALUES (2)`.unprepared))
          .toBe("SqlSyntaxError")
        expect(yield* sql`SELECT * FROM t`).toEqual([])
      })))

  it.live("sends numbers, booleans, arrays and objects as values of the type that the statement needs", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        const bytes = new Uint8Array([0, 255])
        const date = new Date("2026-11-24T01:02:03.004Z")
        expect(yield* sql`SELECT ${7}::text AS a, ${7} = 7::int8 AS b, ${true}::text AS c, ${0.1}::numeric AS d`)
          .toEqual([{ a: "7", b: true, c: "true", d: "0.1" }])
        expect(yield* sql`SELECT ${["a\"b\\", null, "{,}"]}::text[] AS a, (${[[1, 2], [3, 4]]}::int[])[2][1] AS b`)
          .toEqual([{ a: ["a\"b\\", null, "{,}"], b: 3 }])
        expect(yield* sql`SELECT ${{ a: [1] }}::jsonb AS a, ${[{ b: 2 }]}::jsonb[] AS b`)
          .toEqual([{ a: { a: [1] }, b: [{ b: 2 }] }])
        expect(yield* sql`SELECT ${date}::timestamptz AS a, ${[date]}::timestamptz[] AS b`)
          .toEqual([{ a: date, b: [date] }])
        const [row] = yield* sql<{ a: Uint8Array; b: Array<Uint8Array> }>`
          SELECT ${bytes}::bytea AS a, ${[bytes]}::bytea[] AS b`
        expect([[...row!.a], [...row!.b[0]!]]).toEqual([[0, 255], [0, 255]])
      })))

  it.live("reads types without a counterpart as bytes, and keeps the connection", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        const pid = sql`SELECT pg_backend_pid()`.values
        const before = yield* pid
        const [row] = yield* sql`SELECT
          '[1,5)'::int4range AS range, 12.34::money AS money, '(1,2)'::point AS point, ROW(1) AS record,
          pg_current_xact_id() AS xid8, pg_current_wal_lsn() AS lsn, 'int4'::regtype AS type, '2 b'::tsvector AS vector`
        expect(Object.values(row!).map((value) => value instanceof Uint8Array)).toEqual(Array(8).fill(true))
        expect(yield* pid).toEqual(before)
      }), { maxConnections: 1 }))

  it.live("has a codec for each built-in type whose binary form is not text", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        const types = yield* sql<{ readonly oid: number; readonly name: string }>`
          SELECT oid, typname AS name FROM pg_type
          WHERE oid < 16384 AND typsend <> 0 AND typtype IN ('b', 'r', 'm') AND typelem = 0 AND typcategory <> 'Z' AND typsend::regproc::text
            NOT IN ('textsend', 'varcharsend', 'bpcharsend', 'namesend', 'charsend', 'unknownsend', 'xml_send', 'json_send',
              'jsonb_send')`
        const registry = makeRegistry(PgTypes)
        const missing = types.filter(({ oid }) => {
          // Without a codec the byte is text.
          const decoded = PgTypes.decode(Uint8Array.of(255), oid, 1, registry)
          return Result.isFailure(decoded) && decoded.failure.message.includes("UTF-8")
        })
        expect(types.length).toBeGreaterThan(50)
        expect(missing.map(({ name }) => name)).toEqual([])
      })))

  it.live("prepares up to a bound, closes the oldest one, and prepares unprepared ones never", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        const kept = sql`SELECT statement FROM pg_prepared_statements ORDER BY statement`.unprepared
        for (const text of ["SELECT 1 + $1::int", "SELECT 2 + $1::int", "SELECT 3 + $1::int"]) {
          for (let n = 0; n < 3; n++) yield* sql.unsafe(text, [n]).values
        }
        for (let n = 0; n < 3; n++) yield* sql`SELECT 4 + ${n}::int`.unprepared
        expect(yield* kept).toEqual([{ statement: "SELECT 2 + $1::int" }, { statement: "SELECT 3 + $1::int" }])
      }), { maxConnections: 1 }).pipe(
        Effect.provideService(PoolBounds, { maxPreparedStatements: 2, idleTimeout: "30 seconds" })
      ))

  it.live("prepares nothing with prepare: false", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        for (let n = 0; n < 3; n++) yield* sql.withTransaction(sql`SELECT ${n}::int`)
        expect(yield* sql`SELECT statement FROM pg_prepared_statements`).toEqual([])
      }), { maxConnections: 1, prepare: false }))

  it.live("reuses the connection of a transaction, and discards one that is still in a transaction", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        const pid = sql`SELECT pg_backend_pid()`.values
        const first = yield* sql.withTransaction(pid)
        yield* Effect.ignore(sql.withTransaction(sql`SELECT 1 / 0`))
        expect(yield* sql.withTransaction(pid)).toEqual(first)
        yield* Effect.scoped(Effect.flatMap(sql.reserve, (connection) => connection.execute("BEGIN", [], undefined)))
        expect(yield* pid).not.toEqual(first)
      }), { maxConnections: 1 }))

  it.live("runs an outdated or deallocated prepared statement again, outside of a transaction", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t AS SELECT 1 AS a`
        const all = () => sql`SELECT * FROM t WHERE a = ${1}`
        for (let n = 0; n < 3; n++) expect(yield* all()).toEqual([{ a: 1 }])
        yield* sql`ALTER TABLE t ADD COLUMN b int DEFAULT 2`
        for (let n = 0; n < 3; n++) expect(yield* all()).toEqual([{ a: 1, b: 2 }])
        yield* Effect.scoped(Effect.gen(function*() {
          const connections = yield* Effect.all([sql.reserve, sql.reserve])
          for (const connection of connections) {
            for (let n = 0; n < 3; n++) yield* connection.execute("SELECT $1::int AS n", [n], undefined)
            yield* connection.executeUnprepared("DEALLOCATE ALL", [], undefined)
            expect(yield* connection.execute("SELECT $1::int AS n", [7], undefined)).toEqual([{ n: 7 }])
          }
        }))
      })))

  it.live("sets the reasons of errors", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id int PRIMARY KEY, n int NOT NULL CONSTRAINT positive CHECK (n > 0))`
        yield* sql`INSERT INTO t VALUES (1, 1)`
        const unique = yield* Effect.flip(sql`INSERT INTO t VALUES (1, 1)`)
        expect(unique.reason).toMatchObject({ _tag: "UniqueViolation", constraint: "t_pkey", isRetryable: false })
        expect(yield* reasonOf(sql`INSERT INTO t VALUES (2, 0)`)).toBe("ConstraintError")
        expect(yield* reasonOf(sql`INSERT INTO t VALUES (2, ${null})`)).toBe("ConstraintError")
        expect(yield* reasonOf(sql`SELEC`)).toBe("SqlSyntaxError")
        expect(yield* reasonOf(sql`SELECT 1 / 0`)).toBe("UnknownError")
        const loop: Record<string, unknown> = {}
        loop["loop"] = loop
        expect(yield* reasonOf(sql`SELECT ${loop}::jsonb`)).toBe("UnknownError")
        expect(yield* sql`SELECT 1 AS fine`).toEqual([{ fine: 1 }])
        const broken = Object.assign(new Error("write EPIPE"), { code: "EPIPE" })
        const lost = new SqlError({ reason: new ConnectionError({ cause: broken }) })
        expect(toPgError(lost)).toMatchObject({
          message: "PostgreSQL: write EPIPE",
          reason: { _tag: "ConnectionError" }
        })
      })))

  it.live("fails the layer where the server cannot be reached or refuses the login", () =>
    Effect.gen(function*() {
      const build = (options: PgClient.Options) => reasonOf(Effect.provide(PgClient.PgClient, PgClient.layer(options)))
      const { port } = postgres()
      expect(yield* build({ url: "postgres://postgres@127.0.0.1:1/none" })).toBe("ConnectionError")
      expect(yield* build({ host: "127.0.0.1", port, username: "nobody", database: "postgres" }))
        .toBe("AuthenticationError")
    }))

  it.live("connects to the parts of the URL, else to the members, else to the environment", () =>
    Effect.gen(function*() {
      const url = new URL(yield* Effect.promise(() => postgres().createDatabase()))
      const name = (options: PgClient.Options) =>
        Effect.map(
          Effect.provide(
            Effect.flatMap(PgClient.PgClient, (sql) => sql`SELECT current_database() AS a, current_user AS b`),
            PgClient.layer(options)
          ),
          ([row]) => Object.values(row!)
        )
      const database = url.pathname.slice(1)
      const server = { host: url.hostname, port: Number(url.port) }
      expect(yield* name({ url: url.href, host: "127.0.0.9", port: 1, database: "none", username: "nobody" }))
        .toEqual([database, "postgres"])
      expect(yield* name({ url: `postgres:///${database}`, ...server, username: "postgres" }))
        .toEqual([database, "postgres"])
      const environment = {
        PGHOST: server.host,
        PGPORT: url.port,
        PGUSER: "postgres",
        PGPASSWORD: "unused",
        PGDATABASE: database
      }
      yield* Effect.acquireUseRelease(
        Effect.sync(() => {
          const before = { ...process.env }
          Object.assign(process.env, environment)
          return before
        }),
        () => Effect.map(name({}), (found) => expect(found).toEqual([database, "postgres"])),
        (before) =>
          Effect.sync(() => {
            for (const key of Object.keys(environment)) delete process.env[key]
            Object.assign(process.env, before)
          })
      )
      expect(yield* reasonOf(Effect.provide(PgClient.PgClient, PgClient.layer({ url: "localhost" }))))
        .toBe("ConnectionError")
    }))

  it.live("fails a statement after statementTimeout", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        expect(yield* reasonOf(sql`SELECT pg_sleep(60)`)).toBe("StatementTimeoutError")
        expect(yield* sql`SELECT 1 AS fine`).toEqual([{ fine: 1 }])
      }), { statementTimeout: "1 second" }))

  it.live("fails a statement that a stopped server does not end, and uses another connection next", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        const [row] = yield* sql<{ readonly pid: number }>`SELECT pg_backend_pid() AS pid`
        const { message, reason } = yield* stopped(row!.pid, Effect.flip(sql`SELECT 1`))
        expect(reason._tag).toBe("ConnectionError")
        expect(message).toBe("PostgreSQL: the server has not answered a statement for 3500 ms")
        expect(yield* sql`SELECT 2 AS two`).toEqual([{ two: 2 }])
      }), { maxConnections: 1, statementTimeout: 500, connectTimeout: 3000 }))

  it.live("fails a statement that a stopped server does not end, also after a pause without statements", () =>
    on(postgres(), (sql, url) =>
      Effect.gen(function*() {
        const [row] = yield* sql<{ readonly pid: number }>`SELECT pg_backend_pid() AS pid`
        // The pause is longer than the time for which the server may be silent while a statement runs.
        yield* Effect.provide(
          Effect.flatMap(PgClient.PgClient, (other) => other`SELECT pg_sleep(1.5)`),
          PgClient.layer({ url })
        )
        const { reason } = yield* stopped(row!.pid, Effect.flip(sql`SELECT 1`))
        expect(reason._tag).toBe("ConnectionError")
      }), { maxConnections: 1, statementTimeout: 500, connectTimeout: 500 }))

  it.live("ends an interrupted statement that a stopped server does not end", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        const sleep = sql`SELECT pg_backend_pid(), pg_sleep(1000)`
        const fiber = yield* Effect.forkChild(sleep)
        const running = "pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%pg_sleep(1000)'"
        yield* until(sql, `EXISTS (SELECT ${running} AND pid <> pg_backend_pid())`)
        const [row] = yield* sql.unsafe<{ readonly pid: number }>(`SELECT ${running} AND pid <> pg_backend_pid()`)
        yield* stopped(row!.pid, Fiber.interrupt(fiber))
        expect(yield* sql`SELECT 2 AS two`).toEqual([{ two: 2 }])
      }), { statementTimeout: "Infinity", connectTimeout: 3000 }))

  it.live("ends the connection of a transaction after idleInTransactionTimeout, and uses another one next", () =>
    on(postgres(), (sql, url) =>
      Effect.gen(function*() {
        const pid = sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`
        const exit = yield* Effect.exit(sql.withTransaction(Effect.gen(function*() {
          const [row] = yield* pid
          yield* Effect.provide(
            Effect.flatMap(
              PgClient.PgClient,
              (other) => until(other, `NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = ${row!.pid})`)
            ),
            PgClient.layer({ url })
          )
          yield* pid
        })))
        expect(Exit.isFailure(exit)).toBe(true)
        expect(yield* sql`SELECT 1 AS fine`).toEqual([{ fine: 1 }])
      }), { idleInTransactionTimeout: "50 millis", maxConnections: 1 }))

  it.live("fails after connectTimeout where all connections are in use", () =>
    on(postgres(), (sql) =>
      sql.withTransaction(Effect.gen(function*() {
        expect(yield* reasonOf(Effect.scoped(sql.reserve))).toBe("ConnectionError")
      })), { maxConnections: 1, connectTimeout: "1 second" }))

  it.effect("is not affected by a clock of a test that jumps", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        const pid = sql`SELECT pg_backend_pid()`.values
        const before = yield* pid
        const fiber = yield* Effect.forkChild(Effect.all([1, 2, 3].map(() => sql`SELECT pg_sleep(0.2)`), {
          concurrency: 3,
          discard: true
        }))
        yield* TestClock.setTime(1_700_000_000_000)
        yield* Fiber.join(fiber)
        expect(yield* pid).toEqual(before)
      }), { maxConnections: 1 }))

  it.live("cancels an interrupted statement on the server, and reuses its connection", () =>
    on(postgres(), (sql, url) =>
      Effect.gen(function*() {
        const pid = sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`
        const [before] = yield* pid
        const fiber = yield* Effect.forkChild(sql`SELECT pg_sleep(600)`)
        const sleeping = `EXISTS (SELECT FROM pg_stat_activity WHERE pid = ${before!.pid} AND wait_event = 'PgSleep')`
        yield* Effect.provide(
          Effect.flatMap(PgClient.PgClient, (other) => until(other, sleeping)),
          PgClient.layer({ url })
        )
        yield* Fiber.interrupt(fiber)
        expect(Cause.hasInterruptsOnly((yield* Fiber.await(fiber) as Effect.Effect<Exit.Failure<never, never>>).cause))
          .toBe(true)
        expect(yield* pid).toEqual([before])
      }), { maxConnections: 1 }))

  it.live("rolls an interrupted transaction back, and releases its locks", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id int PRIMARY KEY)`
        const fiber = yield* openTransaction(
          sql,
          Effect.andThen(sql`INSERT INTO t VALUES (1)`, sql`SELECT pg_advisory_xact_lock(1)`)
        )
        yield* Fiber.interrupt(fiber)
        expect(yield* sql`SELECT id FROM t`).toEqual([])
        expect(yield* sql`SELECT pg_try_advisory_lock(1) AS free`).toEqual([{ free: true }])
      })))

  it.live("survives the end of a reserved connection", () =>
    on(postgres(), (sql) =>
      Effect.scoped(Effect.gen(function*() {
        const connection = yield* sql.reserve
        const [row] = yield* connection.executeValues("SELECT pg_backend_pid()", [])
        yield* sql`SELECT pg_terminate_backend(${row![0]})`
        expect(yield* reasonOf(connection.execute("SELECT 1", [], undefined))).toBe("ConnectionError")
        expect(yield* sql`SELECT 1 AS fine`).toEqual([{ fine: 1 }])
      }))))

  it.live("closes all connections with the layer", () =>
    on(postgres(), (other, url) =>
      Effect.gen(function*() {
        const count = other<
          { n: number }
        >`SELECT count(*) AS n FROM pg_stat_activity WHERE application_name = 'leaving'`
        yield* Effect.provide(
          Effect.flatMap(PgClient.PgClient, (sql) =>
            Effect.scoped(Effect.gen(function*() {
              yield* sql.listen("a", () => {}, () => {})
              yield* Effect.scoped(Effect.forEach([1, 2, 3], () => sql.reserve))
              expect(yield* count).toEqual([{ n: 4 }])
            }))),
          PgClient.layer({ url, applicationName: "leaving" })
        )
        yield* until(other, "NOT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'leaving')")
        expect(yield* count).toEqual([{ n: 0 }])
      })))

  it.live("closes the layer after 5 seconds where a connection is still in use", () =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => postgres().createDatabase())
      const reserved = yield* Deferred.make<void>()
      const use = (sql: PgClient.Client) =>
        Effect.scoped(Effect.andThen(sql.reserve, Effect.andThen(Deferred.succeed(reserved, undefined), Effect.never)))
      const [elapsed, fiber] = yield* Effect.timed(Effect.provide(
        Effect.flatMap(PgClient.PgClient, (sql) => Effect.tap(Effect.forkDetach(use(sql)), Deferred.await(reserved))),
        PgClient.layer({ url })
      ))
      expect(Duration.toMillis(elapsed)).toBeGreaterThan(4900)
      yield* Fiber.interrupt(fiber)
    }))

  it.live("fails open transactions after an immediate restart of the server, and runs the next query", () =>
    on(postgres(), (sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id int PRIMARY KEY)`
        yield* Effect.forEach(Array.from({ length: 8 }), () => sql`SELECT pg_sleep(0.01)`, { concurrency: 8 })
        const exit = yield* Effect.exit(sql.withTransaction(Effect.gen(function*() {
          yield* sql`INSERT INTO t VALUES (1)`
          yield* Effect.promise(() => postgres().restartImmediate())
          yield* sql`INSERT INTO t VALUES (2)`
        })))
        expect(Exit.isFailure(exit)).toBe(true)
        expect(yield* sql`SELECT id FROM t`).toEqual([])
      })))

  it.live("fails a transaction whose connection is lost with that error only", () =>
    on(postgres(), (sql, url) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (id int PRIMARY KEY)`
        const lose = Effect.flatMap(
          sql<{ pid: number }>`SELECT pg_backend_pid() AS pid`,
          ([row]) =>
            // On another connection, outside the transaction.
            Effect.provide(
              Effect.flatMap(PgClient.PgClient, (other) => other`SELECT pg_terminate_backend(${row!.pid})`),
              PgClient.layer({ url })
            )
        )
        const insert = sql`INSERT INTO t VALUES (1)`
        const within = [
          Effect.andThen(lose, insert),
          sql.withTransaction(Effect.andThen(lose, insert)),
          // The savepoint of a succeeded part is not released; the transaction fails at its commit.
          sql.withTransaction(Effect.andThen(insert, lose))
        ]
        for (const effect of within) {
          const exit = yield* Effect.exit(sql.withTransaction(effect))
          const reasons = Exit.isFailure(exit) ? exit.cause.reasons : []
          expect(reasons.map((reason) => Cause.isFailReason(reason) && reason.error.reason._tag)).toEqual([
            "ConnectionError"
          ])
        }
        expect(yield* sql`SELECT id FROM t`).toEqual([])
      })))
})

describePostgres("PgClient.listen", (postgres) => {
  const listen = (sql: PgClient.Client, channel: string) =>
    Effect.gen(function*() {
      const received = yield* Queue.unbounded<string>()
      yield* sql.listen(channel, (payload) => void Queue.offerUnsafe(received, payload), () => {
        Queue.offerUnsafe(received, "(reconnected)")
      })
      return received
    })
  const notify = (sql: PgClient.Client, channel: string, payload: string) =>
    sql`SELECT pg_notify(${channel}, ${payload})`

  it.live("receives notifications in order after their commit, from the moment that it returned", () =>
    on(postgres(), (sql) =>
      Effect.scoped(Effect.gen(function*() {
        const received = yield* listen(sql, "one \"quoted\" Channel")
        yield* notify(sql, "another", "x")
        yield* Effect.ignore(sql.withTransaction(
          Effect.andThen(notify(sql, "one \"quoted\" Channel", "taken back"), Effect.fail("no"))
        ))
        yield* sql.withTransaction(notify(sql, "one \"quoted\" Channel", "a"))
        yield* notify(sql, "one \"quoted\" Channel", "")
        expect([yield* Queue.take(received), yield* Queue.take(received)]).toEqual(["a", ""])
        expect(yield* Queue.size(received)).toBe(0)
      }))))

  it.live("shares one connection for all channels, and stops listening to a channel without listeners", () =>
    on(postgres(), (sql) =>
      Effect.scoped(Effect.gen(function*() {
        const count =
          sql`SELECT count(*) FROM pg_stat_activity WHERE query LIKE ANY (ARRAY['LISTEN%', 'UNLISTEN%'])`.values
        const a = yield* listen(sql, "a")
        const twice = yield* listen(sql, "a")
        yield* Effect.scoped(listen(sql, "b"))
        expect(yield* count).toEqual([[1]])
        yield* notify(sql, "b", "nobody")
        yield* notify(sql, "a", "all")
        expect([yield* Queue.take(a), yield* Queue.take(twice)]).toEqual(["all", "all"])
      }))))

  it.live("listens again after a loss, and calls onReconnected of every listener", () =>
    on(postgres(), (sql) =>
      Effect.scoped(Effect.gen(function*() {
        const a = yield* listen(sql, "a")
        const b = yield* listen(sql, "b")
        yield* Effect.promise(() => postgres().restartImmediate())
        expect([yield* Queue.take(a), yield* Queue.take(b)]).toEqual(["(reconnected)", "(reconnected)"])
        const c = yield* listen(sql, "c")
        yield* Effect.forEach(["a", "b", "c"], (channel) => notify(sql, channel, "again"))
        expect(yield* Effect.all([Queue.take(a), Queue.take(b), Queue.take(c)])).toEqual(["again", "again", "again"])
      }))))

  it.live("listens to a channel added while the server is away, when it is back", () =>
    on(postgres(), (sql) =>
      Effect.scoped(Effect.gen(function*() {
        const a = yield* listen(sql, "a")
        yield* Effect.promise(() => postgres().kill())
        const fiber = yield* Effect.forkChild(listen(sql, "late"))
        yield* Effect.promise(() => postgres().start())
        expect(yield* Queue.take(a)).toBe("(reconnected)")
        const late = yield* Fiber.join(fiber)
        yield* notify(sql, "late", "here")
        expect(yield* Stream.runHead(Stream.filter(Stream.fromQueue(late), (payload) => payload === "here")))
          .toMatchObject({ value: "here" })
      }))))

  it.live("listens on another connection where a stopped server does not answer", () =>
    on(postgres(), (sql) =>
      Effect.scoped(Effect.gen(function*() {
        const received = yield* Queue.make<string>()
        const ignore = () => {}
        yield* sql.listen("first", ignore, ignore)
        const [row] = yield* sql<{ readonly pid: number }>`
          SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%' AND datname = current_database()`
        yield* stopped(row!.pid, sql.listen("second", (text) => Queue.offerUnsafe(received, text), ignore))
        yield* sql`SELECT pg_notify('second', 'hello')`
        expect(yield* Queue.take(received)).toBe("hello")
      })), { connectTimeout: 3000 }))

  it.live("closes the layer where the server of the listening connection has stopped", () =>
    on(postgres(), (other, url) =>
      Effect.gen(function*() {
        const scope = yield* Scope.make()
        const client = Context.get(yield* Layer.buildWithScope(PgClient.layer({ url }), scope), PgClient.PgClient)
        const ignore = () => {}
        yield* Scope.provide(client.listen("orders", ignore, ignore), yield* Scope.make())
        const [row] = yield* other<{ readonly pid: number }>`
          SELECT pid FROM pg_stat_activity WHERE query = 'LISTEN "orders"' AND datname = current_database()`
        yield* stopped(row!.pid, Scope.close(scope, Exit.void))
        yield* until(other, `NOT EXISTS (SELECT FROM pg_stat_activity WHERE pid = ${row!.pid})`)
      })))

  it.live("connects again until the server can be reached, with a connectTimeout of Infinity", () =>
    on(postgres(), (_, url) =>
      Effect.scoped(Effect.gen(function*() {
        yield* Effect.promise(() => postgres().kill())
        const failed: Array<unknown> = []
        const layer = PgClient.layerListening({ url: Redacted.make(url), connectTimeout: "Infinity" })
        const building = yield* Effect.forkScoped(
          Effect.tapError(Layer.build(layer), (error) => Effect.sync(() => void failed.push(error)))
        )
        yield* Effect.promise(() => postgres().start())
        const sql = Context.get(yield* Fiber.join(building), PgClient.PgClient)
        expect(yield* sql`SELECT 1 AS one`).toEqual([{ one: 1 }])
        expect(failed).toEqual([])
      }))))

  it.live("fails for the first listener where the server cannot be reached", () =>
    on(postgres(), (sql) =>
      Effect.scoped(Effect.gen(function*() {
        yield* Effect.promise(() => postgres().kill())
        expect(yield* reasonOf(Effect.scoped(listen(sql, "a")))).toBe("ConnectionError")
        yield* Effect.promise(() => postgres().start())
        const received = yield* listen(sql, "a")
        yield* notify(sql, "a", "here")
        expect(yield* Queue.take(received)).toBe("here")
      }))))
})
