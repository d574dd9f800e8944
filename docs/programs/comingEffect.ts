// #region ours
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Prompt from "@skein/server/Prompt"
import * as Resource from "@skein/server/Resource"
import * as Stdio from "@skein/server/Stdio"
import * as Tool from "@skein/server/Tool"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { prices } from "./comingPrices.ts"

class NoSuchTea extends Data.TaggedError("NoSuchTea")<{ readonly message: string }> {}

const Grams = Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(100)))

const price = Tool.layer(
  Tool.make("price", { description: "Returns the price of a tea.", input: { tea: Schema.String, grams: Grams } }),
  ({ grams, tea }) => {
    const cents = prices[tea]
    return cents === undefined
      ? Effect.fail(new NoSuchTea({ message: `There is no tea "${tea}"` }))
      : Effect.succeed(`${(cents * grams) / 10_000} €`)
  }
)

const order = Tool.layer(Tool.make("order", { input: { tea: Schema.String } }), ({ tea }) =>
  Effect.gen(function*() {
    const AtLeast50 = Schema.Int.check(Schema.isGreaterThanOrEqualTo(50))
    const answer = yield* Elicitation.form(`How much ${tea}?`, { grams: AtLeast50 })
    return answer.action === "accept" ? `${answer.content.grams} g of ${tea}` : "Nothing is ordered"
  }))

const list = Resource.layer(
  Resource.make("shop://prices", { mimeType: "application/json" }),
  Effect.succeed(JSON.stringify(prices))
)

const advise = Prompt.layer(
  Prompt.make("advise", { arguments: { guest: Schema.String } }),
  ({ guest }) => Effect.succeed(`Recommend a tea to ${guest}.`)
)

Stdio.runMain(McpServer.layer({ name: "shop", version: "1.0.0" }, price, order, list, advise))
// #endregion
