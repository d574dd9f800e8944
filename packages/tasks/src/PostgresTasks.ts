/**
 * Tasks in PostgreSQL, for any number of processes: servers that run tasks, workers that are not servers, and servers
 * that run no tasks.
 *
 * The processes find each other through the database, and open no port. A task runs in one of them at a time. Another
 * process continues it when the first one ends: at once after an ordinary shutdown, and after `leaseTimeout` when the
 * process was killed, stopped or cut off.
 *
 * @example
 * const Engine = Layer.unwrap(
 *   Effect.map(Config.Redacted("DATABASE_URL"), (url) => PostgresTasks.layer({ url, runTasks: false })))
 */
import { resolve } from "@skein/runtime/Options"
import * as PgClient from "@skein/sql/PgClient"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import type { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { hostname } from "node:os"
import * as engine from "./internal/engine/engine.ts"
import { storeError } from "./internal/store/database.ts"
import * as sqlStore from "./internal/store/sqlStore.ts"
import type { TaskAdmin } from "./TaskAdmin.ts"
import type * as TaskEngine from "./TaskEngine.ts"
import type { TaskError } from "./TaskError.ts"
import type { TaskSchedules } from "./TaskSchedules.ts"

/** The database, and the role of this process. */
export interface Options extends PgClient.Options, TaskEngine.Options {
  /**
   * Whether this process runs tasks. `false`: it submits and reads them, and other processes run them. Default `true`.
   */
  readonly runTasks?: boolean | undefined
  /**
   * Whether this process creates the tables and migrates them. `false`: it fails to start unless they have the version
   * of this program, and needs no right to change tables: see `migrate`. Default `true`.
   */
  readonly migrate?: boolean | undefined
  /**
   * The pools of this worker: it runs the tasks of these pools, and no others. Default `["default"]`, the pool of tasks
   * that name none.
   */
  readonly pools?: ReadonlyArray<string> | undefined
  /**
   * How long the lease of a worker is: 5 seconds by default. A worker renews it three times in this time. A worker that
   * does not, because it was killed, frozen or cut off, or because a step blocks its event loop, loses its tasks: within
   * a further third of this time, other workers may continue them. Raise it for steps that block the event loop for
   * long, or a slow database.
   *
   * `idleInTransactionTimeout` is two thirds of it by default, so that rows which a frozen worker has locked are free when
   * another worker continues its tasks. With a longer time the other processes wait, also those that submit tasks.
   */
  readonly leaseTimeout?: Duration.Input | undefined
}

/**
 * The engine, `TaskAdmin`, `TaskSchedules`, and the `SqlClient` for transactional steps: their tables are in the same database as those
 * of the engine.
 *
 * Fails with `TaskError` `StoreError` if it cannot connect to the database within `connectTimeout` at first, and if a pooler gives each
 * transaction another connection, as PgBouncer does with `pool_mode = transaction`: connect to the server, or to a pool
 * with `pool_mode = session`. When the database cannot be reached later, tasks wait until it can, and the operations of
 * `TaskEngine` fail with `StoreError`.
 *
 * @example
 * const Engine = PostgresTasks.layer({ url, pools: ["default", "gpu"] })
 */
export const layer = (
  options: Options
): Layer.Layer<TaskEngine.TaskEngine | TaskAdmin | TaskSchedules | SqlClient, TaskError> => {
  const { leaseTimeout = "5 seconds" } = options
  const leaseMs = Duration.toMillis(leaseTimeout)
  const client = PgClient.layer({
    ...options,
    idleInTransactionTimeout: options.idleInTransactionTimeout ?? Duration.millis(leaseMs * 2 / 3)
  })
  const { connectTimeout } = resolve({ connectTimeout: options.connectTimeout }, {}, { connectTimeout: "10 seconds" })
  const attempts = connectTimeout / retryPauseMs
  return Layer.unwrap(Effect.gen(function*() {
    const client = yield* PgClient.PgClient
    yield* Effect.mapError(retryConnection(checkListening(client), attempts), storeError)
    return engine.layerShared({ ...options, leaseMs, host: hostname() }, client)
  })).pipe(
    Layer.provideMerge(Layer.effectContext(Effect.mapError(retryConnection(connect(client), attempts), storeError)))
  )
}

/**
 * Only `TaskAdmin` and `TaskSchedules`, for a program beside the servers and workers of the database, such as `skein tasks`. It runs no tasks,
 * and is not a worker.
 *
 * Fails with `TaskError` `StoreError` if it cannot connect, or if the tables have another version.
 *
 * @example
 * const pauseBaking = Effect.flatMap(TaskAdmin, ({ pause }) => pause("bake")).pipe(
 *   Effect.provide(PostgresTasks.layerAdmin({ url })))
 */
export const layerAdmin = (options: PgClient.Options): Layer.Layer<TaskAdmin | TaskSchedules, TaskError> =>
  Layer.provide(
    engine.layerAdmin,
    Layer.effectContext(Effect.mapError(connect(PgClient.layer({ maxConnections: 2, ...options })), storeError))
  )

/**
 * Creates the tables, or migrates them to the version of this program, for processes with `migrate: false`. Returns the
 * version before (0: no tables) and the one after. `dryRun`: it only reads the version. Default `false`.
 *
 * The role must be allowed to create tables in the schema, and must own those that exist. A statement may take as long
 * as it needs.
 *
 * @example
 * const upgrade = PostgresTasks.migrate({ url: adminUrl })
 */
export const migrate = (
  { dryRun = false, ...options }: PgClient.Options & { readonly dryRun?: boolean | undefined }
): Effect.Effect<{ readonly from: number; readonly to: number }, TaskError> => {
  const client = PgClient.layer({
    maxConnections: 2,
    statementTimeout: Duration.infinity,
    idleInTransactionTimeout: Duration.infinity,
    ...options
  })
  return Effect.scoped(Effect.flatMap(
    Effect.mapError(connect(client), storeError),
    (context) => Effect.provideContext(sqlStore.migrateTables(dryRun), context)
  ))
}

/** Milliseconds between two attempts to connect at the start. */
const retryPauseMs = 500

/** Builds the client. A failed attempt leaves nothing behind. */
const connect = <A, E>(client: Layer.Layer<A, E>): Effect.Effect<Context.Context<A>, E, Scope.Scope> =>
  Effect.flatMap(
    Effect.scope,
    (scope) =>
      Effect.flatMap(Scope.fork(scope), (attempt) =>
        Effect.onError(Layer.buildWithScope(client, attempt), (cause) =>
          Scope.close(attempt, Exit.failCause(cause))))
  )

/** Retries while the database cannot be reached: it may be restarted at any moment of a start. */
const retryConnection = <A, R>(
  effect: Effect.Effect<A, SqlError, R>,
  attempts: number
): Effect.Effect<A, SqlError, R> =>
  Effect.retry(effect, {
    while: ({ reason }) => reason._tag === "ConnectionError",
    schedule: Schedule.spaced(retryPauseMs),
    times: Math.min(Math.floor(attempts), Number.MAX_SAFE_INTEGER)
  })

/**
 * Fails where notifications do not arrive. It runs before the migrations, whose statements fail less clearly where a
 * pooler gives each transaction another connection.
 */
const checkListening = ({ listen }: PgClient.Client) => Effect.scoped(listen("skein_start", () => {}, () => {}))
