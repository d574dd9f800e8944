/** Rate limits on PostgreSQL: compared with Effect's store in memory, and shared by processes. */
import { expect, it } from "@effect/vitest"
import * as PostgresRateLimiterStore from "@skein/fleet/PostgresRateLimiterStore"
import * as PgClient from "@skein/sql/PgClient"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as SqlClient from "effect/sql/SqlClient"
import { describePostgres } from "../../sql/test/describePostgres.ts"

type Store = RateLimiter.RateLimiterStore["Service"]

describePostgres("PostgresRateLimiterStore", (postgres) => {
  /** Processes with one new database. All of them create the table at once. */
  const open = (count = 3) =>
    Effect.gen(function*() {
      const url = yield* Effect.promise(() => postgres().createDatabase())
      const clients = yield* Effect.forEach(
        Array.from({ length: count }),
        () => Effect.map(Layer.build(PgClient.layer({ url })), (context) => Context.get(context, SqlClient.SqlClient))
      )
      const stores = yield* Effect.forEach(
        clients,
        (sql) => Effect.provideService(PostgresRateLimiterStore.make, SqlClient.SqlClient, sql),
        { concurrency: "unbounded" }
      )
      return { sql: clients[0]!, stores }
    })

  const limiterOf = (store: Store) => Effect.provideService(RateLimiter.make, RateLimiter.RateLimiterStore, store)

  for (const algorithm of ["fixed-window", "token-bucket"] as const) {
    it.live(`${algorithm}: allows exactly as many requests as the limit, among three processes`, () =>
      Effect.gen(function*() {
        const { stores } = yield* open()
        const limiters = yield* Effect.forEach(stores, limiterOf)
        const attempts = Array.from({ length: 300 }, (_, n) => limiters[n % 3]!)
        const results = yield* Effect.forEach(
          attempts,
          (limiter) =>
            Effect.result(limiter.consume({ algorithm, key: "ada", limit: 100, window: "1 hour", onExceeded: "fail" })),
          { concurrency: 30 }
        )
        const allowed = results.flatMap((result) => result._tag === "Success" ? [result.success.remaining] : [])
        expect(allowed.toSorted((a, b) => b - a)).toEqual(Array.from({ length: 100 }, (_, n) => 99 - n))
        const [other] = limiters
        expect((yield* other!.consume({ algorithm, key: "bob", limit: 100, window: "1 hour" })).remaining).toBe(99)
      }))

    it.live(`${algorithm}: delays each request beyond the limit by its place`, () =>
      Effect.gen(function*() {
        const { stores } = yield* open()
        const limiters = yield* Effect.forEach(stores, limiterOf)
        const results = yield* Effect.forEach(
          Array.from({ length: 30 }, (_, n) => limiters[n % 3]!),
          (limiter) =>
            limiter.consume({ algorithm, key: "ada", limit: 10, window: "100 seconds", onExceeded: "delay" }),
          { concurrency: 10 }
        )
        const delays = results.map(({ delay }) => Math.round(Duration.toMillis(delay) / 10_000)).toSorted((a, b) =>
          a - b
        )
        expect(delays.slice(0, 10)).toEqual(Array(10).fill(0))
        const expected = algorithm === "fixed-window"
          ? [...Array(10).fill(10), ...Array(10).fill(20)]
          : Array.from({ length: 20 }, (_, n) => n + 1)
        expect(delays.slice(10)).toEqual(expected)
      }))
  }

  it.live("counts as Effect's store in memory does, for random requests", () =>
    Effect.gen(function*() {
      const { stores, sql } = yield* open(1)
      const [store] = stores
      const context = yield* Layer.build(RateLimiter.layerStoreMemory)
      const memory = Context.get(context, RateLimiter.RateLimiterStore)
      // The database has its own clock: times are moved there, and set here.
      let now = 1_000_000_000
      const at = <A, E>(effect: Effect.Effect<A, E>) =>
        Effect.provideService(effect, Clock.Clock, {
          ...({} as Clock.Clock),
          currentTimeMillisUnsafe: () => now,
          currentTimeMillis: Effect.sync(() => now)
        })
      const pass = (milliseconds: number) =>
        Effect.suspend(() => {
          now += milliseconds
          return sql`UPDATE skein_rate_limits SET at = at - ${milliseconds}, expires_at = expires_at - ${milliseconds}`
        })
      let seed = 3
      const random = (below: number) => {
        seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31
        return Math.floor(seed / 2 ** 31 * below)
      }
      for (let round = 0; round < 300; round++) {
        const key = `key ${random(3)}`
        const tokens = 1 + random(3)
        const refillRate = Duration.seconds(100)
        if (random(3) === 0) yield* pass((1 + random(600)) * 1_000)
        const [count, ttl] = yield* store!.fixedWindow({ key, tokens, refillRate, limit: 6 })
        const [expectedCount, expectedTtl] = yield* at(memory.fixedWindow({ key, tokens, refillRate, limit: 6 }))
        expect(count).toBe(expectedCount)
        expect(Math.abs(ttl - expectedTtl)).toBeLessThan(30_000)
        const allowOverflow = key === "key 0"
        const options = { key, tokens, refillRate, limit: 5, allowOverflow }
        const [left] = yield* store!.tokenBucket(options)
        const [expectedLeft] = yield* at(memory.tokenBucket(options))
        expect(Math.abs(left - expectedLeft)).toBeLessThanOrEqual(1)
      }
    }))

  it.live("has no keys in the table, and deletes the rows of keys that have their full limit", () =>
    Effect.gen(function*() {
      const { sql, stores } = yield* open()
      for (const [n, store] of stores.entries()) {
        yield* store.tokenBucket({
          key: `principal ${n}`,
          tokens: 1,
          limit: 10,
          refillRate: Duration.hours(1),
          allowOverflow: false
        })
      }
      yield* sql`INSERT INTO skein_rate_limits SELECT 'old ' || n, 0, 0, 0, 0, 0 FROM generate_series(1, 2500) n`
      const rows = Effect.map(
        sql<{ readonly id: string }>`SELECT id FROM skein_rate_limits WHERE id <> 'sweep'`,
        (rows) => rows.map(({ id }) => id)
      )
      const start = Effect.provideService(PostgresRateLimiterStore.make, SqlClient.SqlClient, sql)
      const consume = (store: Store) =>
        store.fixedWindow({ key: "window", tokens: 1, limit: 10, refillRate: Duration.hours(1) })
      // Another process has looked for them within this minute.
      const second = yield* start
      yield* consume(second)
      expect((yield* rows).length).toBeGreaterThan(2_500)
      yield* sql`UPDATE skein_rate_limits SET expires_at = 0 WHERE id = 'sweep'`
      const third = yield* start
      for (let n = 0; n < 3; n++) yield* consume(third)
      yield* consume(yield* start)
      const left = yield* Effect.orDie(rows)
      expect(left).toHaveLength(4)
      expect(left.join()).not.toContain("principal")
    }))
})
