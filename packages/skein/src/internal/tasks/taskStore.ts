/**
 * The places where tasks are stored: memory, a SQLite file, PostgreSQL.
 */
import * as AsyncTasks from "@skein/tasks/AsyncTasks"
import type * as Postgres from "@skein/tasks/PostgresTasks"
import type * as Sqlite from "@skein/tasks/SqliteTasks"
import type { TaskAdmin } from "@skein/tasks/TaskAdmin"
import type { TaskSchedules } from "@skein/tasks/TaskSchedules"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { PostgresOptions, SqliteOptions } from "../base/database.ts"
import { lazily, type Opaque, opaque } from "../base/definition.ts"
import type { Duration } from "../base/types.ts"
import type { TaskOperator } from "./taskAdmin.ts"
import { encrypted, type EncryptionOptions } from "./encryption.ts"

/** A place where tasks are stored. Pass it to `tasks(store, […])`. */
export interface TaskStore extends Opaque<"tasks"> {}

/** The versions of the tables before and after a migration. 0: there are no tables. */
export interface Migration {
  readonly from: number
  readonly to: number
}

/** A database that keeps tasks when the process ends. */
export interface DurableTaskStore extends TaskStore {
  /**
   * Creates the tables, or migrates them to the version of this program, for processes with `migrate: false`. `dryRun`: it
   * only reads the version. Default `false`. Rejects with a `TaskError`, `FileLocked` if a process runs the tasks of the file.
   *
   * @example
   * const { from, to } = await sqliteTasks({ filename: "tasks.db" }).migrate()
   */
  readonly migrate: (options?: { readonly dryRun?: boolean | undefined }) => Promise<Migration>
  /**
   * Opens the store for an operator, in a program beside the server. It runs no tasks. Rejects with a `TaskError`.
   *
   * @example
   * await using operator = await sqliteTasks({ filename: "tasks.db" }).openAdmin()
   * const failed = await operator.admin.list({ hasFailed: true })
   */
  readonly openAdmin: () => Promise<TaskOperator>
}

/** A SQLite file with tasks. */
export interface SqliteTaskStore extends DurableTaskStore {
  /**
   * Copies the file, also while its server runs, to a new one that only its owner can read. It blocks the event loop for a
   * few seconds per gigabyte. Rejects with the `TaskError` `StoreError` if the file does not exist, or if the new one exists.
   *
   * @example
   * await sqliteTasks({ filename: "tasks.db" }).backup("tasks-2026-11-28.db")
   */
  readonly backup: (to: string) => Promise<void>
}

/** The options of each store. A server fails to start with `InvalidOption` for a value out of bounds. */
export interface TaskStoreOptions extends EncryptionOptions {
  /** How often the store is read for events that no notification reports: 500 milliseconds by default. */
  readonly pollInterval?: Duration | undefined
  /** How long an expired task may take to run its compensations before it is deleted: 1 hour by default. */
  readonly undoTimeout?: Duration | undefined
  /**
   * How many tasks this process runs at the same time: 1,000 by default, at least 1. Others wait. A task that waits for an
   * answer or a sleep of more than 5 seconds does not count.
   */
  readonly concurrency?: number | undefined
  /**
   * After how many lost workers a task fails, without a step of it that ends in between: 5 by default. Its compensations run.
   */
  readonly maxAttempts?: number | undefined
  /** Whether the code of this process is compared with unsettled tasks at its start: `true` by default. */
  readonly checkCode?: boolean | undefined
  /** How long a process that stops waits for running steps: 2 seconds by default. Then a step runs again, later. */
  readonly shutdownTimeout?: Duration | undefined
  /** The name and version of the program, such as `shop 1.4.2`, which operators see beside its tasks. Default: none. */
  readonly application?: string | undefined
}

/** The file of tasks. */
export interface SqliteTasksOptions extends TaskStoreOptions, SqliteOptions {
  /** Whether this process creates and migrates the tables: `true` by default. `false`: it fails unless they are there. */
  readonly migrate?: boolean | undefined
}

/**
 * The connection to the database, and the role of this process. The environment variables of PostgreSQL (`PGHOST` and so
 * on) fill in members that are neither given here nor in `url`.
 */
