/** A task whose handler returns a promise. */
import { VisibleError } from "@skein/server/HandlerError"
import * as McpServer from "@skein/server/McpServer"
import * as Task from "@skein/tasks/Task"
import * as Tasks from "@skein/tasks/Tasks"
import { z } from "zod"
import { charge, refund, ship } from "./orders.ts"

const buy = Task.async(
  Task.make("buy", { input: z.object({ tea: z.string(), cents: z.int() }), ttl: "3 days" }),
  async ({ cents, tea }, { elicit, setStatusMessage, sleep, step }) => {
    await step("charge", ({ key }) => charge(cents, key), {
      retry: { times: 5, initialDelay: "1 second" },
      // Runs if the task fails later, or is cancelled.
      compensate: (payment, { step }) => step("refund", ({ key }) => refund(payment, key))
    })
    await setStatusMessage("Paid")
    await sleep("cooling off", "1 hour")
    const answer = await elicit(`Where shall we send the ${tea}?`, z.object({ address: z.string() }))
    if (answer.action !== "accept") throw new VisibleError("No address was given, and the money is paid back")
    const { address } = answer.content
    return await step("ship", ({ key, signal }) => ship(tea, address, key, signal))
  }
)

export const Buying = McpServer.layer({ name: "buying", version: "1.0.0" }, buy, Tasks.layer())
