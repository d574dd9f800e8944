/** `PgClient` through PgBouncer, in both of its modes that matter. */
import { describe, expect, it } from "@effect/vitest"
import * as PgClient from "@skein/sql/PgClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Queue from "effect/Queue"
import { afterAll, beforeAll } from "vitest"
import { reasonOf } from "./kit.ts"
import { noPgBouncer, type PgBouncer, startPgBouncer } from "./startPgBouncer.ts"
import { type Postgres, required, startPostgres, unavailable } from "./postgres.ts"

const reason = unavailable ?? noPgBouncer
const skipped = reason !== undefined && !required

describe.skipIf(skipped)(skipped ? `PgClient through PgBouncer (${reason})` : "PgClient through PgBouncer", () => {
  let postgres: Postgres
  let session: PgBouncer
  let transaction: PgBouncer
  let roundRobin: PgBouncer
  beforeAll(async () => {
    if (reason !== undefined) throw new Error(reason)
    postgres = await startPostgres()
    session = await startPgBouncer(postgres.port, { poolMode: "session" })
    transaction = await startPgBouncer(postgres.port, { poolMode: "transaction" })
    roundRobin = await startPgBouncer(postgres.port, { poolMode: "transaction", roundRobin: true })
  }, 60_000)
  afterAll(async () => {
    await session?.stop()
    await transaction?.stop()
    await roundRobin?.stop()
    await postgres?.stop()
  })

  const on = <A, E>(
    pooler: () => PgBouncer,
    program: (sql: PgClient.Client, url: string) => Effect.Effect<A, E>,
    options: PgClient.Options = {}
  ) =>
    Effect.flatMap(Effect.promise(() => postgres.createDatabase()), (url) =>
      Effect.provide(
        Effect.flatMap(PgClient.PgClient, (sql) => program(sql, url)),
        PgClient.layer({ url: pooler().through(url), ...options })
      ))
  const settings = (sql: PgClient.Client) =>
    sql`SELECT current_setting('statement_timeout') AS a, current_setting('idle_in_transaction_session_timeout') AS b`
  const ignore = () => {}

  it.live("session mode · applies statementTimeout and idleInTransactionTimeout to each connection", () =>
    on(() => session, (sql) =>
      Effect.gen(function*() {
        const seen = yield* Effect.forEach(
          [1, 2, 3],
          () => sql.withTransaction(Effect.tap(settings(sql), sql`SELECT pg_sleep(0.05)`)),
          { concurrency: 3 }
        )
        expect(seen.flat()).toEqual([1, 2, 3].map(() => ({ a: "700ms", b: "800ms" })))
        expect(yield* reasonOf(sql`SELECT pg_sleep(60)`)).toBe("StatementTimeoutError")
      }), { statementTimeout: 700, idleInTransactionTimeout: 800 }))

  it.live("session mode · leaves no setting behind for the next client of the pool", () =>
    Effect.gen(function*() {
      const url = session.through(yield* Effect.promise(() => postgres.createDatabase()))
      const seen = (options: PgClient.Options) =>
        Effect.provide(
          Effect.flatMap(PgClient.PgClient, (sql) => Effect.all([settings(sql), sql`SELECT pg_backend_pid() AS pid`])),
          PgClient.layer({ url, maxConnections: 1, ...options })
        )
      const [, first] = yield* seen({ statementTimeout: 700 })
      const infinite = { statementTimeout: "Infinity", idleInTransactionTimeout: "Infinity" } as const
      expect(yield* seen(infinite)).toEqual([[{ a: "0", b: "0" }], first])
    }))

  it.live("session mode · receives notifications", () =>
    on(() => session, (sql) =>
      Effect.scoped(Effect.gen(function*() {
        const received = yield* Queue.unbounded<string>()
        yield* sql.listen("orders", (payload) => Queue.offerUnsafe(received, payload), ignore)
        yield* sql`SELECT pg_notify('orders', 'tea')`
        expect(yield* Queue.take(received)).toBe("tea")
      }))))

  it.live("session mode · cancels an interrupted statement on the server", () =>
    on(() => session, (sql, url) =>
      Effect.gen(function*() {
        const running = "SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT pg_sleep(600)%'"
        const direct = <A, E>(use: (sql: PgClient.Client) => Effect.Effect<A, E>) =>
          Effect.provide(Effect.flatMap(PgClient.PgClient, use), PgClient.layer({ url }))
        const until = (sql: PgClient.Client, condition: string): Effect.Effect<void, unknown> =>
          Effect.flatMap(
            sql.unsafe<{ readonly yes: boolean }>(`SELECT ${condition} AS yes`),
            ([row]) => row?.yes === true ? Effect.void : until(sql, condition)
          )
        const fiber = yield* Effect.forkChild(sql`SELECT pg_sleep(600)`)
        yield* direct((other) => until(other, `EXISTS (${running})`))
        yield* Fiber.interrupt(fiber)
        yield* direct((other) => until(other, `NOT EXISTS (${running})`))
        expect(yield* sql`SELECT 1 AS fine`).toEqual([{ fine: 1 }])
      })))

  it.live("transaction mode · fails listen with TransactionPoolingError", () =>
    on(() => transaction, (sql) =>
      Effect.gen(function*() {
        const error = yield* Effect.flip(Effect.scoped(sql.listen("orders", ignore, ignore)))
        expect(error.reason._tag).toBe("UnknownError")
        expect(error.reason.cause).toBeInstanceOf(PgClient.TransactionPoolingError)
        expect(error.message).toMatch(/^PostgreSQL: a pooler gives each transaction .* pool_mode = session/)
      })))

  it.live("transaction mode · fails listen after connectTimeout where each statement gets another connection", () =>
    on(() => roundRobin, (sql) =>
      Effect.gen(function*() {
        // Opens several connections to the server, which take turns then.
        yield* Effect.forEach([1, 2, 3, 4, 5], () => sql`SELECT pg_sleep(0.1)`, { concurrency: 5 })
        const [elapsed, error] = yield* Effect.timed(Effect.flip(Effect.scoped(sql.listen("orders", ignore, ignore))))
        expect(error.reason.cause).toBeInstanceOf(PgClient.TransactionPoolingError)
        expect(Duration.toMillis(elapsed)).toBeGreaterThanOrEqual(2000)
      }), { connectTimeout: 2000 }))

  it.live("transaction mode · runs statements and transactions of a client that does not listen", () =>
    on(() => transaction, (sql) =>
      Effect.gen(function*() {
        yield* sql`CREATE TABLE t (n int)`
        yield* Effect.forEach(
          Array.from({ length: 30 }, (_, n) => n),
          (n) => sql.withTransaction(Effect.andThen(sql`INSERT INTO t VALUES (${n})`, sql`SELECT ${n}::int`)),
          { concurrency: 10 }
        )
        expect(yield* sql`SELECT count(*) AS n FROM t`).toEqual([{ n: 30 }])
        expect(yield* settings(sql)).toEqual([{ a: "0", b: "0" }])
      }), { prepare: false, statementTimeout: "Infinity", idleInTransactionTimeout: "Infinity" }))
})
