/**
 * Durable tasks in a SQLite file, run by one process or by the workers of one server, without a database server.
 *
 * The process locks the file while it runs, with a second, empty file whose name ends with `-owner`: two processes on
 * one file would run its tasks twice. Other programs may read the file, and change it through `layerAdmin`. Use
 * `PostgresTasks` for several machines.
 *
 * The workers of `NodeHttp.runMain` share the lock. Any of them runs the tasks, with leases as on PostgreSQL: the tasks of
 * a worker that exits are continued by the others, at once after an ordinary end, and within 7 seconds after a kill. They
 * write one after the other: a transactional step of more than 5 seconds may cost a worker its lease.
 *
 * @example
 * McpServer.layer({ name: "bakery", version: "1.0.0" }, report, Tasks.layer()).pipe(
 *   Layer.provide(SqliteTasks.layer({ filename: "tasks.db" })))
 */
import * as ProcessLocal from "@skein/runtime/ProcessLocal"
import { Workers } from "@skein/runtime/Workers"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Reactivity from "effect/reactivity/Reactivity"
import { SqlClient } from "effect/sql/SqlClient"
import { link, open, rm, stat } from "node:fs/promises"
import { hostname } from "node:os"
import * as engine from "./internal/engine/engine.ts"
import { messageOf } from "./internal/base/text.ts"
import { openError, storeFailure } from "./internal/store/database.ts"
import * as sqlStore from "./internal/store/sqlStore.ts"
import type { Carrier } from "./internal/store/sqlStore.ts"
import type { TaskAdmin } from "./TaskAdmin.ts"
import type * as TaskEngine from "./TaskEngine.ts"
import type { TaskError } from "./TaskError.ts"
import type { TaskSchedules } from "./TaskSchedules.ts"

/** The file, and the options of the engine. */
export interface Options extends TaskEngine.Options {
  /** The file. It is created if it does not exist, readable for its owner only (mode 600). Its folder must exist. */
  readonly filename: string
  /**
   * `"normal"` (default): durable data survives any end of the process, such as `kill -9`; a power failure may revert
   * the last moments. `"full"`: durable data survives a power failure as well, at the cost of one `fsync` per
   * transaction.
   */
  readonly synchronous?: "normal" | "full" | undefined
  /**
   * Whether this process creates the tables and migrates them. `false`: it fails to start unless they have the version
   * of this program: see `migrate`. Default `true`.
   */
  readonly migrate?: boolean | undefined
}

// How long a program beside a server waits for its transactions: its steps may block it, and so keep one open.
const lockTimeout = "15 seconds"

/** The client of a file that is prepared first. */
const clientOf = (
  prepared: Effect.Effect<void, TaskError>,
  options: SqliteClient.Options
): Layer.Layer<SqlClient, TaskError> =>
  Layer.provide(
    Layer.effect(SqlClient, Effect.andThen(prepared, Effect.mapError(SqliteClient.make(options), openError))),
    Reactivity.layer
  )

/**
 * Creates the tables, or migrates them to the version of this program, for a process with `migrate: false`. Returns the
 * version before (0: no tables) and the one after. `dryRun`: it only reads the version of an existing file. Default
 * `false`.
 *
 * Fails with `TaskError` `FileLocked` if a process runs the tasks of the file.
 *
 * @example
 * const upgrade = SqliteTasks.migrate({ filename: "tasks.db" })
 */
export const migrate = (
  { dryRun = false, filename }: Pick<Options, "filename"> & { readonly dryRun?: boolean | undefined }
): Effect.Effect<{ readonly from: number; readonly to: number }, TaskError> => {
  const prepared = dryRun ? checkFile(filename) : Effect.void
  return Effect.provide(sqlStore.migrateTables(dryRun), clientOf(prepared, { filename, exclusive: !dryRun }))
}

/**
 * Only `TaskAdmin` and `TaskSchedules`, for a program beside the server that has the file, such as `skein tasks`. It runs
 * no tasks. The server notices changes of tasks within `pollInterval`, and those of schedules within a minute.
 *
 * Fails with `TaskError` `StoreError` if the file does not exist, or if its tables have another version. A change waits up
 * to 15 seconds for a transaction of the server, and then fails with it too.
 *
 * @example
 * const pauseBaking = Effect.flatMap(TaskAdmin, ({ pause }) => pause("bake")).pipe(
 *   Effect.provide(SqliteTasks.layerAdmin({ filename: "tasks.db" })))
 */
export const layerAdmin = (
  { filename }: Pick<Options, "filename">
): Layer.Layer<TaskAdmin | TaskSchedules, TaskError> =>
  Layer.provide(engine.layerAdmin, clientOf(checkFile(filename), { filename, lockTimeout }))

