// #region dice
import * as McpServer from "@skein/server/McpServer"
import * as Stdio from "@skein/server/Stdio"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import * as Schema from "effect/Schema"

const Sides = Schema.Int.check(Schema.isBetween({ minimum: 2, maximum: 100 }))
const roll = Tool.make("roll", {
  description: "Rolls a die.",
  input: { sides: Sides.annotate({ description: "How many sides the die has" }) },
  output: { rolled: Schema.Int }
})
const tools = Tool.layer(roll, ({ sides }) => Effect.map(Random.nextIntBetween(1, sides), (rolled) => ({ rolled })))

Stdio.runMain(McpServer.layer({ name: "dice", version: "1.0.0" }, tools))
// #endregion
