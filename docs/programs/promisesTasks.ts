/** A task whose handler returns a promise. */
import { type Duration, VisibleError } from "skein"
import { task, type TaskDefinition } from "skein/tasks"
import { z } from "zod"
import { charge, refund, ship } from "./orders.ts"

const input = z.object({ tea: z.string(), cents: z.int() })

/** Buys a tea, which is sent after a time to cool off. */
export const makeBuy = (coolingOff: Duration): TaskDefinition<z.input<typeof input>> =>
  task("buy", { input, ttl: "3 days" }, async ({ cents, tea }, { elicit, setStatusMessage, sleep, step }) => {
    await step("charge", ({ key }) => charge(cents, key), {
      retry: { times: 5, initialDelay: "1 second" },
      // Runs if the task fails later, or is cancelled.
      compensate: (payment, { step }) => step("refund", ({ key }) => refund(payment, key))
    })
    await setStatusMessage("Paid")
    await sleep("cooling off", coolingOff)
    const answer = await elicit(`Where shall we send the ${tea}?`, z.object({ address: z.string() }))
    if (answer.action !== "accept") throw new VisibleError("No address was given, and the money is paid back")
    const { address } = answer.content
    return await step("ship", ({ key, signal }) => ship(tea, address, key, signal))
  })
