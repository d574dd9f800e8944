/** A server as a class. */
// #region class
import { AsyncServer, VisibleError } from "skein"
import { z } from "zod"
import { priceOf } from "./teaShop.ts"

new AsyncServer({ name: "shop", version: "1.0.0" })
  .tool("price", { input: z.object({ tea: z.string() }) }, async ({ tea }, { signal }) => {
    const cents = await priceOf(tea, signal)
    // The model reads this, and can try another tea.
    if (cents === undefined) throw new VisibleError(`There is no tea "${tea}"`)
    return `${cents / 100} €`
  })
  .resource("shop://menu", { mimeType: "text/markdown" }, () => "# Tea")
  .prompt("advise", {}, () => "Recommend a tea.")
  .runHttp({ port: 3000 })
// #endregion
