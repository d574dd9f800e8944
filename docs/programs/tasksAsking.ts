import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

// #region several
const party = Task.layer(Task.make("party", { ttl: "14 days" }), () =>
  Effect.gen(function*() {
    const [guests, cake] = yield* Effect.all([
      Elicitation.accepted(Elicitation.form("How many guests?", { guests: Schema.Int }, { key: "guests" })),
      Elicitation.accepted(Elicitation.form("Which cake?", { cake: Schema.String }, { key: "cake" }))
    ], { concurrency: "unbounded" })
    return `${cake.cake} for ${guests.guests}`
  }))
// #endregion

// #region late
const confirm = Elicitation.accepted(
  Elicitation.form("Shall we deliver today?", { sure: Schema.Boolean }, { timeout: "8 hours" })
)

const deliver = Task.layer(Task.make("deliver", { ttl: "7 days" }), () =>
  confirm.pipe(
    Effect.map(({ sure }) => sure ? "On its way" : "Kept in the shop"),
    Effect.catchReason("InputError", "Timeout", () => Effect.succeed("No answer: kept in the shop"))
  ))
// #endregion

const fetched = Task.layer(Task.make("fetch", { ttl: "7 days" }), () =>
  Effect.raceFirst(
    Effect.as(Elicitation.accepted(Elicitation.form("Fetched?", { by: Schema.String })), "Fetched"),
    Effect.as(Step.sleep("patience", "12 hours"), "Given away")
  ))

export const Asking = McpServer.layer(
  { name: "bakery", version: "1.0.0" },
  party,
  deliver,
  fetched,
  Tasks.layer()
)