export interface PostgresTasksOptions extends TaskStoreOptions, PostgresOptions {
  /** The most connections: 10 by default, and one more, which listens. */
  readonly maxConnections?: number | undefined
  /**
   * The longest pause between two statements of a transaction: two thirds of `leaseTimeout` by default, so that rows which a
   * frozen worker has locked are free when another one continues its tasks.
   */
  readonly idleInTransactionTimeout?: Duration | undefined
  /** Whether this process runs tasks: `true` by default. `false`: it starts and reads them, and workers run them. */
  readonly runTasks?: boolean | undefined
  /** Whether this process creates and migrates the tables: `true` by default. `false`: it fails unless they are there. */
  readonly migrate?: boolean | undefined
  /** The pools whose tasks this worker runs. Default `["default"]`, the pool of tasks that name none. */
  readonly pools?: ReadonlyArray<string> | undefined
  /**
   * The deployment of this worker, such as a version: 1 to 100 characters. Tasks with `versioning: "pinned"` that it begins go on
   * in the pool `<pool>@<deployment>`, which only workers of the same deployment run. Default: none.
   */
  readonly deployment?: string | undefined
  /**
   * How long the lease of a worker is: 5 seconds by default. When a worker does not renew it in time, because it was killed,
   * frozen or cut off, or because a step blocks its event loop, other workers continue its tasks.
   */
  readonly leaseTimeout?: Duration | undefined
}

/**
 * Tasks that end with the process: for tests, and for servers whose tasks may be lost. The server logs that at its start.
 *
 * @example
 * server.use(tasks(memoryTasks(), [bake]))
 */
export const memoryTasks = ({ encryption, ...options }: TaskStoreOptions = {}): TaskStore =>
  opaque(encrypted(encryption, lazily(() => import("@skein/tasks/MemoryTasks"), ({ layer }) => layer(options))))

const openOperator = (store: Layer.Layer<TaskAdmin | TaskSchedules, unknown>): Promise<TaskOperator> =>
  AsyncTasks.openAdmin(store) as Promise<unknown> as Promise<TaskOperator>

const loadSqlite = () => import("@skein/tasks/SqliteTasks")

/**
 * Tasks in a SQLite file, run by one process at a time, or by the `workers` of one server. Another one fails to start with the
 * `TaskError` `FileLocked`.
 *
 * @example
 * server.use(tasks(sqliteTasks({ filename: "tasks.db" }), [bake]))
 */
export const sqliteTasks = ({ encryption, ...options }: SqliteTasksOptions): SqliteTaskStore => {
  const { filename } = options
  if (typeof filename !== "string") {
    throw new TypeError("sqliteTasks needs a file: sqliteTasks({ filename: \"tasks.db\" })")
  }
  return opaque(encrypted(encryption, lazily(loadSqlite, ({ layer }) => layer(options as Sqlite.Options))), {
    migrate: async ({ dryRun } = {}) => Effect.runPromise((await loadSqlite()).migrate({ filename, dryRun })),
    backup: async (to) => Effect.runPromise((await loadSqlite()).backup({ filename, to })),
    openAdmin: () =>
      openOperator(encrypted(encryption, lazily(loadSqlite, ({ layerAdmin }) => layerAdmin({ filename }))))
  })
}

const loadPostgres = () => import("@skein/tasks/PostgresTasks")

/**
 * Tasks in PostgreSQL, for any number of processes: servers that run tasks, workers, and servers that run none. They need no
 * port between them. A server fails to start with the `TaskError` `StoreError` if it cannot connect within `connectTimeout`.
 *
 * @example
 * server.use(tasks(postgresTasks({ url: process.env["DATABASE_URL"], runTasks: false }), [bake]))
 */
export const postgresTasks = (given: PostgresTasksOptions): DurableTaskStore => {
  const { encryption, ...rest } = given
  const options = rest as Postgres.Options
  return opaque(encrypted(encryption, lazily(loadPostgres, ({ layer }) => layer(options))), {
    migrate: async ({ dryRun } = {}) => Effect.runPromise((await loadPostgres()).migrate({ ...options, dryRun })),
    openAdmin: () => openOperator(encrypted(encryption, lazily(loadPostgres, ({ layerAdmin }) => layerAdmin(options))))
  })
}
