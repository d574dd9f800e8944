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
import * as ProcessLocal from "@skein/runtime/ProcessLocal"
import type { Client } from "@skein/sql/PgClient"
import { lockFile } from "@skein/sql/SqliteClient"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as References from "effect/References"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import { SqlClient } from "effect/sql/SqlClient"
import { SqlError, UnknownError } from "effect/sql/SqlError"
import { hostname } from "node:os"
import * as engine from "./internal/engine/engine.ts"
import { invalidOption, openError, storeError } from "./internal/store/database.ts"
import * as sqlStore from "./internal/store/sqlStore.ts"
import type { TaskAdmin } from "./TaskAdmin.ts"
import type * as TaskEngine from "./TaskEngine.ts"
import type { TaskError } from "./TaskError.ts"
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

/** The function that listens, as the client of `@skein/sql` has it. */
export type Listen = Client["listen"]

/** Locks the file of the client. A database in memory has none. */
const lockMain = Effect.fnUntraced(function*(sql: SqlClient): Effect.fn.Return<void, TaskError, Scope.Scope> {
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

/** The client of `@effect/sql-pg`. A listener holds a connection of its pool, and its queue fails when that is lost. */
interface OfficialClient extends SqlClient {
  readonly listen: (
    channel: string
  ) => Effect.Effect<Queue.Dequeue<{ readonly payload: string }, SqlError>, SqlError, Scope.Scope>
}

const isOfficial = (client: SqlClient): client is OfficialClient => "~@effect/sql-pg/PgClient" in client

/** 100 ms, doubled each time, at most 5 s. Jitter keeps processes from reconnecting at the same moment. */
const backoff = Schedule.jittered(Schedule.min([Schedule.exponential("100 millis"), Schedule.spaced("5 seconds")]))

/** Adds the reconnecting to the client of `@effect/sql-pg`. */
const reconnecting = (client: OfficialClient): Listen => (channel, onNotification, onReconnected) =>
  Effect.gen(function*() {
    const scope = yield* Effect.scope
    /** Listens in a scope of its own, so that a lost connection goes back to the pool. */
    const open = Effect.flatMap(Scope.fork(scope), (own) =>
      Effect.map(
        Effect.onError(Scope.provide(client.listen(channel), own), (cause) => Scope.close(own, Exit.failCause(cause))),
        (notifications) => ({ own, notifications })
      ))
    const follow = ({ notifications, own }: Effect.Success<typeof open>): Effect.Effect<never> =>
      Effect.map(Queue.take(notifications), ({ payload }) => onNotification(payload)).pipe(
        Effect.forever,
        Effect.ignoreCause,
        Effect.andThen(Scope.close(own, Exit.void)),
        Effect.andThen(Effect.orDie(Effect.retry(open, backoff))),
        Effect.tap(() => Effect.sync(onReconnected)),
        Effect.flatMap(follow)
      )
    const first = yield* open
    yield* Effect.forkIn(follow(first), scope)
  })

/** Returns the function that listens through a client, or `undefined` if it has none. */
const listenOf = (client: SqlClient): Listen | undefined =>
  isOfficial(client)
    ? reconnecting(client)
    : "listen" in client && typeof client.listen === "function"
    ? client.listen as Listen
    : undefined

const notDelivered = () =>
  new SqlError({
    reason: new UnknownError({
      cause: undefined,
      operation: "listen",
      message:
        "notifications do not arrive: connect to the server, or to a pool in session mode (PgBouncer: pool_mode = " +
        "session), and give the client at least 4 connections"
    })
  })

/**
 * Fails where notifications do not arrive within 10 seconds: behind a pooler in transaction mode, or where the listeners
 * have taken all connections of the client.
 */
const checkNotifications = (client: SqlClient, listen: Listen): Effect.Effect<void, SqlError> =>
  Effect.scoped(Effect.gen(function*() {
    const channel = `skein_check_${crypto.randomUUID().replaceAll("-", "")}`
    const received = yield* Queue.unbounded<string>()
    yield* listen(channel, (payload) => Queue.offerUnsafe(received, payload), () => {})
    yield* client.unsafe(`SELECT pg_notify('${channel}', 'check')`)
    yield* Queue.take(received)
  })).pipe(Effect.timeoutOrElse({ duration: "10 seconds", orElse: () => Effect.fail(notDelivered()) }))

const ofOneProcess = {
  what: "the tasks of SqlTasks in SQLite, which one process runs",
  remedy: "use SqliteTasks with a file of its own, or PostgreSQL"
}

const single = (sql: SqlClient, { exclusive = true, migrate, runTasks = true, ...options }: Options) =>
  Layer.unwrap(Effect.gen(function*() {
    if (!runTasks) {
      return yield* Effect.fail(invalidOption("runTasks is false: SQLite has one process, which runs the tasks"))
    }
    yield* ProcessLocal.report(ofOneProcess)
    if (exclusive) yield* lockMain(sql)
    return engine.layerSingle({ ...options, host: hostname(), pid: process.pid }, migrate)
  }))

const shared = (sql: SqlClient, options: Options) =>
  Layer.unwrap(Effect.gen(function*() {
    const listen = options.listen ?? listenOf(sql)
    if (listen === undefined) {
      return yield* Effect.fail(
        invalidOption("the SqlClient cannot listen for notifications: use @effect/sql-pg, or give the option listen")
      )
    }
    const { leaseTimeout = "5 seconds", runTasks = true } = options
    const leaseMs = Duration.toMillis(leaseTimeout)
    yield* Effect.mapError(checkNotifications(sql, listen), storeError)
    if (runTasks) yield* warnAboutIdleTransactions(sql, leaseMs)
    return engine.layerShared({ ...options, leaseMs, host: hostname(), pid: process.pid }, { listen })
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
  Layer.unwrap(Effect.flatMap(SqlClient, (sql) => {
    const refused = (dialect: string) => () =>
      Effect.fail(invalidOption(`the SqlClient has the dialect ${dialect}: tasks need SQLite or PostgreSQL`))
    return sql.onDialectOrElse({
      sqlite: () => Effect.succeed(single(sql, options)),
      pg: () => Effect.succeed(shared(sql, options)),
      mysql: refused("mysql"),
      mssql: refused("mssql"),
      orElse: refused("another")
    })
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
