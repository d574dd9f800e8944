import * as Catalog from "@skein/server/Catalog"
import * as CatalogTools from "@skein/server/CatalogTools"
import * as McpServer from "@skein/server/McpServer"
import * as Middleware from "@skein/server/Middleware"
import * as Resource from "@skein/server/Resource"
import * as Tool from "@skein/server/Tool"
import * as ToolSearch from "@skein/server/ToolSearch"
import * as Transform from "@skein/server/Transform"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const forecast = Tool.make("forecast", { input: { city: Schema.String } })
const cities = Resource.make("data://cities", { mimeType: "text/plain" })
const add = Tool.make("addCity", { input: { city: Schema.String } })
const known = ["Delft"]

export const weather = [
  Tool.layer(forecast, ({ city }) => Effect.succeed(`Sun in ${city}`)),
  Resource.layer(cities, Effect.sync(() => known.join("\n"))),
  Tool.layer(add, ({ city }) =>
    Effect.sync(() => known.push(city)).pipe(
      Effect.andThen(Catalog.updated("data://cities")),
      Effect.as(`Added ${city}`)
    ))
] as const

// #region mount
// A server of its own, with a middleware around its tools.
const Shop = McpServer.layer(
  { name: "shop", version: "1.0.0" },
  Middleware.callTool((_, next) =>
    Effect.map(next(), (result) => ({ ...result, _meta: { "example.com/shop": "Delft" } }))
  ),
  Tool.layer(Tool.make("order"), () => Effect.succeed("Ordered"))
)

export const Home = McpServer.layer(
  { name: "home", version: "1.0.0" },
  McpServer.mount("weather", ...weather),
  McpServer.mount({ prefix: "shop", separator: "." }, Shop)
)
// #endregion

// #region transform
const search = Tool.make("searchProducts", {
  tags: ["read"],
  input: { q: Schema.String, tenant: Schema.String, limit: Schema.optionalKey(Schema.Int) }
})
const remove = Tool.make("removeProduct", { tags: ["write"], input: { id: Schema.String } })

export const ReadOnly = McpServer.layer(
  { name: "products", version: "1.0.0" },
  Transform.tools(
    {
      except: { tags: ["write"] },
      change: {
        searchProducts: {
          name: "find_tea",
          description: "Finds teas by their names.",
          arguments: {
            q: { name: "query", description: "Words of the name" },
            tenant: { value: "tea-shop" },
            limit: { default: 10 }
          }
        }
      }
    },
    Tool.layer(search, (input) => Effect.succeed(JSON.stringify(input))),
    Tool.layer(remove, ({ id }) => Effect.succeed(`Removed ${id}`))
  )
)
// #endregion

export const Office = McpServer.layer(
  { name: "office", version: "1.0.0" },
  ToolSearch.layer(
    { above: 2, always: ["forecast"] },
    ...weather,
    Tool.layer(Tool.make("invoice", { description: "Writes an invoice" }), () => Effect.succeed("Written"))
  )
)

export const ForToolsOnly = McpServer.layer({ name: "notes", version: "1.0.0" }, ...weather, CatalogTools.layer())
