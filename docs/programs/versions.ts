import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as ToolVersions from "@skein/server/ToolVersions"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

// #region versions
const price = ToolVersions.layer(
  Tool.layer(
    Tool.make("price", { version: "1.0", input: { cups: Schema.Int } }),
    ({ cups }) => Effect.succeed(`${cups * 4} euros`)
  ),
  Tool.layer(
    Tool.make("price", { version: "2.0", input: { cups: Schema.Int, tea: Schema.String } }),
    ({ cups, tea }) => Effect.succeed(`${cups * (tea === "oolong" ? 5 : 4)} euros for ${tea}`)
  )
)
// #endregion

export const Prices = McpServer.layer({ name: "prices", version: "1.0.0" }, price)
