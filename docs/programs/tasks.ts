// #region first
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Progress from "@skein/server/Progress"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { bakeOne, orderFlour } from "./mill.ts"

const bake = Task.make("bake", {
  description: "Bakes cakes. Takes half a day, and asks before the oven is lit.",
  input: { cakes: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 20 })) },
  ttl: "3 days"
})

const baking = Task.layer(bake, ({ cakes }) =>
  Effect.gen(function*() {
    const flour = yield* Step.run("flour", { success: Schema.String }, (key) => orderFlour(cakes, key))
    yield* Task.setStatusMessage("The dough rests")
    yield* Step.sleep("rest", "2 hours")
    const { sure } = yield* Elicitation.accepted(Elicitation.form("Light the oven?", { sure: Schema.Boolean }))
    if (!sure) return "Nothing was baked"
    for (let cake = 1; cake <= cakes; cake++) {
      yield* Task.setStatusMessage(`Bakes cake ${cake} of ${cakes}`)
      yield* Step.run(`bake ${cake}`, {}, () => bakeOne)
      yield* Progress.report({ progress: cake, total: cakes })
    }
    return `${cakes} cakes of ${flour}`
  }))

export const Bakery = McpServer.layer({ name: "bakery", version: "1.0.0" }, baking, Tasks.layer())
// #endregion
