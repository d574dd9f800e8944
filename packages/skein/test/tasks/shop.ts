/** A shop whose task is the one of `docs/programs/promisesTasks.ts`, and which writes its effects to a file. */
import { VisibleError } from "skein"
import { sqliteTasks, task, tasks } from "skein/tasks"
import { appendFileSync } from "node:fs"
import { z } from "zod"

/** Makes the tasks of a shop in `folder`. `coolingOff` is the time before its question, in milliseconds. */
export const makeShop = (folder: string, coolingOff: number) => {
  const note = (text: string) => appendFileSync(`${folder}/effects`, `${text}\n`)
  const buy = task(
    "buy",
    { input: z.object({ tea: z.string(), cents: z.int().default(500) }), ttl: "3 days", inputFrom: "anyone" },
    async ({ cents, tea }, { elicit, setStatusMessage, sleep, step }) => {
      const payment = await step("charge", ({ key }) => {
        note(`charge ${cents} ${key.length}`)
        return { id: "payment-1", at: new Date(0) }
      }, {
        retry: { times: 5, initialDelay: "1 second" },
        compensate: (payment, { step }) => step("refund", () => note(`refund ${payment.id} ${payment.at}`))
      })
      await setStatusMessage("Paid")
      await sleep("cooling off", coolingOff)
      const answer = await elicit(`Where shall we send the ${tea}?`, z.object({ address: z.string() }))
      if (answer.action !== "accept") throw new VisibleError("No address was given, and the money is paid back")
      const { address } = answer.content
      return await step("ship", () => {
        note(`ship ${payment.id}`)
        return `${tea} is on its way to ${address}`
      })
    }
  )
  return { buy, shop: tasks(sqliteTasks({ filename: `${folder}/tasks.db`, pollInterval: 20 }), [buy]) }
}
