/** Definitions as values, and a server of them. */
import { AsyncServer, prompt, resource, tool, VisibleError } from "skein"
import { z } from "zod"
import { priceOf, prices } from "./teaShop.ts"

const list = resource(
  "shop://prices",
  { mimeType: "application/json" },
  async ({ signal }) => JSON.stringify(await prices(signal))
)

const advise = prompt(
  "advise",
  { arguments: z.object({ guest: z.string() }) },
  ({ guest }) => `Recommend a tea to ${guest}. Ask for the price of each tea that you name.`
)
// #region context
const order = tool(
  "order",
  { input: z.object({ tea: z.string() }) },
  async ({ tea }, { elicit, log, once, principal, progress }) => {
    log.info("an order", { tea, by: principal?.id })
    const number = await once("number", () => crypto.randomUUID())
    const answer = await elicit(`Order ${tea}?`, z.object({ grams: z.int().min(50).max(1000) }))
    if (answer.action !== "accept") return "Nothing is ordered"
    await progress({ progress: 1, total: 2, message: "packed" })
    return `Order ${number.slice(0, 4)}: ${answer.content.grams} g of ${tea}`
  }
)
// #endregion

const price = tool(
  "price",
  {
    description: "Returns the price of a tea.",
    input: z.object({ tea: z.string(), grams: z.int().positive().default(100) })
  },
  async ({ grams, tea }, { signal }) => {
    const cents = await priceOf(tea, signal)
    // The model reads this, and can try another tea.
    if (cents === undefined) throw new VisibleError(`There is no tea "${tea}". Read shop://prices for all teas`)
    return `${(cents * grams) / 10_000} €`
  }
)

export const shop = new AsyncServer({ name: "shop", version: "1.0.0" }).use(price, list, advise, order)
