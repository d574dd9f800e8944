/**
 * A tea shop whose sales are shown as a chart with a form. `sales` is for the model, and opens the page. `add_sale` is for
 * the form of the page.
 */
import * as App from "@skein/apps/App"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const months = ["January", "February", "March", "April", "May", "June"] as const

const Sales = Schema.Struct({
  year: Schema.Int,
  months: Schema.Array(Schema.Struct({ name: Schema.String, pots: Schema.Int }))
})

/** Makes the tools for a page. */
const toolsOf = (html: string) => {
  const page = App.make("ui://tea-shop/sales", { title: "Sales", html, prefersBorder: true })
  const sales = App.tool("sales", {
    app: page,
    title: "Sales",
    description: "Shows the pots of tea that were sold in each month of a year",
    input: { year: Schema.Int },
    output: Sales,
    annotations: { readOnlyHint: true }
  })
  const addSale = App.tool("add_sale", {
    app: page,
    visibility: ["app"],
    description: "Adds sold pots of tea to a month",
    input: { year: Schema.Int, month: Schema.String, pots: Schema.Int },
    output: Sales
  })
  return { sales, addSale }
}

/** The types of the tools, for the page. */
export type Tools = ReturnType<typeof toolsOf>

/** Makes the server with the HTML of its page. */
export const makeShop = (html: string) => {
  const { addSale, sales } = toolsOf(html)
  const sold = new Map<string, number>()
  const base = [42, 38, 51, 47, 63, 58]
  const key = (year: number, month: string) => `${year} ${month}`
  const read = (year: number) => {
    const list = months.map((name, at) => ({ name, pots: base[at]! + (sold.get(key(year, name)) ?? 0) }))
    const total = list.reduce((sum, { pots }) => sum + pots, 0)
    return Tool.result({
      structured: { year, months: list },
      content: `${total} pots in ${year}: ${list.map(({ name, pots }) => `${name} ${pots}`).join(", ")}.`
    })
  }
  return McpServer.layer(
    { name: "tea-shop", version: "1.0.0", title: "The tea shop" },
    Layer.mergeAll(
      App.layer(sales, ({ year }) => Effect.sync(() => read(year))),
      App.layer(addSale, ({ month, pots, year }) =>
        !months.some((name) => name === month)
          ? Effect.fail({ message: `There is no month ${month}. Use one of ${months.join(", ")}` })
          : pots < 1 || pots > 500
          ? Effect.fail({ message: "Add 1 to 500 pots" })
          : Effect.sync(() => {
            sold.set(key(year, month), (sold.get(key(year, month)) ?? 0) + pots)
            return read(year)
          }))
    )
  )
}
