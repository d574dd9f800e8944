/**
 * Tasks in the database of the application, through its `SqlClient`: a SQLite file, or PostgreSQL.
 *
 * The tables of the engine, whose names begin with `skein_`, are beside those of the application. A transactional step
 * writes into the tables of the application and records its outcome in one transaction, with the repositories that the
 * application has. There is one pool of connections.
 *
 * Use `SqliteTasks` or `PostgresTasks` for a database of tasks alone: their clients bound each wait, which those of an
 * application may not. The guide "In an Effect application" lists what the engine needs from a client.
 *
 * @example
 * const Server = McpServer.layer({ name: "shop", version: "1.0.0" }, checkout, Tasks.layer()).pipe(
 *   Layer.provide(SqlTasks.layer()),
 *   Layer.provide(PgClient.layerConfig({ url: Config.Redacted("DATABASE_URL") })))
 */
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import { lockFile } from "@skein/sql/SqliteClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { hostname } from "node:os"
import * as engine from "./internal/engine/engine.ts"
import { checkNotifications, type Listen, listenOf } from "./internal/store/clientListener.ts"
import { storeError } from "./internal/store/database.ts"
import * as sqlStore from "./internal/store/sqlStore.ts"
import type { TaskAdmin } from "./TaskAdmin.ts"
import type * as TaskEngine from "./TaskEngine.ts"
import { FileLocked, InvalidOption, StoreError, TaskError } from "./TaskError.ts"
import type { TaskSchedules } from "./TaskSchedules.ts"

/** The options of the engine. Those from `runTasks` on are for PostgreSQL. */
export interface Options extends TaskEngine.Options {
  /**
   * Whether this process creates the tables of the engine and migrates them. `false`: it fails to start unless they have
   * the version of this program: see `migrate`. Default `true`.
   */
  readonly migrate?: boolean | undefined
  /**
   * SQLite: whether this process locks the file against other processes that run its tasks, as `SqliteTasks` does.
   * `false` if the client of the application is exclusive itself. Default `true`.
   */
  readonly exclusive?: boolean | undefined
  /**
   * Whether this process runs tasks. `false`: it submits and reads them, and other processes run them. Default `true`.
   */
  readonly runTasks?: boolean | undefined
  /** The pools of this worker: see `PostgresTasks.Options`. Default `["default"]`. */
  readonly pools?: ReadonlyArray<string> | undefined
  /** How long the lease of a worker is: 5 seconds by default. See `PostgresTasks.Options`. */
  readonly leaseTimeout?: Duration.Input | undefined
  /**
   * Listens for notifications, for another client of PostgreSQL than those below: as `listen` of
   * `@skein/sql/PgClient` does. By default that of the client: of `@effect/sql-pg` or of `@skein/sql`.
   */
  readonly listen?: Listen | undefined
}

export type { Listen } from "./internal/store/clientListener.ts"

const invalid = (message: string) => new TaskError({ reason: new InvalidOption({ message }) })

const dialectOf = (sql: SqlClient): Effect.Effect<"sqlite" | "pg", TaskError> => {
  const dialect = sql.onDialectOrElse({
    sqlite: () => "sqlite" as const,
    pg: () => "pg" as const,
    mysql: () => "mysql" as const,
    mssql: () => "mssql" as const,
    orElse: () => "another" as const
  })
  return dialect === "sqlite" || dialect === "pg"
    ? Effect.succeed(dialect)
    : Effect.fail(invalid(`the SqlClient has the dialect ${dialect}: tasks need SQLite or PostgreSQL`))
}

const openError = (error: SqlError): TaskError => {
  const { message, reason } = error
  const isLocked = reason._tag === "LockTimeoutError" && reason.operation === "open"
  const details = { message, cause: error }
  return new TaskError({ reason: isLocked ? new FileLocked(details) : new StoreError(details) })
}

/** Locks the file of the client. A database in memory has none. */
const lockMain = (sql: SqlClient): Effect.Effect<void, TaskError, Scope.Scope> =>
  Effect.gen(function*() {
    const rows = yield* Effect.mapError(
      sql.withoutTransforms().unsafe<{ readonly name: string; readonly file: string }>("PRAGMA database_list"),
      storeError
    )
    const file = rows.find(({ name }) => name === "main")?.file ?? ""
    if (file !== "") yield* Effect.mapError(lockFile(file), openError)
  })

