/**
 * Durable tasks in a SQLite file, run by one process, without a database server.
 *
 * The process locks the file while it runs: two processes on one file would run its tasks twice. Use `PostgresTasks`
 * for several processes.
 *
 * @example
 * McpServer.layer({ name: "bakery", version: "1.0.0" }, report, Tasks.layer()).pipe(
 *   Layer.provide(SqliteTasks.layer({ filename: "tasks.db" })))
 */
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Reactivity from "effect/reactivity/Reactivity"
import { SqlClient } from "effect/sql/SqlClient"
import type { SqlError } from "effect/sql/SqlError"
import { open } from "node:fs/promises"
import * as engine from "./internal/engine/engine.ts"
import type { TaskAdmin } from "./TaskAdmin.ts"
import type * as TaskEngine from "./TaskEngine.ts"
import { FileLocked, StoreError, TaskError } from "./TaskError.ts"

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
}

const openError = (error: SqlError): TaskError => {
  const { message, reason } = error
  const isLocked = reason._tag === "LockTimeoutError" && reason.operation === "open"
  const details = { message, cause: error }
  return new TaskError({ reason: isLocked ? new FileLocked(details) : new StoreError(details) })
}

/**
 * Creates the file for its owner only: it holds what callers have sent, and most systems let everybody read new files.
 */
const createFile = (filename: string): Effect.Effect<void> =>
  filename === ":memory:" || filename.startsWith("file:")
    ? Effect.void
    : Effect.promise(() => open(filename, "ax", 0o600).then((file) => file.close(), () => {}))

/**
 * The engine, `TaskAdmin`, and the `SqlClient` for transactional steps: their tables are in the same file as those of
 * the engine.
 *
 * Fails with `TaskError` `FileLocked` if another process, or another layer in this process, has the file open, and with
 * `StoreError` if the file cannot be opened.
 *
 * @example
 * const Engine = SqliteTasks.layer({ filename: "tasks.db", synchronous: "full" })
 */
export const layer = (
  { filename, synchronous, ...options }: Options
): Layer.Layer<TaskEngine.TaskEngine | TaskAdmin | SqlClient, TaskError> =>
  engine.layerSingle(options).pipe(
    Layer.provideMerge(
      Layer.effect(
        SqlClient,
        Effect.andThen(
          createFile(filename),
          Effect.mapError(SqliteClient.make({ filename, synchronous, exclusive: true }), openError)
        )
      )
    ),
    Layer.provide(Reactivity.layer)
  )
