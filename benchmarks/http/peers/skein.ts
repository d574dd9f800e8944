/** Skein on `node:http`, with its default checks. */
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const more = Number(process.argv.find((arg) => arg.startsWith("--tools="))?.slice("--tools=".length) ?? 2) - 2

const echo = Tool.layer(
  Tool.make("echo", {
    description: "Repeats a message",
    input: { message: Schema.String, times: Schema.Int }
  }),
  ({ message, times }) => Effect.succeed(message.repeat(times))
)

const count = Tool.layer(
  Tool.make("count", { description: "Counts and reports progress", input: { to: Schema.Int } }),
  Effect.fnUntraced(function*({ to }) {
    for (let progress = 1; progress <= to; progress++) yield* Progress.report({ progress, total: to })
    return `Counted to ${to}`
  })
)

const others = Array.from({ length: more }, (_, index) =>
  Tool.layer(
    Tool.make(`tool-${index}`, {
      description: `Does thing number ${index}`,
      input: { path: Schema.String, lines: Schema.Int }
    }),
    () => Effect.succeed("")
  ))

const server = McpServer.layer({ name: "skein", version: "1.0.0" }, echo, count, ...others)

// The defaults of 10,000 are slightly too low for the numbers here.
const listening = NodeHttp.layer({
  port: 0,
  limits: { maxInFlightRequests: 20_000, maxStreams: 20_000, maxSessions: 20_000 }
})

const main = Layer.effectDiscard(Effect.map(NodeHttp.Server, ({ port }) => console.log(port))).pipe(
  Layer.provide(listening),
  Layer.provide(server)
)

await Effect.runPromise(Layer.launch(main))
