import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as TaskTools from "@skein/tasks/TaskTools"
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const accounts: Readonly<Record<string, string>> = { ada: "0815" }
const stock = { count: Effect.succeed("12 sacks, 3 crates") }

// #region plain
const count = Tool.layer(
  Tool.make("count", {
    description: "Counts the stock of the bakery. Takes a quarter of an hour.",
    execution: { taskSupport: "optional" },
    metadata: Task.policy({ ttl: "1 hour" })
  }),
  () => stock.count
)
// #endregion

// #region prepared
const order = Task.layerPrepared(
  Task.make("order", { input: { cakes: Schema.Int } }),
  Schema.String,
  // Runs in the call: the principal has its claims, and the client can be asked.
  () =>
    Effect.flatMap(McpRequest, ({ caller: { principal } }) => {
      const account = accounts[principal?.id ?? ""]
      return account === undefined ? Effect.fail({ message: "You have no account with us" }) : Effect.succeed(account)
    }),
  // Runs in the task: later, on any worker, and more than once.
  ({ cakes }, account) =>
    Effect.map(
      Elicitation.accepted(Elicitation.form(`Charge account ${account}?`, { sure: Schema.Boolean })),
      ({ sure }) => sure ? `${cakes} cakes` : "Nothing"
    )
)
// #endregion

// #region terms
const bulk = Task.layer(
  Task.make("bulk", {
    input: { cakes: Schema.Int },
    ttl: "7 days",
    pool: "big ovens",
    limits: { live: 3 },
    // A small order is done at once, so its call waits.
    asTask: ({ args }) => Number(args["cakes"]) > 100
  }),
  ({ cakes }) => Effect.succeed(`${cakes} cakes`)
)

export const tasks = Tasks.layer({
  ttl: "2 days",
  // All principals of a shop see its tasks.
  owner: ({ principal }) => principal === undefined ? null : `shop ${String(principal["shop"])}`,
  limits: { perClient: { live: 20, retained: 500 } }
})
// #endregion

// #region models
export const Bakery = McpServer.layer(
  { name: "bakery", version: "1.0.0" },
  order,
  Tasks.layer(),
  TaskTools.layer({ waitTimeout: "10 seconds" })
)
// #endregion

export const Terms = McpServer.layer({ name: "bakery", version: "1.0.0" }, count, bulk, tasks)
