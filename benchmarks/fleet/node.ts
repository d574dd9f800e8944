/** A node of the fleet that is measured: the first line on stdout is its port. */
import * as PostgresFleet from "@skein/fleet/PostgresFleet"
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const server = McpServer.layer(
  { name: "fleet", version: "1" },
  Tool.layer(Tool.make("echo", { input: { text: Schema.String } }), ({ text }) => Effect.succeed(text)),
  Tool.layer(Tool.make("ask"), () => Effect.as(Elicitation.form("Go on?", { sure: Schema.Boolean }), "asked"))
)

const [url = "", sessions] = process.argv.slice(2)
const home = { sessions: "home", nodeRequests: { keys: ["0123456789abcdef0123456789abcdef"] } } as const

const program = Effect.scoped(Effect.gen(function*() {
  const fleet = PostgresFleet.layer({ url })
  const listening = NodeHttp.layer({ port: 0, ...(sessions === "home" && home) })
  const context = yield* Layer.build(listening.pipe(Layer.provide(server), Layer.provide(fleet)))
  console.log(Context.get(context, NodeHttp.Server).port)
  return yield* Effect.never
}))

Effect.runFork(program)
