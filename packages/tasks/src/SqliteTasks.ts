/**
 * Tasks in a SQLite file, run by one process: durable, with nothing to install.
 *
 * The process holds the file for itself, as long as it runs: two that run tasks of one file would run them twice. For several
 * processes there is `PostgresTasks`.
 *
 * Node says on stderr that `node:sqlite` is experimental; `node --disable-warning=ExperimentalWarning` keeps it from that.
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
import * as single from "./internal/engine/single.ts"
import type { TaskEngine } from "./TaskEngine.ts"
import { TaskError } from "./TaskError.ts"

/** Where tasks are kept, and how the engine runs. */
export interface Options extends single.Options {
  /** The file. It is made when it does not exist, for its owner alone to read (mode 600); its folder is not. */
  readonly filename: string
  /**
   * `"normal"` (default): what was said to be durable survives the end of the process, however rude; a power failure may take back
   * the last moments. `"full"`: it survives that as well, for one `fsync` per transaction.
   */
  readonly synchronous?: "normal" | "full" | undefined
}

const refused = (error: SqlError): TaskError =>
  new TaskError({
    reason: error.reason._tag === "LockTimeoutError" && error.reason.operation === "open" ? "Locked" : "Store",
    message: error.message,
    cause: error
  })

/** What callers have said is in it: by the default of most systems everybody on the machine could read it. */
const create = (filename: string): Effect.Effect<void> =>
  filename === ":memory:" || filename.startsWith("file:")
    ? Effect.void
    : Effect.promise(() => open(filename, "ax", 0o600).then((file) => file.close(), () => {}))

/**
 * The engine. Its `SqlClient` is for what transactional steps write: tables beside the engine's own in the same file.
 *
 * Fails with `TaskError` `Locked` when another process, or another layer in this one, has the file; and with `Store` when it cannot
 * be opened.
 */
export const layer = ({ filename, synchronous, ...options }: Options): Layer.Layer<TaskEngine | SqlClient, TaskError> =>
  single.layer(options).pipe(
    Layer.provideMerge(
      Layer.effect(
        SqlClient,
        Effect.andThen(
          create(filename),
          Effect.mapError(SqliteClient.make({ filename, synchronous, exclusive: true }), refused)
        )
      )
    ),
    Layer.provide(Reactivity.layer)
  )
