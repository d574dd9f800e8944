import * as GeneratedUi from "@skein/apps/GeneratedUi"
import * as Ui from "@skein/apps/Ui"
import * as UiApp from "@skein/apps/UiApp"
import { AsyncServer } from "@skein/server/AsyncServer"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const stock = new Map([["Sencha", 12], ["Earl Grey", 3], ["Darjeeling", 0]])

const teas = UiApp.tool("teas", {
  description: "Shows the teas of the shop, and lets the user order them",
  input: { contains: Schema.optionalKey(Schema.String) }
})

/** For the button of the page: models do not get it. */
const order = UiApp.tool("order", { visibility: ["app"], input: { tea: Schema.String, pots: Schema.Int } })

// #region tree
const pageOf = (contains: string) => {
  const found = [...stock].filter(([name]) => name.includes(contains))
  return Ui.column([
    Ui.heading("Teas"),
    Ui.row([
      Ui.textInput("contains", { label: "Name contains", initial: contains }),
      Ui.button("Search", { tool: teas, inputs: ["contains"] })
    ]),
    Ui.grid([
      Ui.table({ columns: ["Name", "Pots"], rows: found }),
      Ui.bar({
        title: "In stock",
        labels: found.map(([name]) => name),
        series: [{ name: "Pots", values: found.map(([, pots]) => pots) }]
      })
    ]),
    found.length === 0
      ? Ui.text("No tea has this name.", { tone: "muted" })
      : Ui.card([
        Ui.select("tea", { label: "Tea", required: true, options: found.map(([value]) => ({ value })) }),
        Ui.numberInput("pots", { label: "Pots", required: true, integer: true, min: 1, max: 9 }),
        Ui.button("Order", { tool: order, inputs: ["tea", "pots"], style: "primary" })
      ], { title: "Order" })
  ])
}
// #endregion

const Teas = UiApp.layer(teas, ({ contains = "" }) =>
  Effect.sync(() => ({
    text: `The teas and the pots in stock: ${JSON.stringify([...stock])}`,
    ui: pageOf(contains)
  })))

const Order = UiApp.layer(order, ({ pots, tea }) => {
  const left = (stock.get(tea) ?? 0) - pots
  if (left < 0) return Effect.fail({ message: `There are not ${pots} pots of ${tea}` })
  stock.set(tea, left)
  return Effect.succeed({ text: `The user has ordered ${pots} pots of ${tea}`, ui: pageOf("") })
})

// #region generated
const Generated = GeneratedUi.layer({ allowTools: [teas] })
// #endregion

export const Server = McpServer.layer({ name: "teas", version: "1.0.0" }, Teas, Order, Generated)

export const server = new AsyncServer({ name: "teas", version: "1.0.0" }).use(
  UiApp.async(teas, async ({ contains = "" }) => ({ text: `Teas with "${contains}"`, ui: pageOf(contains) }))
)
