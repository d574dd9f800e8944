/**
 * A store of Effect's `RateLimiter` in a PostgreSQL database, for a limit that several processes share. It creates its
 * table, `skein_rate_limits`, when the layer is built. Use it with `RateLimit.layerStore` of `@skein/server`.
 *
 * Each consumption is one statement by the clock of the database, so that a limit holds exactly, whatever the number of
 * processes. Keys are stored as digests. Rows are deleted when their key has its full limit again: one process deletes at
 * most 1,000 of them in a statement, and once a minute unless more are left. The table is `UNLOGGED`: when the database
 * crashes, it is empty, and all counts begin again.
 *
 * Adaptive limits, which learn from the answers of another server, stay inactive.
 *
 * @example
 * const limit = RateLimit.layerStore({ limit: 10, interval: "1 minute" }).pipe(
 *   Layer.provide(RateLimiter.layer),
 *   Layer.provide(PostgresRateLimiterStore.layer),
 *   Layer.provide(PgClient.layer({ url: process.env.DATABASE_URL }))
 * )
 */
import * as Clock from "effect/Clock"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as RateLimiter from "effect/persistence/RateLimiter"
import * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { digestOf } from "./internal/node/backend.ts"

/** How often one of the processes deletes expired rows, in milliseconds, and how many in one statement. */
const sweepInterval = 60_000
const maxExpired = 1_000

const failed = (cause: SqlError): RateLimiter.RateLimiterError =>
  new RateLimiter.RateLimiterError({
    reason: new RateLimiter.RateLimitStoreError({ message: "The database of the rate limit failed", cause })
  })

/** The row of the process that deletes expired rows now. No digest is equal to it. */
const sweeper = "sweep"

/** A fixed window and a token bucket of one key have different rows, as their numbers have different meanings. */
const idOf = (algorithm: string, key: string): string => digestOf(`${algorithm} ${key}`)

const createTable = (sql: SqlClient.SqlClient): Effect.Effect<void, SqlError> =>
  sql.withTransaction(Effect.gen(function*() {
    // Of two processes that start at once, one would fail: IF NOT EXISTS does not wait for the other.
    yield* sql`SELECT pg_advisory_xact_lock(7061826311412)`
    // Without an index on the time a row is updated in its page. There is a row for each key that is not at its full limit.
    yield* sql`CREATE UNLOGGED TABLE IF NOT EXISTS skein_rate_limits (id TEXT COLLATE "C" PRIMARY KEY,
      tokens DOUBLE PRECISION NOT NULL, at DOUBLE PRECISION NOT NULL, result DOUBLE PRECISION NOT NULL,
      elapsed DOUBLE PRECISION NOT NULL, expires_at DOUBLE PRECISION NOT NULL) WITH (fillfactor = 70)`
  }))

interface Row {
  readonly result: number
  readonly elapsed: number
}

/**
 * Makes a store, and creates its table. Fails if the database cannot be used.
 *
 * @example
 * const store = yield* PostgresRateLimiterStore.make
 */
export const make: Effect.Effect<
  RateLimiter.RateLimiterStore["Service"],
  RateLimiter.RateLimiterError,
  SqlClient.SqlClient