/**
 * Copies the file to a new one, also while its server runs: the copy has all tables as they are at one moment, those of
 * transactional steps included, and is readable for its owner only (mode 600). The server goes on meanwhile. The copy
 * blocks the event loop of the process that makes it, for a few seconds per gigabyte.
 *
 * To restore it, stop the server, delete `<file>-wal` and `<file>-shm`, and put the copy in the place of the file.
 *
 * Fails with `TaskError` `StoreError` if the file does not exist, or if the new one exists.
 *
 * @example
 * const nightly = SqliteTasks.backup({ filename: "tasks.db", to: "tasks-2026-11-28.db" })
 */
export const backup = (
  { filename, to }: Pick<Options, "filename"> & { readonly to: string }
): Effect.Effect<void, TaskError> => {
  // The copy has its name when it is complete.
  const partial = `${to}-partial`
  const copied = Effect.gen(function*() {
    yield* checkFile(filename)
    const sql = yield* Effect.mapError(SqliteClient.make({ filename }), openError)
    yield* inFileSystem(`"${to}" cannot be created`, async () => {
      await stat(to).then(() => Promise.reject(new Error("it exists already")), () => {})
      await rm(partial, { force: true })
      await open(partial, "wx", 0o600).then((file) => file.close())
    })
    yield* Effect.mapError(
      sql`VACUUM INTO ${partial}`,
      (cause) => storeFailure(`cannot copy "${filename}": ${cause.message}`, cause)
    )
    yield* inFileSystem(`"${to}" cannot be created`, async () => {
      await open(partial, "r+").then((file) => file.sync().finally(() => file.close()))
      // Unlike a rename, this does not replace a file.
      await link(partial, to)
    })
  })
  const removed = Effect.promise(() => rm(partial, { force: true }))
  return Effect.scoped(Effect.ensuring(copied, removed)).pipe(Effect.provide(Reactivity.layer))
}

/** Runs an operation of the file system. */
const inFileSystem = (message: string, operation: () => Promise<void>): Effect.Effect<void, TaskError> =>
  Effect.tryPromise({
    try: operation,
    catch: (cause) => storeFailure(`${message}: ${messageOf(cause)}`, cause)
  })

/** Fails if a file does not exist: SQLite would create it. Opening the file would end the locks of this process on it. */
const checkFile = (filename: string): Effect.Effect<void, TaskError> =>
  inFileSystem(`cannot open "${filename}"`, async () => {
    await stat(filename).catch((cause: NodeJS.ErrnoException) => {
      throw cause.code === "ENOENT" ? new Error("there is no such file", { cause }) : cause
    })
  })

const inMemory = { what: "the tasks of SqliteTasks in memory", remedy: "use a file, or PostgresTasks" }

// The lease of a worker, in milliseconds.
const leaseMs = 5_000

/** The topic of the notices between the workers that share a file. */
const topicOf = (filename: string): string => `tasks ${filename}`

/** Carries the notices of tasks between the workers of a server, through their primary process. */
const carrierOf = (workers: Workers["Service"], filename: string): Carrier => ({
  send: (channel, payload) => workers.tell(`${topicOf(filename)} ${channel}`, payload),
  listen: (channel, onPayload) =>
    workers.answer(`${topicOf(filename)} ${channel}`, (payload) => Effect.sync(() => onPayload(payload as string)))
})

/**
 * The engine, `TaskAdmin`, `TaskSchedules`, and the `SqlClient` for transactional steps: their tables are in the same file as those of
 * the engine.
 *
 * Fails with `TaskError` `FileLocked` if another process, or another layer in this process, runs its tasks, unless it is
 * a worker of the same kind, and with `StoreError` if the file cannot be opened.
 *
 * @example
 * const Engine = SqliteTasks.layer({ filename: "tasks.db", synchronous: "full" })
 */
export const layer = (
  { filename, migrate, synchronous, ...options }: Options
): Layer.Layer<TaskEngine.TaskEngine | TaskAdmin | TaskSchedules | SqlClient, TaskError> =>
  Layer.unwrap(Effect.map(Effect.serviceOption(Workers), (found) => {
    const workers = Option.getOrUndefined(found)
    const isInMemory = SqliteClient.isInMemory(filename)
    if (workers === undefined || isInMemory) {
      return Layer.provideMerge(
        engine.layerSingle({ ...options, host: hostname(), pid: process.pid }, migrate),
        clientOf(isInMemory ? ProcessLocal.report(inMemory) : Effect.void, { filename, synchronous, exclusive: true })
      )
    }
    const host = `${hostname()}, worker ${workers.number}`
    return Layer.provideMerge(
      engine.layerBetween({ ...options, migrate, host, pid: process.pid, leaseMs }, carrierOf(workers, filename)),
      clientOf(Effect.void, { filename, synchronous, shared: true })
    )
  }))
