// #region tools
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const Cups = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 12 }))

const bill = Tool.make("bill", {
  title: "The bill, please",
  description: "Adds up what some cups of tea cost.",
  input: {
    tea: Schema.Literals(["sencha", "oolong"]),
    cups: Cups.annotate({ description: "How many cups" })
  },
  output: { total: Schema.Finite },
  annotations: { readOnlyHint: true }
})

const prices = { sencha: 4.5, oolong: 5 }
const bills = Tool.layer(bill, ({ tea, cups }) => Effect.succeed({ total: prices[tea] * cups }))

export const TeaHouse = McpServer.layer({ name: "tea-house", version: "1.0.0" }, bills)
// #endregion
