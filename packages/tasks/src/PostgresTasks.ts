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
import * as PgClient from "@skein/sql/PgClient"
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Scope from "effect/Scope"
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
   * The deployment of this worker, such as a version: 1 to 100 characters. The tasks of a tool with `versioning: "pinned"` that it
   * begins go on in the pool `<pool>@<deployment>`, which only workers of the same deployment run. Default: none.
   */
  readonly deployment?: string | undefined
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
 * with `pool_mode = session`. On its connections PostgreSQL reads whole tables only where it has no index
 * (`enable_seqscan = off`), unless `settings` says otherwise. When the database cannot be reached later, tasks wait until it can, and the operations of
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
  const client = PgClient.layerListening({
    ...options,
    settings: { ...pointQueries, ...options.settings },
    idleInTransactionTimeout: options.idleInTransactionTimeout ?? Duration.millis(leaseMs * 2 / 3)
  })
  return Layer.unwrap(
    Effect.map(
      PgClient.PgClient,
      (client) => engine.layerShared({ ...options, leaseMs, host: hostname(), pid: process.pid }, client)
    )
  ).pipe(Layer.provideMerge(Layer.effectContext(connect(client))))
}

/**
 * Only `TaskAdmin` and `TaskSchedules`, for a program beside the servers and workers of the database, such as `skein tasks`. It runs no tasks,
 * and is not a worker. Its connections have the settings of `layer`.
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
    Layer.effectContext(connect(
      PgClient.layer({ maxConnections: 2, ...options, settings: { ...pointQueries, ...options.settings } })
    ))
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
  return Effect.scoped(
    Effect.flatMap(connect(client), (context) => Effect.provideContext(sqlStore.migrateTables(dryRun), context))
  )
}

// A plan that was made for a small table is used until PostgreSQL knows that the table has grown, a minute later.
const pointQueries = { enable_seqscan: "off", jit: "off" }

/** Builds a client. */
const connect = <A>(client: Layer.Layer<A, SqlError>): Effect.Effect<Context.Context<A>, TaskError, Scope.Scope> =>
  Effect.mapError(Layer.build(client), storeError)
