import * as App from "@skein/apps/App"
import * as AppFile from "@skein/apps/AppFile"
import * as AppHtml from "@skein/apps/AppHtml"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const salesOf = (year: number): ReadonlyArray<number> => [42, 38, year % 100]
const sum = (numbers: ReadonlyArray<number>): number => numbers.reduce((total, number) => total + number, 0)

// #region html
export const html = AppHtml.document({
  title: "Sales",
  style: "body { color: var(--color-text-primary, CanvasText); background: var(--color-background-primary, Canvas) }",
  body: "<h1>Sales</h1><p id=total></p>",
  withView: true,
  script: `
    const view = SkeinView.make({ name: "sales", version: "1.0.0" })
    view.on("result", ({ structured }) => { total.textContent = structured.months.join(", ") })
    view.connect()
  `
})
// #endregion

// #region definitions
export const page = App.make("ui://shop/sales", { title: "Sales", html, prefersBorder: true })

const Sales = { months: Schema.Array(Schema.Finite) }

export const sales = App.tool("sales", {
  app: page,
  description: "Shows the sales of a year",
  input: { year: Schema.Int },
  output: Sales
})

/** For the form of the page: models do not get it. */
export const addSale = App.tool("add_sale", {
  app: page,
  visibility: ["app"],
  input: { year: Schema.Int, amount: Schema.Finite },
  output: Sales
})
// #endregion

// #region server
export const Shop = McpServer.layer(
  { name: "shop", version: "1.0.0" },
  App.layer(sales, ({ year }) =>
    Effect.sync(() => {
      const months = salesOf(year)
      return Tool.result({ structured: { months }, content: `${sum(months)} pots of tea in ${year}` })
    })),
  App.async(addSale, async ({ amount, year }) => ({ months: [...salesOf(year), amount] }))
)
// #endregion

// #region needs
export const map = App.make("ui://shop/map", {
  html: AppFile.read(new URL("./map.html", import.meta.url)),
  csp: { connectDomains: ["https://api.example.com"], resourceDomains: ["https://tiles.example.com"] },
  permissions: ["geolocation"]
})
// #endregion

const find = App.tool("find", { app: map, input: { place: Schema.String } })

export const Find = App.layer(
  find,
  ({ place }) =>
    Effect.map(
      App.isSupported,
      (isShown) => isShown ? `${place} is shown on a map.` : `${place} is at 51.5 N, 0.1 W, 200 m from the station.`
    )
)
