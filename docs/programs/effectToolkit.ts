import * as Client from "@skein/client/Client"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Tool from "@skein/server/Tool"
import * as ToolkitTools from "@skein/server/ToolkitTools"
import * as LanguageModel from "effect/ai/LanguageModel"
import * as AiTool from "effect/ai/Tool"
import * as AiToolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const Brew = AiTool.make("brew", {
  description: "Returns how to brew a tea",
  parameters: Schema.Struct({ tea: Schema.String }),
  success: Schema.Struct({ minutes: Schema.Int, celsius: Schema.Int })
}).annotate(AiTool.Readonly, true)

export const Teas = AiToolkit.make(Brew)

export const TeasLive = Teas.toLayer({
  brew: ({ tea }) => Effect.succeed(tea === "Sencha" ? { minutes: 2, celsius: 70 } : { minutes: 4, celsius: 95 })
})

// #region server
export const TeaServer = McpServer.layer({ name: "tea", version: "1.0.0" }, ToolkitTools.layer(Teas)).pipe(
  Layer.provide(TeasLive)
)
// #endregion

const weigh = Tool.make("weigh", {
  description: "Returns the grams of tea for some cups",
  input: { cups: Schema.Int },
  output: { grams: Schema.Finite }
})
const weighing = ({ cups }: { readonly cups: number }) => Effect.succeed({ grams: cups * 2.5 })

/** For clients. */
export const Weigh = Tool.layer(weigh, weighing)

/** For a language model in this process. */
export const recipe = Effect.gen(function*() {
  const toolkit = yield* ToolkitTools.make(ToolkitTools.bind(weigh, weighing))
  const { content } = yield* LanguageModel.generateText({ prompt: "How much tea for 4 cups?", toolkit })
  return content
})

/** All tools of a server for a language model in this process: with middleware, and handlers that need the request. */
export const recipeOfServer = Effect.gen(function*() {
  const { serve } = yield* McpServer.McpServer
  const client = yield* Client.make(InMemoryTransport.transport(serve))
  const toolkit = yield* Client.toolkit(client)
  const { content } = yield* LanguageModel.generateText({ prompt: "How long does Sencha brew?", toolkit })
  return content
})
