import * as McpServer from "@skein/server/McpServer"
import * as Encryption from "@skein/tasks/Encryption"
import * as PostgresTasks from "@skein/tasks/PostgresTasks"
import * as SqliteTasks from "@skein/tasks/SqliteTasks"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const where = Step.run("where", { success: Schema.Int }, () => Effect.sync(() => process.pid))
const definition = (name: string, pool?: string) =>
  Task.layer(Task.make(name, { pool, pollInterval: "50 millis" }), () => Effect.map(where, (pid) => `Baked by ${pid}`))

/** The definitions, which are the same in all processes. */
const Bakery = McpServer.layer(
  { name: "bakery", version: "1.0.0" },
  definition("bake"),
  definition("roast", "big ovens"),
  Tasks.layer()
)

// #region postgres
const engine = (options: PostgresTasks.Options) =>
  Layer.unwrap(Effect.map(Config.Redacted("DATABASE_URL"), (url) => PostgresTasks.layer({ url, ...options })))

/** The front end: it accepts calls, and workers run the tasks. */
export const Front = Layer.provide(Bakery, engine({ runTasks: false }))

/** A worker: the same definitions, without a transport. */
export const Worker = Layer.provide(Bakery, engine({}))

/** A worker on the machine with the big ovens: it runs only the tasks of that pool. */
export const BigOvens = Layer.provide(Bakery, engine({ pools: ["big ovens"] }))
// #endregion

// #region deployment
/** A worker of one deployment: the pinned tasks that it begins stay with it. */
export const December = Layer.provide(Bakery, engine({ deployment: "2026-12-01" }))
// #endregion

// #region sealed
// TASK_KEYS="<new key>,<old key>", each from `openssl rand -base64 32`.
export const Sealed = Layer.provide(
  Bakery,
  SqliteTasks.layer({ filename: "tasks.db" }).pipe(Layer.provide(Encryption.layerConfig("TASK_KEYS")))
)
// #endregion
