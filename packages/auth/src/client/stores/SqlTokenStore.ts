/**
 * A token store in a database, for programs on several machines: a web application that signs its users in, or jobs that
 * share a sign-in. It uses Effect's `SqlClient` on PostgreSQL or SQLite and creates its tables (`skein_tokens`,
 * `skein_token_locks`, `skein_token_versions`) when the layer is built.
 *
 * **The lock** of a key is a row with a lease, which its holder renews. It needs no connection while it is held.
 *
 * - A process that dies frees its locks when their lease ends, after `leaseTimeout`.
 * - A process that is stopped for longer than that loses its locks. When it wakes up, its effect is interrupted, and
 *   each of its writes is refused with the reason `LockLost`, so that it cannot replace a newer token. If it had
 *   sent a refresh token before, the next holder sends it again, and a server that detects reuse ends the sign-in.
 * - It works through poolers that give each transaction another connection (PgBouncer in transaction mode), with the
 *   options of `PgClient` that its gotchas name.
 *
 * **Gotchas**
 *
 * - Values are written outside of the caller's transaction, which could be rolled back. On SQLite, which has one
 *   connection, a use in a transaction of the same client fails.
 * - Tokens are not encrypted: use `EncryptedTokenStore`, so that a copy of the database contains no usable token.
 * - On SQLite a token survives a power failure only with `synchronous: "full"`.
 * - Sign-ins that were begun and never finished stay: delete rows of `skein_tokens` by their `updated_at` (milliseconds
 *   of Unix time), if no other row is that old.
 *
 * @example
 * const Store = SqlTokenStore.layer().pipe(Layer.provide(PgClient.layer({ url: process.env.DATABASE_URL })))
 */
import * as Settings from "@skein/runtime/Options"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as SqlClient from "effect/sql/SqlClient"
import { checkSize, decodeValue, encodeValue, nameOf } from "./values.ts"
import { deleteAbandoned, fenced, makeLease } from "./leases.ts"
import { makeTokenLocks } from "./tokenLocks.ts"
import { makeTokenDatabase, migrate } from "./tokenTables.ts"
import * as TokenStore from "./TokenStore.ts"
import type { TokenStoreError } from "./TokenStoreError.ts"

/** The bounds of the store. */
export interface Options extends TokenStore.Options {
  /**
   * The time after which the lock of a process that died is free: 15 seconds by default. The holder renews it three
   * times as often. A process that does not run for that time loses its locks (`LockLost`): raise it for processes that
   * are suspended for longer. It must be lower than `lockTimeout`.
   */
  readonly leaseTimeout?: Duration.Input | undefined
}

/**
 * Makes a store, and creates or migrates its tables.
 *
 * @example
 * const store = yield* SqlTokenStore.make({ leaseTimeout: "30 seconds", lockTimeout: "1 minute" })
 */
export const make = (
  options: Options = {}
): Effect.Effect<TokenStore.TokenStore["Service"], TokenStoreError, SqlClient.SqlClient> =>
  Effect.gen(function*() {
    const { leaseTimeout } = Settings.resolve<Pick<Options, "leaseTimeout">>(options, {}, {
      leaseTimeout: "15 seconds"
    })
    const database = yield* makeTokenDatabase(yield* SqlClient.SqlClient)
    yield* database.outside(Effect.andThen(migrate(database), deleteAbandoned(database)))
    const { now, outside, run } = database
    const withLease = makeTokenLocks(options, (name) => makeLease(database, leaseTimeout, name))
    return TokenStore.TokenStore.of({
      get: (key) =>
        Effect.gen(function*() {
          const name = yield* nameOf(key)
          const [row] = yield* outside(run("SELECT value FROM skein_tokens WHERE name = ?", name))
          return yield* decodeValue(
            row === undefined ? undefined : String(row["value"]),
            `the row "${name}" of skein_tokens is damaged, or another program wrote it; delete it, and sign in again`
          )
        }),
      set: (key, value) =>
        Effect.gen(function*() {
          yield* checkSize(value)
          const name = yield* nameOf(key)
          const write = run(
            `INSERT INTO skein_tokens (name, value, updated_at) VALUES (?, ?, ${now})
            ON CONFLICT (name) DO UPDATE SET value = excluded.value, updated_at = excluded.updated_at`,
            name,
            encodeValue(Redacted.value(value))
          )
          yield* Effect.uninterruptible(fenced(database, write))
        }),
      remove: (key) =>
        Effect.flatMap(nameOf(key), (name) =>
          Effect.asVoid(
            Effect.uninterruptible(fenced(database, run("DELETE FROM skein_tokens WHERE name = ?", name)))
          )),
      withLock: (key, effect, options) => Effect.flatMap(nameOf(key), (name) => withLease(name, effect, options))
    })
  })

/**
 * Provides a store in the database of an `SqlClient`.
 *
 * @example
 * const Store = SqlTokenStore.layer().pipe(Layer.provide(SqliteClient.layer({ filename: "host.db" })))
 */
export const layer = (
  options: Options = {}
): Layer.Layer<TokenStore.TokenStore, TokenStoreError, SqlClient.SqlClient> =>
  Layer.effect(TokenStore.TokenStore, make(options))
