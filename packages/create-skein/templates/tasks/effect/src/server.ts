/** The server: a task that places an order. `main.ts` starts it, with a store for its tasks. */
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Step from "@skein/tasks/Step"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import * as Data from "effect/Data"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as warehouse from "./warehouse.ts"

/** The client receives the message of a tagged error. */
class NotShipped extends Data.TaggedError("NotShipped")<{ readonly message: string }> {}

const order = Task.make("order", {
  description: "Orders goods. Asks for the address when they are packed.",
  input: { item: Schema.NonEmptyString, quantity: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100 })) },
  ttl: "3 days"
})

/** The server. Packing an order takes `packingTime`. */
export const makeServer = (packingTime: Duration.Input) =>
  McpServer.layer(
    { name: "skein-template", version: "1.0.0" },
    Task.layer(order, ({ item, quantity }) =>
      Effect.gen(function*() {
        // A step runs once, and its result is stored. After a crash the task continues after its last step.
        const reservation = yield* Step.run(
          "reserve",
          { success: Schema.String },
          (key) => Effect.promise(() => warehouse.reserve(item, quantity, key))
        ).pipe(
          // Runs if the task fails later, or is cancelled.
          Step.withCompensation((reservation) =>
            Step.run("release", {}, () => Effect.promise(() => warehouse.release(reservation)))
          )
        )
        yield* Task.setStatusMessage(`${quantity} of ${item} are packed`)
        yield* Step.sleep("packing", packingTime)
        const answer = yield* Elicitation.form(`Where shall we send ${quantity} of ${item}?`, {
          address: Schema.String
        })
        if (answer.action !== "accept") {
          return yield* new NotShipped({ message: "No address was given, and the reservation is released" })
        }
        const { address } = answer.content
        const parcel = yield* Step.run(
          "ship",
          { success: Schema.String },
          () => Effect.promise(() => warehouse.ship(reservation, address))
        )
        return `${quantity} of ${item} are on their way as ${parcel}`
      })),
    Tasks.layer()
  )