> = /* @__PURE__ */ Effect.gen(function*() {
  const sql = (yield* SqlClient.SqlClient).withoutTransforms()
  yield* Effect.mapError(createTable(sql), failed)

  // The rows are searched without an index. Many processes would read the whole table many times a minute.
  const claim = sql`INSERT INTO skein_rate_limits AS r (id, tokens, at, result, elapsed, expires_at)
      SELECT ${sweeper}, 0, 0, 0, 0, extract(epoch FROM clock_timestamp()) * 1000 + ${sweepInterval}
      ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at
      WHERE r.expires_at < extract(epoch FROM clock_timestamp()) * 1000 RETURNING 1`
  const remove = sql`DELETE FROM skein_rate_limits WHERE ctid = ANY(ARRAY(SELECT ctid FROM skein_rate_limits
      WHERE expires_at < extract(epoch FROM clock_timestamp()) * 1000 AND id <> ${sweeper} LIMIT ${maxExpired}
      FOR UPDATE SKIP LOCKED)) RETURNING 1`
  let nextSweep = 0
  let hasMore = false
  const sweep = Effect.flatMap(Clock.currentTimeMillis, (now) => {
    if (now < nextSweep && !hasMore) return Effect.void
    nextSweep = now + sweepInterval
    const claimed = hasMore ? Effect.succeed(true) : Effect.map(claim, ({ length }) => length === 1)
    hasMore = false
    return Effect.flatMap(claimed, (isClaimed) => isClaimed ? remove : Effect.succeed([])).pipe(
      Effect.map(({ length }) => void (hasMore = length === maxExpired)),
      Effect.catch((error) => Effect.logWarning("failed to delete the rate limits that have expired", error))
    )
  })

  const consume = (statement: Effect.Effect<ReadonlyArray<Row>, SqlError>) =>
    Effect.andThen(
      sweep,
      Effect.mapBoth(statement, {
        onFailure: failed,
        onSuccess: ([row]) => [row!.result, row!.elapsed] as const
      })
    )

  return RateLimiter.RateLimiterStore.of({
    // `tokens` were taken in the window, which ends at `at`. `result` also counts those of a refused request.
    fixedWindow: ({ key, limit, refillRate, tokens }) => {
      const refill = Duration.toMillis(refillRate)
      const most = limit === undefined || limit === 0 ? Infinity : limit
      return consume(sql<Row>`
        INSERT INTO skein_rate_limits AS r (id, tokens, at, result, elapsed, expires_at)
        SELECT ${idOf("window", key)}, taken, now + taken * refill, wanted, taken * refill, now + taken * refill
        FROM (SELECT now, refill, wanted, CASE WHEN wanted > most THEN 0 ELSE wanted END AS taken
          FROM (SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 AS now,
            ${refill}::double precision AS refill, ${tokens}::double precision AS wanted,
            ${String(most)}::double precision AS most) given) first
        ON CONFLICT (id) DO UPDATE SET (tokens, at, result, elapsed, expires_at) = (
          SELECT kept, ends, wanted, ends - now, ends
          FROM (SELECT now, wanted, CASE WHEN wanted > most THEN used ELSE wanted END AS kept,
              CASE WHEN wanted > most THEN until ELSE until + more * refill END AS ends
            FROM (SELECT now, refill, most, more, used, until, used + more AS wanted
              FROM (SELECT now, refill, most, more, CASE WHEN r.at > now THEN r.tokens ELSE 0 END AS used,
                  CASE WHEN r.at > now THEN r.at ELSE now END AS until
                FROM (SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 AS now,
                  ${refill}::double precision AS refill, ${tokens}::double precision AS more,
                  ${String(most)}::double precision AS most) given) state) asked) next)
        RETURNING result, elapsed`)
    },
    // `tokens` are left in the bucket, to which one was last added at `at`. `result` is negative for a refused request.
    tokenBucket: ({ allowOverflow, key, limit, refillRate, tokens }) => {
      const refill = Duration.toMillis(refillRate)
      return consume(sql<Row>`
        INSERT INTO skein_rate_limits AS r (id, tokens, at, result, elapsed, expires_at)
        SELECT ${idOf("bucket", key)}, kept, now, rest, 0, now + (most - kept) * refill
        FROM (SELECT now, refill, most, rest, CASE WHEN rest >= 0 OR overflows THEN rest ELSE most END AS kept
          FROM (SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 AS now,
            ${refill}::double precision AS refill, ${limit}::double precision AS most,
            ${limit - tokens}::double precision AS rest, ${allowOverflow}::boolean AS overflows) given) first
        ON CONFLICT (id) DO UPDATE SET (tokens, at, result, elapsed, expires_at) = (
          SELECT kept, since, rest, GREATEST(0, now - since), since + (most - kept) * refill
          FROM (SELECT now, refill, most, since, rest, CASE WHEN rest >= 0 OR overflows THEN rest ELSE filled END AS kept
            FROM (SELECT now, refill, most, overflows, filled, filled - wanted AS rest,
                CASE WHEN filled >= most THEN now ELSE r.at + added * refill END AS since
              FROM (SELECT now, refill, most, overflows, wanted, added, LEAST(most, r.tokens + added) AS filled
                FROM (SELECT now, refill, most, overflows, wanted, GREATEST(0, floor((now - r.at) / refill)) AS added
                  FROM (SELECT extract(epoch FROM clock_timestamp())::double precision * 1000 AS now,
                    ${refill}::double precision AS refill, ${limit}::double precision AS most,
                    ${tokens}::double precision AS wanted, ${allowOverflow}::boolean AS overflows) given) time) bucket
              ) asked) next)
        RETURNING result, elapsed`)
    },
    adaptiveConsume: () => Effect.succeed({ delay: Duration.zero, epoch: 0, phase: "inactive" }),
    adaptiveFeedback: () => Effect.void
  })
})

/**
 * Provides a store in the database of an `SqlClient`.
 *
 * @example
 * const store = PostgresRateLimiterStore.layer.pipe(Layer.provide(PgClient.layer({ url: process.env.DATABASE_URL })))
 */
export const layer: Layer.Layer<
  RateLimiter.RateLimiterStore,
  RateLimiter.RateLimiterError,
  SqlClient.SqlClient
> = /* @__PURE__ */ Layer.effect(RateLimiter.RateLimiterStore, make)
