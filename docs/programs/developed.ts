// #region server
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const brew = Tool.layer(
  Tool.make("brew", { description: "Brews a pot of tea.", input: { tea: Schema.String } }),
  ({ tea }) => Effect.succeed(`A pot of ${tea}`)
)

export const TeaHouse = McpServer.layer({ name: "tea-house", version: "1.0.0" }, brew)
// #endregion
