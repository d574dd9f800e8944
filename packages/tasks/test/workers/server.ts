/** The server of the tests of tasks in workers: its tasks write down what they do. */
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Tool from "@skein/server/Tool"
import * as Elicitation from "@skein/server/Elicitation"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { SqlClient } from "effect/sql/SqlClient"
import { appendFileSync, existsSync } from "node:fs"
import { join } from "node:path"

const { folder, ...options } = JSON.parse(process.argv[2]!) as { readonly folder: string }

const write = (line: string) => Effect.sync(() => appendFileSync(join(folder, "steps"), `${process.pid} ${line}\n`))
const untilFile = (name: string) =>
  Effect.repeat(Effect.delay(Effect.sync(() => existsSync(join(folder, name))), "20 millis"), {
    until: (found) => found
  })

/** Two steps. The second one waits for a file. */
const bake = Task.layer(Task.make("bake", { input: { name: Schema.String } }), ({ name }) =>
  Effect.gen(function*() {
    yield* Step.run("first", {}, () => write(`${name} first`))
    yield* Step.run("second", {}, () => Effect.andThen(write(`${name} second`), untilFile(name)))
    return `${name} baked`
  }))

/** A transactional step. */
const count = Task.layer(
  Task.make("count"),
  () =>
    Step.run("count", { success: Schema.Int, transactional: true }, () =>
      Effect.gen(function*() {
        const sql = yield* SqlClient
        yield* sql`CREATE TABLE IF NOT EXISTS counts (n INTEGER)`
        yield* sql`INSERT INTO counts VALUES (1)`
        yield* Effect.sleep("20 millis")
        const [row] = yield* sql<{ readonly n: number }>`SELECT COUNT(*) AS n FROM counts`
        return row!.n
      }).pipe(Effect.orDie)).pipe(Effect.map(String))
)

const order = Task.layer(Task.make("order"), () =>
  Effect.map(
    Elicitation.accepted(Elicitation.form("How many?", { cakes: Schema.Int })),
    ({ cakes }) => `${cakes} ordered`
  ))

const pid = Tool.layer(Tool.make("pid"), () => Effect.sync(() => String(process.pid)))

NodeHttp.runMain(
  McpServer.layer({ name: "bakery", version: "1.0.0" }, bake, count, order, pid, Tasks.layer()).pipe(
    Layer.provideMerge(SqliteTasks.layer({ filename: join(folder, "tasks.db") }))
  ),
  options
)
