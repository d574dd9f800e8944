/** The server of the fleet in the guides: nothing of it is in the memory of one process. */
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const price = Tool.make("price", { description: "Returns the price of a tea in EUR.", input: { tea: Schema.String } })

export const Shop = McpServer.layer(
  { name: "shop", version: "1.0.0" },
  Tool.layer(price, ({ tea }) => Effect.succeed(`${tea}: 9 EUR`))
)
