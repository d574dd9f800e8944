// #region ours
import { AsyncServer, VisibleError } from "skein"
import { z } from "zod"
import { prices } from "./comingPrices.ts"

new AsyncServer({ name: "shop", version: "1.0.0" })
  .tool(
    "price",
    { description: "Returns the price of a tea.", input: z.object({ tea: z.string(), grams: z.int().default(100) }) },
    async ({ grams, tea }) => {
      const cents = prices[tea]
      if (cents === undefined) throw new VisibleError(`There is no tea "${tea}"`)
      return `${(cents * grams) / 10_000} €`
    }
  )
  .tool("order", { input: z.object({ tea: z.string() }) }, async ({ tea }, { elicit }) => {
    const answer = await elicit(`How much ${tea}?`, z.object({ grams: z.int().min(50) }))
    return answer.action === "accept" ? `${answer.content.grams} g of ${tea}` : "Nothing is ordered"
  })
  .resource("shop://prices", { mimeType: "application/json" }, () => JSON.stringify(prices))
  .prompt("advise", { arguments: z.object({ guest: z.string() }) }, ({ guest }) => `Recommend a tea to ${guest}.`)
  .runStdio()
// #endregion
