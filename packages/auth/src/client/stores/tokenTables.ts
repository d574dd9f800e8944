/** The tables of `SqlTokenStore`, and its statements in the SQL that PostgreSQL and SQLite have in common. */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as SqlClient from "effect/sql/SqlClient"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import type { TokenStoreError } from "./TokenStoreError.ts"
import { unavailable } from "./values.ts"

type Row = Readonly<Record<string, unknown>>

/** Runs a statement with a `?` for each parameter. */
export type Run = (
  statement: string,
  ...parameters: ReadonlyArray<string | number>
) => Effect.Effect<ReadonlyArray<Row>, TokenStoreError>

/** A database that holds tokens. */
export interface TokenDatabase {
  readonly isPostgres: boolean
  readonly run: Run
  /** The time of the database in milliseconds: the clocks of the machines may differ. */
  readonly now: string
  /** Runs an effect in a transaction. */
  readonly transaction: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | TokenStoreError, R>
  /**
   * Runs an effect outside of the transaction of the caller, whose rollback would undo a token that was saved. SQLite has
   * one connection, which that transaction uses, so there it fails.
   */
  readonly outside: <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E | TokenStoreError, R>
}

// Only the message: the details of an error of PostgreSQL quote the row.
const sqlFailed = ({ message }: SqlError): TokenStoreError =>
  unavailable(`the database of the token store failed: ${message}`)

/** Fails with `StoreUnavailable` for databases other than PostgreSQL and SQLite. */
export const makeTokenDatabase = (client: SqlClient.SqlClient): Effect.Effect<TokenDatabase, TokenStoreError> => {
  const sql = client.withoutTransforms()
  const dialect = sql.onDialectOrElse({
    pg: () => "pg" as const,
    sqlite: () => "sqlite" as const,
    orElse: () => undefined
  })
  if (dialect === undefined) {
    return Effect.fail(unavailable("SqlTokenStore supports PostgreSQL and SQLite, and no other database"))
  }
  const isPostgres = dialect === "pg"
  const { transactionService } = sql
  return Effect.succeed({
    isPostgres,
    now: isPostgres
      ? "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
      : "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)",
    run: (statement, ...parameters) => {
      let number = 0
      const text = isPostgres ? statement.replaceAll("?", () => `$${++number}`) : statement
      // Not traced: the parameters are tokens, and a driver may record them.
      return Effect.mapError(Effect.withTracerEnabled(sql.unsafe<Row>(text, parameters), false), sqlFailed)
    },
    transaction: <A, E, R>(effect: Effect.Effect<A, E, R>) =>
      Effect.mapError(
        sql.withTransaction(effect),
        (error): E | TokenStoreError => isSqlError(error) ? sqlFailed(error) : error
      ),
    outside: <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E | TokenStoreError, R> =>
      Effect.withFiber((fiber): Effect.Effect<A, E | TokenStoreError, R> => {
        if (Context.getOrUndefined(fiber.context, transactionService) === undefined) return effect
        if (isPostgres) {
          return Effect.updateContext(
            effect,
            (context: Context.Context<R>) => Context.omit(transactionService)(context) as Context.Context<R>
          )
        }
        return Effect.fail(
          unavailable(
            "the token store cannot be used in a transaction of its SqlClient: a rollback would undo a token that was saved"
          )
        )
      })
  })
}

type Migration = (database: TokenDatabase) => ReadonlyArray<string>

const createTables: Migration = ({ isPostgres }) => {
  const name = `name ${isPostgres ? `TEXT COLLATE "C"` : "TEXT"} NOT NULL PRIMARY KEY`
  return [
    `CREATE TABLE IF NOT EXISTS skein_tokens (${name}, value TEXT NOT NULL, updated_at BIGINT NOT NULL)`,
    `CREATE TABLE IF NOT EXISTS skein_token_locks (${name}, holder TEXT NOT NULL, expires_at BIGINT NOT NULL)`
  ]
}

/** A published migration never changes: a later one alters the tables. */
const migrations: ReadonlyArray<Migration> = [createTables]

/** The key of a PostgreSQL advisory lock for migrations: "skein tokens", shortened to a number. */
const migrationLock = "SELECT pg_advisory_xact_lock(495790843247)"

const version = ({ isPostgres, run }: TokenDatabase): Effect.Effect<number, TokenStoreError> =>
  Effect.flatMap(
    run(
      isPostgres
        ? "SELECT to_regclass('skein_token_versions') IS NOT NULL AS found"
        : "SELECT COUNT(*) > 0 AS found FROM sqlite_master WHERE name = 'skein_token_versions'"
    ),
    (rows) =>
      rows[0]?.["found"]
        ? Effect.map(
          run("SELECT MAX(version) AS version FROM skein_token_versions"),
          (rows) => Number(rows[0]?.["version"] ?? 0)
        )
        : Effect.succeed(0)
  )

/**
 * Creates the tables or brings them to the version of this program. If they have it, nothing is locked or changed, and
 * the user of the database needs no right to create tables.
 */
export const migrate = (database: TokenDatabase): Effect.Effect<void, TokenStoreError> =>
  Effect.flatMap(version(database), (before) => {
    if (before === migrations.length) return Effect.void
    return database.transaction(Effect.gen(function*() {
      const { isPostgres, run } = database
      if (isPostgres) yield* run(migrationLock)
      yield* run("CREATE TABLE IF NOT EXISTS skein_token_versions (version INTEGER NOT NULL PRIMARY KEY)")
      const now = yield* version(database)
      if (now > migrations.length) {
        return yield* Effect.fail(unavailable(
          `the token tables have version ${now}, and this program supports ${migrations.length}: a later version created them`
        ))
      }
      for (const [index, migration] of migrations.entries()) {
        if (index < now) continue
        for (const statement of migration(database)) yield* run(statement)
        yield* run("INSERT INTO skein_token_versions (version) VALUES (?)", index + 1)
      }
    }))
  })
