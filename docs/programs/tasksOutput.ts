/** A report that is read while it is written. */
import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import { TaskEngine } from "@skein/tasks/TaskEngine"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"

/** Writes a chapter with a model, which takes minutes. */
const write = (chapter: number) => Effect.succeed(`The text of chapter ${chapter}`)

// #region emit
const report = Task.layer(
  Task.make("report", { input: { chapters: Schema.Int }, ttl: "1 day" }),
  ({ chapters }) =>
    Effect.gen(function*() {
      for (let chapter = 1; chapter <= chapters; chapter++) {
        const text = yield* Step.run(`chapter ${chapter}`, { success: Schema.String }, () => write(chapter))
        yield* Task.emit({ chapter, text })
      }
      return `${chapters} chapters`
    })
)
// #endregion

// #region follow
/** Shows the chapters from an offset on, until the task has ended. */
export const show = (id: string, from: number) =>
  Effect.flatMap(TaskEngine, (engine) =>
    Stream.runForEach(
      engine.followOutput(id, { from }),
      ({ offset, value }) => Effect.logInfo(`item ${offset}`, value)
    ))
// #endregion

export const Reports = McpServer.layer({ name: "reports", version: "1.0.0" }, report, Tasks.layer())
