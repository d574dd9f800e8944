import * as Progress from "@skein/server/Progress"
import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as SqlClient from "effect/sql/SqlClient"
import { bakeOne } from "./mill.ts"

export const tries: Array<string> = []

class NoFlour extends Schema.TaggedError<NoFlour>()("NoFlour", { message: Schema.String }) {}

class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}

const order = (kilos: number, key: string): Effect.Effect<{ readonly kilos: number }, NoFlour | Refused> =>
  Effect.suspend(() =>
    tries.push(key) < 3 ? Effect.fail(new NoFlour({ message: "The mill is closed" })) : Effect.succeed({ kilos })
  )

// #region retry
const flour = (kilos: number) =>
  Step.run("flour", {
    success: Schema.Struct({ kilos: Schema.Int }),
    error: Schema.Union([NoFlour, Refused]), // Two `Schema.TaggedError`
    timeout: "30 seconds",
    retry: { times: 8, while: (error) => error._tag !== "Refused" }
  }, (key) => order(kilos, key))
// #endregion

// #region transactional
const book = (order: string, kilos: number) =>
  Step.run(
    "book",
    { transactional: true },
    () =>
      Effect.flatMap(
        SqlClient.SqlClient,
        (sql) => Effect.orDie(sql`INSERT INTO orders (id, kilos) VALUES (${order}, ${kilos})`)
      )
  )

// The program's tables are in the same database as those of the engine. Of two workers that create one at once on
// PostgreSQL, one fails, and finds the table when it tries again.
export const Orders = Layer.effectDiscard(
  Effect.flatMap(
    SqlClient.SqlClient,
    (sql) =>
      Effect.orDie(Effect.retry(
        sql`CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, kilos INTEGER NOT NULL)`,
        { times: 1 }
      ))
  )
)
// #endregion

// #region heartbeat
const bakeAll = (count: number) =>
  Step.run("bake all", { heartbeatTimeout: "1 minute", retry: { times: 3 } }, () =>
    Effect.gen(function*() {
      const baked = yield* Step.lastHeartbeat
      for (let cake = typeof baked === "number" ? baked : 0; cake < count; cake++) {
        yield* bakeOne
        yield* Step.heartbeat(cake + 1)
      }
    }))
// #endregion

// #region between
const today = Effect.map(Clock.currentTimeMillis, (now) => new Date(now).toISOString().slice(0, 10))

// `yield* today` alone could be another day when the body runs again, and then take another branch.
const day = Step.run("day", { success: Schema.String }, () => today)
// #endregion

const importFile = (file: string) => Effect.succeed(file.length)

// #region query
const importing = Task.layer(
  Task.make("import", { input: { files: Schema.Array(Schema.String) } }),
  ({ files }) =>
    Effect.gen(function*() {
      const rows: Record<string, number> = {}
      yield* Task.query("progress", () => ({ rows, left: files.length - Object.keys(rows).length }))
      for (const file of files) rows[file] = yield* Step.run(file, { success: Schema.Int }, () => importFile(file))
      return `${files.length} files`
    })
)
// #endregion

const cakes = (count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => index + 1),
    (cake) => Step.run(`bake ${cake}`, {}, () => bakeOne),
    { concurrency: 3, discard: true }
  )

export const Stepping = McpServer.layer(
  { name: "bakery", version: "1.0.0" },
  Task.layer(Task.make("order", { input: { count: Schema.Int } }), ({ count }) =>
    Effect.gen(function*() {
      const { kilos } = yield* flour(count)
      yield* book(yield* Task.id, kilos)
      yield* cakes(count)
      yield* bakeAll(count)
      yield* Progress.report({ progress: 1 })
      return `${count} cakes, ${yield* day}`
    })),
  importing,
  Tasks.layer()
).pipe(Layer.provide(Orders))
