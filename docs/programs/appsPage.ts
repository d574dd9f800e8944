// #region page
import * as View from "@skein/apps/View"
import { ViewError } from "@skein/apps/ViewError"
import type { addSale, sales } from "./apps.ts"

/** Connects the page. `draw` draws the months, and `say` shows a text. */
export const start = async (draw: (months: ReadonlyArray<number>) => void, say: (text: string) => void) => {
  const view = View.make<typeof sales, typeof addSale>({ name: "sales", version: "1.0.0" })
  view.on("result", ({ structured }) => draw(structured.months))
  await view.connect()

  return async (amount: number) => {
    try {
      const { structured } = await view.call("add_sale", { year: 2026, amount })
      draw(structured.months)
      await view.updateModelContext({ structuredContent: { months: structured.months } })
    } catch (error) {
      if (!(error instanceof ViewError)) throw error
      say(error.message)
    }
  }
}
// #endregion
