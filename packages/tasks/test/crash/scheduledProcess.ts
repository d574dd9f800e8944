/** A worker with schedules, which its parent kills: each task books its schedule and its time in a transaction. */
import * as McpServer from "@skein/server/McpServer"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskSchedule from "@skein/tasks/TaskSchedule"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"

const book = Task.make("book", { input: { schedule: Schema.Int, at: Schema.String }, limits: {} })

const booking = Task.layer(book, ({ at, schedule }) =>
  Step.run("book", { transactional: true }, () =>
    Effect.flatMap(
      SqlClient,
      (sql) => Effect.orDie(sql`INSERT INTO ledger (schedule, at) VALUES (${schedule}, ${at})`)
    )))

const schedules = [0, 1, 2, 3].map((schedule) =>
  TaskSchedule.layer(`schedule ${schedule}`, book, {
    cron: "* * * * * *",
    args: { schedule },
    timeArgument: "at",
    missed: "all"
  })
)

process.on("disconnect", () => process.exit(1))
const Worker = McpServer.layer({ name: "worker", version: "1.0.0" }, booking, ...schedules, Tasks.layer())
await Effect.runPromise(Effect.scoped(Effect.gen(function*() {
  yield* Layer.build(
    Worker.pipe(
      Layer.provideMerge(PostgresTasks.layer({ url: process.env["DATABASE_URL"]!, leaseTimeout: "1 second" }))
    )
  )
  process.send?.({ ready: true })
  return yield* Effect.never
})))
