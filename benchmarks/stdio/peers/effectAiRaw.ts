/**
 * The `effect/ai` server of Effect with a tool that is not in a toolkit. It is faster, since its arguments are not
 * checked.
 */
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeStdio from "@effect/platform-node/NodeStdio"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"

const tool = McpSchema.Tool.make({
  name: "greet",
  description: "Greets a person by name",
  inputSchema: { type: "object", properties: { name: { type: "string" } }, required: ["name"] }
})

const registrations = Layer.effectDiscard(Effect.flatMap(McpServer.McpServer, (server) =>
  server.addTool({
    tool,
    annotations: Context.empty(),
    handle: ({ name }: { readonly name: string }) =>
      Effect.succeed(McpSchema.CallToolResult.make({ content: [{ type: "text", text: `Hello, ${name}!` }] }))
  })))

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
