import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"
import { prices } from "./comingPrices.ts"

class NoSuchTea extends Schema.TaggedError<NoSuchTea>()("NoSuchTea", { message: Schema.String }) {}

const Grams = Schema.Int.pipe(Schema.withDecodingDefaultKey(Effect.succeed(100)))

const Shop = Toolkit.make(
  Tool.make("price", {
    description: "Returns the price of a tea.",
    parameters: Schema.Struct({ tea: Schema.String, grams: Grams }),
    success: Schema.String,
    failure: NoSuchTea
  }),
  Tool.make("order", {
    parameters: Schema.Struct({ tea: Schema.String }),
    success: Schema.String,
    dependencies: [McpSchema.McpServerClient]
  })
)

const handlers = Shop.toLayer({
  price: ({ grams, tea }) => {
    const cents = prices[tea]
    return cents === undefined
      ? Effect.fail(new NoSuchTea({ message: `There is no tea "${tea}"` }))
      : Effect.succeed(`${(cents * grams) / 10_000} €`)
  },
  order: ({ tea }) =>
    McpServer.elicit({
      message: `How much ${tea}?`,
      schema: Schema.Struct({ grams: Schema.Int.check(Schema.isGreaterThanOrEqualTo(50)) })
    }).pipe(
      Effect.map(({ grams }) => `${grams} g of ${tea}`),
      Effect.catchTag("ElicitationDeclined", () => Effect.succeed("Nothing is ordered"))
    )
})

const list = McpServer.resource({
  uri: "shop://prices",
  name: "prices",
  mimeType: "application/json",
  content: Effect.succeed(JSON.stringify(prices))
})

const advise = McpServer.prompt({
  name: "advise",
  parameters: { guest: Schema.String },
  content: ({ guest }) => Effect.succeed(`Recommend a tea to ${guest}.`)
})

McpServer.layerStdio({
  name: "shop",
  version: "1.0.0",
  protocols: [McpProtocol.v2025_11_25],
  registrations: Layer.mergeAll(Layer.provide(McpServer.toolkit(Shop), handlers), list, advise)
}).pipe(
  Layer.provide([NodeStdio.layer, Logger.layer([Logger.withConsoleError(Logger.formatLogFmt)])]),
  Layer.launch,
  NodeRuntime.runMain
)
