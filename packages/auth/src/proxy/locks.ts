/** The locks of the stores of a proxy. */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { randomUUID } from "node:crypto"
import type { SharedLock, Waiting } from "../shared/localLocks.ts"
import { ProxyStoreError } from "./store.ts"

/**
 * How long an instance that dies keeps a lock, in milliseconds. It is longer than a request to the upstream, which the
 * lock is held for, so a lock that has expired is of an instance that is gone.
 */
const leaseMillis = 60_000

/**
 * The longest wait for a lock, in milliseconds. It is longer than `leaseMillis`, so that an instance which starts after
 * another one has died gets its lock, also if their clocks differ.
 */
const lockTimeoutMillis = 90_000

/** How often an instance looks whether a lock is free, in milliseconds. One of its fibers does so for each lock. */
const pollMillis = 50

/** The wait for a lock, on Effect's clock. */
export const waiting: Waiting<ProxyStoreError> = {
  lockTimeout: Duration.millis(lockTimeoutMillis),
  timedOut: (lockTimeout) =>
    new ProxyStoreError({
      message: `the lock of the store of the proxy was not obtained within ${Duration.format(lockTimeout)}: ` +
        "another fiber or instance holds it"
    })
}

/** Makes the locks in a database, as rows with a lease. `run` runs a statement outside of a transaction of the caller. */
export const makeSqlLocks = (
  sql: SqlClient.SqlClient,
  run: <A>(effect: Effect.Effect<A, SqlError>) => Effect.Effect<A, ProxyStoreError>
) =>
(name: string): SharedLock<ProxyStoreError> => {
  const holder = randomUUID()
  const tryAcquire = Effect.suspend(() => {
    const now = Date.now()
    return run(sql`INSERT INTO skein_proxy_locks (name, holder, expires_at)
      VALUES (${name}, ${holder}, ${now + leaseMillis}) ON CONFLICT (name) DO UPDATE
      SET holder = excluded.holder, expires_at = excluded.expires_at
      WHERE skein_proxy_locks.expires_at <= ${now} RETURNING holder`)
  })
  const acquire: Effect.Effect<void, ProxyStoreError> = Effect.flatMap(
    tryAcquire,
    (rows) => rows.length > 0 ? Effect.void : Effect.andThen(Effect.sleep(pollMillis), acquire)
  )
  return {
    acquire,
    giveWay: Effect.sleep(2 * pollMillis),
    // Also after an interrupted acquisition, which the database may have executed. If it fails, the lease ends.
    release: Effect.ignore(run(sql`DELETE FROM skein_proxy_locks WHERE name = ${name} AND holder = ${holder}`))
  }
}
