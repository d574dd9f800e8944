/**
 * Tasks that end with the process: the same engine as the others, on a SQLite database in memory. For tests, and for
 * servers whose tasks may be lost at a restart. The engine logs that at its start, on stderr: on stdio, stdout belongs
 * to the protocol.
 *
 * @example
 * McpServer.layer({ name: "bakery", version: "1.0.0" }, report, Tasks.layer()).pipe(
 *   Layer.provide(MemoryTasks.layer()))
 */
import * as ProcessLocal from "@skein/runtime/ProcessLocal"
import * as SqliteClient from "@skein/sql/SqliteClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as References from "effect/References"
import type { SqlClient } from "effect/sql/SqlClient"
import { hostname } from "node:os"
import * as engine from "./internal/engine/engine.ts"
import type { TaskAdmin } from "./TaskAdmin.ts"
import type * as TaskEngine from "./TaskEngine.ts"
import type { TaskError } from "./TaskError.ts"
import type { TaskSchedules } from "./TaskSchedules.ts"

/** The options of the engine. */
export interface Options extends TaskEngine.Options {}

/** Written while the server is built, before stdout is guarded. */
const notice = Effect.provideService(
  Effect.logInfo("tasks are stored in memory and end with this process"),
  References.LogToStderr,
  true
)

const inMemory = { what: "the tasks of MemoryTasks", remedy: "use SqliteTasks or PostgresTasks" }

/**
 * The engine, `TaskAdmin`, `TaskSchedules`, and the `SqlClient` for transactional steps: the same database in memory.
 *
 * @example
 * const Engine = MemoryTasks.layer({ pollInterval: "100 millis" })
 */
export const layer = (
  options: Options = {}
): Layer.Layer<TaskEngine.TaskEngine | TaskAdmin | TaskSchedules | SqlClient, TaskError> =>
  Layer.effectDiscard(Effect.andThen(ProcessLocal.report(inMemory), notice)).pipe(
    Layer.provideMerge(engine.layerSingle({ ...options, host: hostname(), pid: process.pid })),
    Layer.provideMerge(Layer.orDie(SqliteClient.layer({ filename: ":memory:" })))
  )
