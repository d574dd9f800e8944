/**
 * The long task of the tea house: it caters for a party, which takes about half a minute, and the time that its guest takes to answer.
 *
 * Kill its process at any moment, and start it again: what is done is not done again, and what was asked is still asked.
 */
import * as Elicitation from "@skein/server/Elicitation"
import * as Progress from "@skein/server/Progress"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { Kitchen } from "./kitchen.ts"
import { TeaName, teas } from "./teas.ts"

/** How many guests one pot is for. */
const perPot = 4

const definition = Task.make("cater", {
  title: "Cater for a party",
  description: "Brews for a party, pot after pot, and asks whether there shall be cake. A long task.",
  input: { guests: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 40 })), tea: TeaName }
})

export const cater = Task.layer(definition, ({ guests, tea }) =>
  Effect.gen(function*() {
    const id = yield* Task.id
    const say = yield* Kitchen
    const pots = Math.ceil(guests / perPot)
    const total = pots + 2

    /** What is done once, takes its time, and is heard when it is done. */
    const work = (name: string, done: string, seconds: number) =>
      Step.run(name, {}, () => Effect.andThen(Effect.sleep(seconds * 1000), say(id, done)))

    // What stands between the steps runs again whenever the task is picked up.
    yield* say(id, `reads the order: ${tea} for ${guests}`)
    yield* work("leaves", `took leaves for ${pots} pots from the shelf`, 1).pipe(
      Step.withCompensation((_, why) => work("leaves back", `put the leaves back, for the order was ${why}`, 0))
    )
    yield* Progress.report({ progress: 1, total, message: "The leaves are weighed" })

    yield* Task.setStatusMessage("The water comes from the spring, in six seconds")
    yield* Step.sleep("water", "6 seconds")
    yield* Progress.report({ progress: 2, total, message: "The water is there" })

    yield* Task.setStatusMessage("Waits for a word about the cake")
    const { cake } = yield* Elicitation.accepted(
      Elicitation.form("Shall there be cake with it?", { cake: Schema.Boolean })
    )

    for (let pot = 1; pot <= pots; pot++) {
      yield* Task.setStatusMessage(`Brews pot ${pot} of ${pots}, at ${teas[tea].celsius} °C`)
      yield* work(`pot ${pot}`, `brewed pot ${pot} of ${pots}`, 2)
      yield* Progress.report({ progress: 2 + pot, total, message: `Pot ${pot} of ${pots} is ready` })
    }
    yield* Task.setStatusMessage("Everything is on its way")
    return `${pots} pots of ${tea} for ${guests} guests, ${cake ? "and a cake" : "without cake"}.`
  }))
