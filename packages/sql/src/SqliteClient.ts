/**
 * An `SqlClient` on `node:sqlite`: one connection, synchronous, with nothing to install.
 *
 * **When to use**
 *
 * For one process that owns its file. The driver is thin and goes away when the official one is published for
 * Effect 4.1; it is used through `effect/sql/SqlClient` alone.
 *
 * **Durability**
 *
 * The journal is a write-ahead log. What a transaction committed survives the end of the *process*, however rude
 * (`kill -9`, out of memory): it is in the file system's cache, which belongs to the operating system. With
 * `synchronous: "normal"`, the default, a *power failure* or a crash of the operating system may take back the last
 * commits (those since the last checkpoint or flush by the system, typically seconds); the file stays consistent.
 * `synchronous: "full"` flushes the log to the disk in each commit: nothing that was acknowledged is lost even then, at
 * the price of one `fsync` per commit.
 *
 * **Gotchas**
 *
 * - A statement runs on the event loop's thread, and while it waits for another process's lock (`busyTimeout`) the whole
 *   process waits.
 * - Do not open the database's file by other means (`fs.readFile`, a copy) in the process that holds it: closing any
 *   descriptor of a file drops the process's POSIX locks on it. Copy with `VACUUM INTO`.
 * - Transactions begin with `BEGIN IMMEDIATE`, so that one that reads before it writes cannot fail in the middle.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as SqlClient from "effect/sql/SqlClient"
import * as SqlError from "effect/sql/SqlError"
import * as Statement from "effect/sql/Statement"
import type { DatabaseSync } from "node:sqlite"
import { makeConnection } from "./internal/sqliteConnection.ts"
import { isBusy } from "./internal/sqliteError.ts"

/** How a database is opened. */
export interface Options {
  /** The file, which is made when it does not exist (its folder is not); `:memory:` for one that lives in this client. */
  readonly filename: string
  /**
   * `"normal"` (default): commits survive the end of the process, not a power failure. `"full"`: both, with an `fsync`
   * per commit.
   */
  readonly synchronous?: "normal" | "full" | undefined
  /**
   * Holds the file for this client alone, from opening to closing. Another client, in this process or another one, that
   * opens the file meanwhile is refused at once, as this one is when the file is in use: the layer fails with an
   * `SqlError` whose reason is `LockTimeoutError` with the operation `open`. The lock is the operating system's and ends
   * with the process, however that ends. Default `false`.
   */
  readonly exclusive?: boolean | undefined
  /**
   * How long a statement waits for another process's lock, blocking this process, until it fails with
   * `LockTimeoutError`. Default 1 second. Nothing waits for the locks of `exclusive`.
   */
  readonly busyTimeout?: Duration.Input | undefined
  /** Compiled statements that are kept at least; up to twice as many are. The longest unused go first. Default 200. */
  readonly statements?: number | undefined
  /** Renames identifiers in statements, `camelCase` to `snake_case` for example. Default: none. */
  readonly transformQueryNames?: ((name: string) => string) | undefined
  /** Renames the columns of results. Default: none, which is the fastest. */
  readonly transformResultNames?: ((name: string) => string) | undefined
}

/**
 * Opens the database for the life of the scope.
 *
 * **Details**
 *
 * Statements outside of a transaction take turns with transactions: there is one connection, behind a semaphore.
 * Integers are read as numbers; one beyond 2^53 fails, unless `SqlClient.SafeIntegers` is provided, which reads
 * `bigint`s. Booleans are bound as 0 and 1, `Date`s as ISO 8601 text, `undefined` as `NULL`. `raw` gives
 * `{ changes, lastInsertRowid }` for a statement without result columns, else its rows.
 */
export const make = (
  options: Options
): Effect.Effect<SqlClient.SqlClient, SqlError.SqlError, Scope.Scope | Reactivity.Reactivity> =>
  Effect.gen(function*() {
    const database = yield* Effect.acquireRelease(open(options), (database) => Effect.sync(() => database.close()))
    const connection = makeConnection(database, options.statements ?? 200)
    const acquirers = SqlClient.makeSqliteAcquirers({
      connection: Effect.succeed(connection),
      semaphore: Semaphore.makeUnsafe(1),
      isTransaction: () => database.isTransaction
    })
    return yield* SqlClient.make({
      ...acquirers,
      driver: "node:sqlite",
      compiler: Statement.makeCompilerSqlite(options.transformQueryNames),
      spanAttributes: [["db.system.name", "sqlite"], ["db.namespace", options.filename]],
      beginTransaction: "BEGIN IMMEDIATE",
      prepareTransactionControls: true,
      releaseSavepoint: (name) => `RELEASE SAVEPOINT ${name}`,
      transformRows: options.transformResultNames && Statement.defaultTransforms(options.transformResultNames).array
    })
  })

/** The database as a layer, which closes it. */
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.provide(Layer.effect(SqlClient.SqlClient, make(options)), Reactivity.layer)

const open = (options: Options): Effect.Effect<DatabaseSync, SqlError.SqlError> =>
  Effect.flatMap(
    // Loaded here, so that a program which only might use SQLite does not pay for it.
    Effect.promise(() => import("node:sqlite")),
    (sqlite) =>
      Effect.try({
        try: () => {
          const database = new sqlite.DatabaseSync(options.filename, { timeout: 0 })
          try {
            configure(database, options)
            return database
          } catch (cause) {
            database.close()
            throw cause
          }
        },
        catch: (cause) => isBusy(cause) ? inUse(options.filename, cause) : cannotOpen(options.filename, cause)
      })
  )

const configure = (database: DatabaseSync, options: Options) => {
  const wait = Math.ceil(Duration.toMillis(Duration.fromInputUnsafe(options.busyTimeout ?? "1 second")))
  if (options.exclusive === true) {
    // Before the log is touched for the first time: then its index is kept in memory, and no second file is shared.
    database.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; BEGIN EXCLUSIVE; COMMIT")
  } else {
    database.exec(`PRAGMA busy_timeout = ${wait}; PRAGMA journal_mode = WAL`)
  }
  database.exec(`
    PRAGMA busy_timeout = ${wait};
    PRAGMA synchronous = ${options.synchronous === "full" ? "FULL" : "NORMAL"};
    -- 16 MiB instead of 4: written back less often, a page that was changed often once. It takes a fifth off small commits.
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA temp_store = MEMORY`)
}

const inUse = (filename: string, cause: unknown) =>
  new SqlError.SqlError({
    reason: new SqlError.LockTimeoutError({
      cause,
      message: `SQLite: "${filename}" is in use: another process or client holds it for itself, or would be shut out`,
      operation: "open"
    })
  })

const cannotOpen = (filename: string, cause: unknown) =>
  new SqlError.SqlError({
    reason: new SqlError.ConnectionError({
      cause,
      message: `SQLite: "${filename}" cannot be opened: ${cause instanceof Error ? cause.message : String(cause)}`,
      operation: "open"
    })
  })
