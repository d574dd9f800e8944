/**
 * Tasks that are gone with the process: the same engine as everywhere, on a SQLite database in memory. For tests, and for servers
 * whose tasks nobody misses after a restart. It says so in the log, which goes to stderr: stdout is the protocol's on stdio.
 *
 * Node says on stderr that `node:sqlite` is experimental; `node --disable-warning=ExperimentalWarning` keeps it from that.
 *
 * @example
 * McpServer.layer({ name: "bakery", version: "1.0.0" }, report, Tasks.layer()).pipe(
 *   Layer.provide(MemoryTasks.layer()))
 */
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type { SqlClient } from "effect/sql/SqlClient"
import * as single from "./internal/engine/single.ts"
import type { TaskEngine } from "./TaskEngine.ts"
import type { TaskError } from "./TaskError.ts"

/** How the engine runs. */
export interface Options extends single.Options {}

/** It is said while the server is built, before anything guards stdout. */
const notice = Effect.provideService(
  Effect.logInfo("Tasks are kept in memory, and are gone with this process"),
  References.LogToStderr,
  true
)

/**
 * The engine. Its `SqlClient` is for what transactional steps write: the same database in memory.
 */
export const layer = (options: Options = {}): Layer.Layer<TaskEngine | SqlClient, TaskError> =>
  Layer.effectDiscard(notice).pipe(
    Layer.provideMerge(single.layer(options)),
    Layer.provideMerge(Layer.orDie(SqliteClient.layer({ filename: ":memory:" })))
  )
