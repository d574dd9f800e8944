/**
 * Stores of tokens and of used proofs in a database, for programs on several machines or in several processes.
 */
import { TokenStoreError } from "@skein/auth/TokenStoreError"
import type { Options as PgOptions } from "@skein/sql/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { PostgresOptions, SqliteOptions } from "../base/database.ts"
import { lazily, opaque } from "../base/definition.ts"
import type { Duration } from "../base/types.ts"
import type { MemoryReplayOptions, ReplayStore } from "./replayStore.ts"
import type { TokenStore, TokenStoreOptions } from "./tokenStore.ts"

/** The bounds of a token store in a database. */
export interface SqlTokenStoreOptions extends TokenStoreOptions {
  /**
   * The time after which the lock of a process that died is free: 15 seconds by default. A process that does not run for that time
   * loses its locks (`LockLost`): raise it for processes that are suspended for longer. It must be lower than `lockTimeout`.
   */
  readonly leaseTimeout?: Duration | undefined
}

type Database = Layer.Layer<never, unknown>

const sqlite = ({ filename, synchronous }: SqliteOptions): Database =>
  lazily(() => import("@skein/sql/SqliteClient"), ({ layer }) => layer({ filename, synchronous })) as Database

const postgres = (options: PostgresOptions): Database =>
  lazily(() => import("@skein/sql/PgClient"), ({ layer }) => layer(options as PgOptions)) as Database

const unavailable = (cause: unknown): TokenStoreError =>
  new TokenStoreError({ message: "the database of the token store cannot be opened", cause })

const tokensIn = (database: Database, options: SqlTokenStoreOptions): TokenStore => {
  const store = lazily(() => import("@skein/auth/SqlTokenStore"), ({ layer }) => layer(options))
  const opened = Layer.catch(database, (cause) => Layer.effectDiscard(Effect.fail(unavailable(cause))))
  return opaque(Layer.provide(store, opened))
}

const proofsIn = (database: Database, options: MemoryReplayOptions): ReplayStore => {
  const store = lazily(() => import("@skein/auth/SqlReplayStore"), ({ layer }) => layer(options))
  return opaque(Layer.provide(store, database))
}

/**
 * A token store in a file of SQLite, for the processes of one computer. It creates its tables. Tokens are not encrypted: see
 * `encryptedTokenStore`.
 *
 * @example
 * const store = encryptedTokenStore(sqliteTokenStore({ filename: "tokens.db" }), { variable: "TOKEN_KEYS" })
 */
export const sqliteTokenStore = (options: SqliteOptions & SqlTokenStoreOptions): TokenStore =>
  tokensIn(sqlite(options), options)

/**
 * A token store in PostgreSQL, for programs on several machines: a web application that signs its users in, or jobs that share a
 * sign-in. It creates its tables. Tokens are not encrypted: see `encryptedTokenStore`.
 *
 * @example
 * const store = encryptedTokenStore(postgresTokenStore({ url: process.env.DATABASE_URL }), { variable: "TOKEN_KEYS" })
 */
export const postgresTokenStore = (options: PostgresOptions & SqlTokenStoreOptions): TokenStore =>
  tokensIn(postgres(options), options)

/**
 * A store of used proofs in a file of SQLite, for the processes of one computer that serve one resource. It creates its table.
 *
 * @example
 * const protection = protect({ resource, verify, dpop: "accept", replayStore: sqliteReplayStore({ filename: "replays.db" }) })
 */
export const sqliteReplayStore = (options: SqliteOptions & MemoryReplayOptions): ReplayStore =>
  proofsIn(sqlite(options), options)

/**
 * A store of used proofs in PostgreSQL, for the machines that serve one resource. It creates its table.
 *
 * @example
 * const replays = postgresReplayStore({ url: process.env.DATABASE_URL })
 */
export const postgresReplayStore = (options: PostgresOptions & MemoryReplayOptions): ReplayStore =>
  proofsIn(postgres(options), options)
