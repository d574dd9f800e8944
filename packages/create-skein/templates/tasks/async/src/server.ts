/** The server: a task that places an order. `main.ts` starts it, with a store for its tasks. */
import { AsyncServer, type Duration, VisibleError } from "skein"
import { task, tasks, type TaskStore } from "skein/tasks"
import { z } from "zod"
import * as warehouse from "./warehouse.ts"

/** The server. Its tasks are in a store, which `main.ts` and the tests choose. Packing an order takes `packingTime`. */
export const makeServer = (store: TaskStore, packingTime: Duration): AsyncServer => {
  const order = task(
    "order",
    {
      description: "Orders goods. Asks for the address when they are packed.",
      input: z.object({ item: z.string().min(1), quantity: z.int().min(1).max(100) }),
      ttl: "3 days"
    },
    async ({ item, quantity }, { elicit, setStatusMessage, sleep, step }) => {
      // A step runs once, and its result is stored. After a crash the task continues after its last step.
      const reservation = await step("reserve", ({ key }) => warehouse.reserve(item, quantity, key), {
        // Runs if the task fails later, or is cancelled.
        compensate: (reservation, { step }) => step("release", () => warehouse.release(reservation))
      })
      await setStatusMessage(`${quantity} of ${item} are packed`)
      await sleep("packing", packingTime)
      const answer = await elicit(`Where shall we send ${quantity} of ${item}?`, z.object({ address: z.string() }))
      if (answer.action !== "accept") {
        // The client receives the message of a VisibleError.
        throw new VisibleError("No address was given, and the reservation is released")
      }
      const { address } = answer.content
      const parcel = await step("ship", () => warehouse.ship(reservation, address))
      return `${quantity} of ${item} are on their way as ${parcel}`
    }
  )
  return new AsyncServer({ name: "skein-template", version: "1.0.0" }).use(tasks(store, [order]))
}
