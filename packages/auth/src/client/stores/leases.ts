/**
 * The locks of `SqlTokenStore`: a row with a holder and the end of its lease, which the holder renews. No connection is
 * held, so that a lock may last for as long as a person signs in, and connections may be pooled by transaction
 * (PgBouncer). A holder that dies is replaced when its lease ends.
 *
 * A process that was stopped for longer may wake up and go on while another holds the lock. Each write in a lock
 * therefore checks in its own transaction that the lock is still held, with the row locked (fencing).
 */
import * as Context from "effect/Context"
import * as Backoff from "@skein/runtime/Backoff"
import * as Effect from "effect/Effect"
import type { TokenStoreError } from "./TokenStoreError.ts"
import { lockLost } from "./tokenLocks.ts"
import type { SharedLock } from "../../shared/localLocks.ts"
import type { TokenDatabase } from "./tokenTables.ts"

interface Lease {
  readonly database: TokenDatabase
  readonly name: string
  /** Different at each acquisition. */
  readonly holder: string
}

/** The leases that the running effect holds. */
const HeldLeases = /* @__PURE__ */ Context.Reference<ReadonlyArray<Lease>>("@skein/auth/internal/HeldLeases", {
  defaultValue: () => []
})

/** Runs a write; in a lock, in a transaction that fails with `LockLost` unless the lock is still held. */
export const fenced = <A>(
  database: TokenDatabase,
  write: Effect.Effect<A, TokenStoreError>
): Effect.Effect<A, TokenStoreError> =>
  database.outside(Effect.withFiber((fiber) => {
    const leases = fiber.getRef(HeldLeases).filter((lease) => lease.database === database)
    if (leases.length === 0) return write
    const held = leases.map(() => "(name = ? AND holder = ?)").join(" OR ")
    const select = `SELECT name FROM skein_token_locks WHERE ${held}${database.isPostgres ? " FOR UPDATE" : ""}`
    return database.transaction(Effect.flatMap(
      database.run(select, ...leases.flatMap(({ holder, name }) => [name, holder])),
      (rows) => rows.length === leases.length ? write : Effect.fail(lockLost())
    ))
  }))

/** Deletes the locks that expired a day ago or earlier: their holders died, and their keys were not locked since. */
export const deleteAbandoned = ({ now, run }: TokenDatabase): Effect.Effect<unknown, TokenStoreError> =>
  run(`DELETE FROM skein_token_locks WHERE expires_at < ${now} - 86400000`)

/** The delays between polls for a lock, in milliseconds. */
const polls: Backoff.Backoff = { initialDelay: 25, maxDelay: 600, jitter: "half" }

const pause = (attempt: number): Effect.Effect<void> =>
  Effect.suspend(() => Effect.sleep(Backoff.delay(polls, attempt, Math.random())))

/** The lock of a row. */
export const makeLease = (
  database: TokenDatabase,
  leaseTimeout: number,
  name: string
): SharedLock<TokenStoreError> => {
  const { now, outside, run } = database
  const lease: Lease = { database, name, holder: crypto.randomUUID() }
  const millis = Math.ceil(leaseTimeout)
  const end = `${now} + CAST(? AS BIGINT)`

  const tryAcquire = run(
    `INSERT INTO skein_token_locks (name, holder, expires_at) VALUES (?, ?, ${end})
    ON CONFLICT (name) DO UPDATE SET holder = excluded.holder, expires_at = excluded.expires_at
    WHERE skein_token_locks.expires_at <= ${now}
    RETURNING holder`,
    name,
    lease.holder,
    millis
  )
  const acquire = (attempt: number): Effect.Effect<void, TokenStoreError> =>
    Effect.flatMap(
      tryAcquire,
      (rows) => rows.length > 0 ? Effect.void : Effect.andThen(pause(attempt), acquire(attempt + 1))
    )
  const renew: Effect.Effect<never, TokenStoreError> = Effect.flatMap(
    Effect.andThen(
      Effect.sleep(millis / 3),
      // A database that cannot be reached does not end the lease: no other process can take it over meanwhile.
      Effect.orElseSucceed(
        Effect.map(
          run(
            `UPDATE skein_token_locks SET expires_at = ${end} WHERE name = ? AND holder = ? RETURNING holder`,
            millis,
            name,
            lease.holder
          ),
          (rows) => rows.length > 0
        ),
        () => true
      )
    ),
    (isHeld) => isHeld ? renew : Effect.fail(lockLost())
  )
  const waiting = Effect.suspend(() => acquire(1))
  return {
    acquire: outside(waiting),
    giveWay: pause(6),
    // Also after an interrupted acquisition, which the database may have executed. Once more if the connection is lost, since
    // others would wait for the end of the lease.
    release: Effect.ignore(
      Effect.retry(
        outside(run("DELETE FROM skein_token_locks WHERE name = ? AND holder = ?", name, lease.holder)),
        { times: 1 }
      )
    ),
    hold: (effect) =>
      Effect.raceFirst(
        Effect.flatMap(
          HeldLeases,
          (held) => Effect.provideService(effect, HeldLeases, [...held, lease])
        ),
        outside(renew)
      )
  }
}
