/** A program beside the server of a SQLite file. */
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import { TaskAdmin } from "@skein/tasks/TaskAdmin"
import * as Effect from "effect/Effect"

// #region beside
/** The tasks of a file that have failed, and their reasons. The server of the file may run. */
export const failures = (filename: string) =>
  Effect.gen(function*() {
    const { list } = yield* TaskAdmin
    const failed = yield* list({ hasFailed: true }, { limit: 20 })
    return failed.map(({ state: { id, statusMessage, tool } }) => ({ id, tool, reason: statusMessage }))
  }).pipe(Effect.provide(SqliteTasks.layerAdmin({ filename })))
// #endregion
