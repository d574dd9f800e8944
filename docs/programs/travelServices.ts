/** The services that the tasks of the travel office call, and what they were asked. */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

export class Unavailable extends Schema.TaggedError<Unavailable>()("Unavailable", { message: Schema.String }) {}

export const calls = { figures: 0, mails: new Array<string>(), undone: new Array<string>(), reminders: 0, paid: 0 }

/** The figures of one customer in fifty are not there. */
export const figuresOf = (customer: number) =>
  Effect.suspend(() => {
    calls.figures++
    return customer % 50 === 7
      ? Effect.fail(new Unavailable({ message: `no figures of ${customer}` }))
      : Effect.succeed(customer * 2)
  })
export const mail = (key: string, at: string) => Effect.sync(() => void calls.mails.push(`${key} ${at}`))
export const archive: Effect.Effect<void> = Effect.void
export const remind = (_who: string) => Effect.sync(() => void calls.reminders++)
export const pay = Effect.sync(() => void calls.paid++)

/** No car is left, and the airline takes no booking back. */
export const book = (what: string, key: string) =>
  what === "car" ? Effect.fail(new Unavailable({ message: "no car is left" })) : Effect.succeed(`${what} ${key}`)
export const undo = (what: string, _id: string) =>
  what === "flight"
    ? Effect.fail(new Unavailable({ message: "the airline does not answer" }))
    : Effect.sync(() => void calls.undone.push(what))
