/**
 * A client of SQLite on `node:sqlite`: Effect's `SqlClient` with one synchronous connection. There is nothing to
 * install.
 *
 * **When to use**
 *
 * For a process that owns its file, and programs beside it that read it now and then. Programs use it through `effect/sql/SqlClient` only. The driver is thin, and will
 * be removed when the official one is published for Effect 4.1.
 *
 * **Durability**
 *
 * The journal is a write-ahead log. A commit survives the end of the *process*, `kill -9` and out of memory included,
 * because it is in the file cache of the operating system. With `synchronous: "normal"`, the default, a *power failure*
 * or a crash of the operating system can undo the last commits: those since the last checkpoint or flush, typically of
 * the last few seconds. The file stays consistent. With `synchronous: "full"` each commit flushes the log to the disk,
 * so that no acknowledged commit is lost even then. That costs one `fsync` per commit.
 *
 * **Gotchas**
 *
 * - A statement runs on the thread of the event loop. An exclusive client blocks the whole process while it waits for the
 *   lock of another one (`lockTimeout`); all clients do so when they open the file.
 * - Do not open the file by other means (`fs.readFile`, a copy) in the process that holds it: closing any descriptor of
 *   a file releases the POSIX locks of the process on it. Copy the database with `VACUUM INTO`.
 * - Transactions begin with `BEGIN IMMEDIATE`: otherwise a transaction that reads before it writes could fail midway.
 *
 * @example
 * const program = Effect.gen(function*() {
 *   const sql = yield* SqlClient.SqlClient
 *   return yield* sql`SELECT name FROM teas`
 * })
 * Effect.provide(program, SqliteClient.layer({ filename: "teas.db", exclusive: true }))
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
import type * as Sqlite from "node:sqlite"
import type { DatabaseSync } from "node:sqlite"
import { CachedStatements, makeConnection, waiting } from "./internal/sqlite/sqliteConnection.ts"
import { isBusy } from "./internal/sqlite/sqliteError.ts"

/** The database and how to open it. */
export interface Options {
  /**
   * The file. It is created if it does not exist, for its owner only (mode 600), but its folder is not. A `file:` URI gets
   * the mode that SQLite chooses: most systems then let all users read it. `:memory:` opens a database in memory that
   * only this client has.
   */
  readonly filename: string
  /**
   * Whether commits survive a power failure: `"full"` yes, with one `fsync` per commit; `"normal"`, the default, no.
   * With both they survive the end of the process.
   */
  readonly synchronous?: "normal" | "full" | undefined
  /**
   * Whether this client is the only exclusive one from opening to closing; `false` by default. Another exclusive client
   * that opens the file meanwhile, in any process, fails at once. Its error is an `SqlError` with the reason
   * `LockTimeoutError` and the operation `open`. Clients that are not exclusive may read and write beside it. The lock
   * is on a second, empty file, whose name ends with `-owner`. The operating system releases it when the process ends.
   */
  readonly exclusive?: boolean | undefined
  /**
   * Whether this client shares the file with others like it, in any number of processes; `false` by default. No exclusive
   * client can open the file as long as one of them has it open, and none of them while an exclusive client has it.
   */
  readonly shared?: boolean | undefined
  /**
   * The longest wait of a statement for the lock of another process: 1 second by default, and 30 seconds for a shared
   * client. The process blocks while an exclusive client waits. Then the statement fails with `LockTimeoutError`. Raise it
   * for a file that several processes write.
   */
  readonly lockTimeout?: Duration.Input | undefined
  /** Renames identifiers in statements, for example from `camelCase` to `snake_case`. By default names stay. */
  readonly transformQueryNames?: ((name: string) => string) | undefined
  /** Renames the columns of results. By default names stay, which is the fastest. */
  readonly transformResultNames?: ((name: string) => string) | undefined
}