/** The setting of the server that ends a transaction which a frozen process holds open. */
const idleSetting = "idle_in_transaction_session_timeout"

/**
 * Warns if a transaction of a frozen process can hold its locks for longer than its lease. The clients of
 * `PostgresTasks` set this for their connections.
 */
const warnAboutIdleTransactions = (sql: SqlClient, leaseMs: number): Effect.Effect<void, TaskError> =>
  Effect.gen(function*() {
    const [row] = yield* Effect.mapError(
      sql.withoutTransforms().unsafe<{ readonly setting: string }>(
        `SELECT setting FROM pg_settings WHERE name = '${idleSetting}'`
      ),
      storeError
    )
    const millis = Number(row?.setting ?? 0)
    if (millis > 0 && millis <= leaseMs) return
    yield* Effect.provideService(
      Effect.logWarning(
        `${idleSetting} is ${millis} ms: rows that a frozen worker has locked stay locked. Set it to at most leaseTimeout ` +
          `(${leaseMs} ms) for the role of the application, or as a startup parameter of its client`
      ),
      // Written while the server is built, before stdout is guarded.
      References.LogToStderr,
      true
    )
  })

const single = (sql: SqlClient, { exclusive = true, migrate, runTasks = true, ...options }: Options) =>
  Layer.unwrap(Effect.gen(function*() {
    if (!runTasks) return yield* Effect.fail(invalid("runTasks is false: SQLite has one process, which runs the tasks"))
    if (exclusive) yield* lockMain(sql)
    return engine.layerSingle(options, migrate)
  }))

const shared = (sql: SqlClient, options: Options) =>
  Layer.unwrap(Effect.gen(function*() {
    const listen = options.listen ?? listenOf(sql)
    if (listen === undefined) {
      return yield* Effect.fail(
        invalid("the SqlClient cannot listen for notifications: use @effect/sql-pg, or give the option listen")
      )
    }
    const { leaseTimeout = "5 seconds", migrate = true, pools = ["default"], runTasks = true } = options
    const leaseMs = Duration.toMillis(leaseTimeout)
    yield* Effect.mapError(checkNotifications(sql, listen), storeError)
    if (runTasks) yield* warnAboutIdleTransactions(sql, leaseMs)
    return engine.layer({ runsTasks: runTasks, pools, host: hostname(), leaseMs, ...engine.resolveOptions(options) })
      .pipe(Layer.provide([sqlStore.layerListening({ listen }, migrate), NodeCrypto.layerDigest]))
  }))

/**
 * The engine, `TaskAdmin` and `TaskSchedules` on the `SqlClient` of the application.
 *
 * Fails with `TaskError`: `InvalidOption` if the database is neither SQLite nor PostgreSQL, or its client cannot listen;
 * `FileLocked` if another process runs the tasks of the SQLite file; `StoreError` if the database cannot be reached, its
 * tables cannot be migrated, or notifications do not arrive.
 *
 * @example
 * const Engine = SqlTasks.layer({ concurrency: 100 })
 */
export const layer = (
  options: Options = {}
): Layer.Layer<TaskEngine.TaskEngine | TaskAdmin | TaskSchedules, TaskError, SqlClient> =>
  Layer.unwrap(Effect.gen(function*() {
    const sql = yield* SqlClient
    return (yield* dialectOf(sql)) === "sqlite" ? single(sql, options) : shared(sql, options)
  }))

/**
 * Only `TaskAdmin` and `TaskSchedules`, for a program of the application that runs no tasks. It is not a worker, and
 * changes no tables.
 *
 * @example
 * const pauseBaking = Effect.flatMap(TaskAdmin, ({ pause }) => pause("bake")).pipe(Effect.provide(SqlTasks.layerAdmin))
 */
export const layerAdmin: Layer.Layer<TaskAdmin | TaskSchedules, TaskError, SqlClient> = engine.layerAdmin

/**
 * Creates the tables of the engine, or migrates them to the version of this program, for processes with `migrate: false`:
 * as a step of the application's own migrations. Returns the version before (0: no tables) and the one after. `dryRun`:
 * it only reads the version. Default `false`.
 *
 * @example
 * const migrations = Effect.andThen(applicationMigrations, SqlTasks.migrate())
 */
export const migrate = (
  { dryRun = false }: { readonly dryRun?: boolean | undefined } = {}
): Effect.Effect<{ readonly from: number; readonly to: number }, TaskError, SqlClient> => sqlStore.migrateTables(dryRun)
