/**
 * A durable task: it prepares tea for a party, which takes about half a minute, and asks the user a question on the
 * way.
 *
 * Kill its process at any moment and start it again. Completed steps are not repeated, and a pending question stays
 * open.
 */
import * as Elicitation from "@skein/server/Elicitation"
import * as Progress from "@skein/server/Progress"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { KitchenLog } from "./kitchenLog.ts"
import { TeaName, teas } from "./teas.ts"

/** How many guests one pot serves. */
const guestsPerPot = 4

const definition = Task.make("cater", {
  title: "Cater for a party",
  description: "Brews pots of tea for a party and asks whether to serve cake. Takes about 30 seconds.",
  input: { guests: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 })), tea: TeaName }
})

export const cater = Task.layer(definition, ({ guests, tea }) =>
  Effect.gen(function*() {
    const id = yield* Task.id
    const log = yield* KitchenLog
    const pots = Math.ceil(guests / guestsPerPot)
    const total = pots + 2

    /**
     * A step that takes some seconds and logs its completion. A completed step is not repeated when the task is
     * resumed.
     */
    const step = (name: string, done: string, seconds: number) =>
      Step.run(name, {}, () => Effect.andThen(Effect.sleep(seconds * 1000), log(id, done)))

    // Code between the steps runs again each time the task is resumed.
    yield* log(id, `reads the order: ${tea} for ${guests}`)
    yield* step("leaves", `took leaves for ${pots} pots from the shelf`, 1).pipe(
      Step.withCompensation((_, why) => step("leaves back", `put the leaves back: the order was ${why}`, 0))
    )
    yield* Progress.report({ progress: 1, total, message: "The leaves are weighed" })

    yield* Task.setStatusMessage("Waiting six seconds for the water")
    yield* Step.sleep("water", "6 seconds")
    yield* Progress.report({ progress: 2, total, message: "The water is ready" })

    yield* Task.setStatusMessage("Waiting for an answer about the cake")
    const { cake } = yield* Elicitation.accepted(
      Elicitation.form("Would you like cake?", { cake: Schema.Boolean })
    )

    for (let pot = 1; pot <= pots; pot++) {
      yield* Task.setStatusMessage(`Brewing pot ${pot} of ${pots} at ${teas[tea].celsius} °C`)
      yield* step(`pot ${pot}`, `brewed pot ${pot} of ${pots}`, 2)
      yield* Progress.report({ progress: 2 + pot, total, message: `Pot ${pot} of ${pots} is ready` })
    }
    yield* Task.setStatusMessage("The order is complete")
    return `${pots} pots of ${tea} for ${guests} guests, ${cake ? "with cake" : "without cake"}.`
  }))