/**
 * Opens the database and returns its client. The database closes with the scope.
 *
 * **Details**
 *
 * - There is one connection, behind a semaphore: a statement outside a transaction waits for the running transaction.
 * - Integers are read as numbers. An integer of 2^53 or more fails, unless `SqlClient.SafeIntegers` is provided, which
 *   reads all integers as `bigint`.
 * - Booleans are bound as 0 and 1, a `Date` as ISO 8601 text, `undefined` as `NULL`.
 * - `raw` returns `{ changes, lastInsertRowid }` for a statement without result columns, else its rows.
 * - The client caches between 200 and 400 compiled statements, and drops the least recently used.
 *
 * @example
 * const sql = yield* SqliteClient.make({ filename: ":memory:" })
 */
export const make = Effect.fnUntraced(function*(
  options: Options
): Effect.fn.Return<SqlClient.SqlClient, SqlError.SqlError, Scope.Scope | Reactivity.Reactivity> {
  const { exclusive = false, filename, lockTimeout, shared = false } = options
  if (exclusive) yield* lockFile(filename)
  else if (shared) yield* lockFile(filename, true)
  const wait = Duration.toMillis(lockTimeout ?? (shared ? sharedLockTimeout : "1 second"))
  const database = yield* openFile(filename, filename, (database) => configure(database, options.synchronous, wait))
  const made = makeConnection(database, yield* CachedStatements)
  // The owner of a file waits for short transactions of programs beside it only: it need not pay for the other way to wait.
  const isWaiting = !exclusive && !isInMemory(filename)
  if (isWaiting) database.exec(`PRAGMA busy_timeout = ${Math.min(Math.ceil(wait), maxBlocking)}`)
  const connection = isWaiting ? waiting(made, database, wait) : made
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

/**
 * Provides the client as `SqlClient`. The database closes with the layer.
 *
 * @example
 * Effect.provide(program, SqliteClient.layer({ filename: "teas.db" }))
 */
export const layer = (options: Options): Layer.Layer<SqlClient.SqlClient, SqlError.SqlError> =>
  Layer.provide(Layer.effect(SqlClient.SqlClient, make(options)), Reactivity.layer)

/**
 * Locks a file as an exclusive client does, or with `shared` as a shared one, until the scope closes: for a file whose
 * client is another one. Fails with an `SqlError` with the reason `LockTimeoutError` and the operation `open` if another
 * process or client has the lock. A database in memory needs no lock.
 *
 * @example
 * Effect.scoped(Effect.andThen(SqliteClient.lockFile("teas.db"), program))
 */
export const lockFile = (filename: string, shared = false): Effect.Effect<void, SqlError.SqlError, Scope.Scope> =>
  isInMemory(filename)
    ? Effect.void
    // The lock lasts until the file is closed, or the process ends.
    : Effect.asVoid(openFile(
      filename,
      // A `file:` URI can have parameters.
      filename.startsWith("file:") ? filename.replace(/(?=\?|$)/, "-owner") : `${filename}-owner`,
      (database) => {
        protectLockFile(database)
        // A transaction that has read holds its lock until it ends: here with the connection.
        database.exec(
          shared
            ? "BEGIN; SELECT COUNT(*) FROM sqlite_master"
            : "PRAGMA journal_mode = OFF; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT"
        )
      }
    ))

/**
 * Gives the file to lock the mode of its database, as SQLite does for its other files: a user who may open the file can
 * lock it, and so stop the next start. It happens before the lock, so that the start that such a user stops is the last
 * one. No descriptor is opened for that, because closing one would release the locks of this process on the file.
 */
const protectLockFile = (database: DatabaseSync): void => {
  const path = database.location()
  if (path === null || process.platform === "win32") return
  const { chmodSync, statSync } = process.getBuiltinModule("node:fs")
  const mode = statSync(path.replace(/-owner$/, ""), { throwIfNoEntry: false })?.mode
  if (mode === undefined || mode === statSync(path).mode) return
  try {
    chmodSync(path, mode & 0o777)
  } catch {
    // The file is that of another user, who shares the database.
  }
}

/**
 * Loads `node:sqlite` as this module does, for a program that also uses it directly: without the warning that SQLite is
 * experimental in Node, which an `import` of `node:sqlite` prints on stderr.
 *
 * Throws if this Node has none: before 22.13, or in a build without SQLite. Loading is synchronous, so that no warning of
 * other code can be emitted while the function is replaced. Other warnings are printed as usual.
 *
 * @example
 * const { DatabaseSync } = SqliteClient.loadNodeSqlite()
 */
export const loadNodeSqlite = (): typeof Sqlite => {
  const { emitWarning } = process
  const filtered: EmitWarning = (warning, ...rest) => {
    if (!isAboutSqlite(warning, rest[0])) (emitWarning as EmitWarning).call(process, warning, ...rest)
  }
  process.emitWarning = filtered as typeof emitWarning
  try {
    const loaded = process.getBuiltinModule("node:sqlite") as typeof Sqlite | undefined
    if (loaded !== undefined) return loaded
  } finally {
    process.emitWarning = emitWarning
  }
  throw new Error(`Node ${process.version} has no node:sqlite; use Node 22.19 or newer`)
}

type EmitWarning = (warning: string | Error, ...rest: ReadonlyArray<unknown>) => void

/** Whether it is the warning about SQLite. Node emits it with a text and the type `ExperimentalWarning`. */
const isAboutSqlite = (warning: string | Error, type: unknown): boolean =>
  type === "ExperimentalWarning" && typeof warning === "string" && warning.startsWith("SQLite ")

/** Whether a name is that of a database in memory, which only its client has. */
export const isInMemory = (filename: string): boolean =>
  filename === ":memory:" || filename.startsWith("file::memory:") || /^file:.*[?&]mode=memory/.test(filename)

/**
 * Creates a file for its owner only, as most systems let all users read the files that SQLite creates. SQLite gives its
 * other files the same mode. A `file:` URI may require that the file exists, and is left to SQLite.
 */
const createFile = (path: string): void => {
  if (path === "" || isInMemory(path) || path.startsWith("file:")) return
  const { closeSync, openSync } = process.getBuiltinModule("node:fs")
  try {
    closeSync(openSync(path, "ax", 0o600))
  } catch {
    // It exists, or SQLite reports the problem.
  }
}

/** Opens a file until the scope closes. Errors name `filename`. */
const openFile = (
  filename: string,
  path: string,
  prepare: (database: DatabaseSync) => void
): Effect.Effect<DatabaseSync, SqlError.SqlError, Scope.Scope> => {
  const opened = Effect.try({
    try: () => {
      // Loaded on demand: a program that never opens a database does not pay for it.
      const { DatabaseSync } = loadNodeSqlite()
      createFile(path)
      const database = new DatabaseSync(path, { timeout: 0 })
      try {
        prepare(database)
        return database
      } catch (cause) {
        database.close()
        throw cause
      }
    },
    catch: (cause) => openError(filename, cause)
  })
  return Effect.acquireRelease(opened, (database) => Effect.sync(() => database.close()))
}

const configure = (database: DatabaseSync, synchronous: Options["synchronous"], blockingMs: number) => {
  database.exec(`
    PRAGMA busy_timeout = ${Math.ceil(blockingMs)};
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = ${synchronous === "full" ? "FULL" : "NORMAL"};
    -- 4,000 pages (16 MiB) instead of 1,000: a page that changes often is written back less often. Small commits take
    -- a fifth less time.
    PRAGMA wal_autocheckpoint = 4000;
    PRAGMA journal_size_limit = 67108864;
    PRAGMA temp_store = MEMORY`)
}

// How long a statement of a shared client waits for other processes by default, in milliseconds.
const sharedLockTimeout = 30_000

// How long a statement of a client that is not exclusive blocks its process for the lock of another one, in milliseconds.
const maxBlocking = 5

const openError = (filename: string, cause: unknown) =>
  new SqlError.SqlError({
    reason: isBusy(cause)
      ? new SqlError.LockTimeoutError({
        cause,
        message: `SQLite: "${filename}" is in use by another process or client that owns it`,
        operation: "open"
      })
      : new SqlError.ConnectionError({
        cause,
        message: `SQLite: cannot open "${filename}": ${cause instanceof Error ? cause.message : String(cause)}`,
        operation: "open"
      })
  })
