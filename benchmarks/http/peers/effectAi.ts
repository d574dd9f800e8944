/** The `effect/ai` server of Effect: a toolkit over HTTP, for both revisions in one process. */
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as McpServer from "effect/ai/McpServer"
import * as Tool from "effect/ai/Tool"
import * as Toolkit from "effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"

const more = Number(process.argv.find((arg) => arg.startsWith("--tools="))?.slice("--tools=".length) ?? 2) - 2

const toolkit = Toolkit.make(
  Tool.make("echo", {
    description: "Repeats a message",
    parameters: Schema.Struct({ message: Schema.String, times: Schema.Int }),
    success: Schema.String
  }),
  Tool.make("count", {
    description: "Counts and reports progress",
    parameters: Schema.Struct({ to: Schema.Int }),
    success: Schema.String,
    dependencies: [McpSchema.McpRequestContext]
  })
)

const handlers = toolkit.toLayer(Effect.map(McpServer.McpServer, ({ notifications }) => ({
  echo: ({ message, times }) => Effect.succeed(message.repeat(times)),
  count: Effect.fnUntraced(function*({ to }) {
    const { requestMetadata } = yield* McpSchema.McpRequestContext
    const progressToken = requestMetadata?.["progressToken"] as string | number | undefined
    if (progressToken !== undefined) {
      for (let progress = 1; progress <= to; progress++) {
        yield* notifications["notifications/progress"]({ progressToken, progress, total: to })
      }
    }
    return `Counted to ${to}`
  })
})))

const others = Toolkit.make(...Array.from({ length: more }, (_, index) =>
  Tool.make(`tool-${index}`, {
    description: `Does thing number ${index}`,
    parameters: Schema.Struct({ path: Schema.String, lines: Schema.Int }),
    success: Schema.String
  })))
const otherHandlers = others.toLayer(
  Object.fromEntries(Array.from({ length: more }, (_, index) => [`tool-${index}`, () => Effect.succeed("")]))
)

const endpoint = McpServer.layerHttp({
  name: "effect-ai",
  version: "1.0.0",
  path: "/mcp",
  protocols: [McpProtocol.v2025_11_25, McpProtocol.v2026_07_28],
  registrations: Layer.mergeAll(
    McpServer.toolkit(toolkit).pipe(Layer.provide(handlers)),
    McpServer.toolkit(others).pipe(Layer.provide(otherHandlers))
  )
})

const http = createServer()
http.once("listening", () => console.log((http.address() as AddressInfo).port))

const server = HttpRouter.serve(endpoint, { disableLogger: true, disableListenLog: true }).pipe(
  Layer.provide(NodeHttpServer.layer(() => http, { host: "127.0.0.1", port: 0 }))
)

NodeRuntime.runMain(Layer.launch(server), { disableErrorReporting: true })
