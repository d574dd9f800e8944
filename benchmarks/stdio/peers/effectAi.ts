/**
 * The `effect/ai` server of Effect: a toolkit over stdio, for both revisions. Modules are imported one by one, which
 * starts fastest.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Schema from "effect/Schema"

const toolkit = Toolkit.make(Tool.make("greet", {
  description: "Greets a person by name",
  parameters: Schema.Struct({ name: Schema.String }),
  success: Schema.String
}))

const registrations = McpServer.toolkit(toolkit).pipe(
  Layer.provide(toolkit.toLayer({ greet: ({ name }) => Effect.succeed(`Hello, ${name}!`) }))
)

const server = McpServer.layerStdio({
  name: "effect-ai",
  version: "1.0.0",
  protocols: [McpProtocol.v2025_11_25, McpProtocol.v2026_07_28],
  registrations
}).pipe(
  Layer.provide(NodeStdio.layer),
  Layer.provide(Logger.layer([Logger.withConsoleError(Logger.formatJson)]))
)

NodeRuntime.runMain(Layer.launch(server), { disableErrorReporting: true })
