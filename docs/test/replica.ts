/** A server that runs twice behind a proxy, configured by its environment as the recipes say; with `DATABASE_URL`, as a fleet. */
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Progress from "@skein/server/Progress"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"

const pid = String(process.pid)

const server = McpServer.layer(
  { name: "shop", version: "1.0.0" },
  Tool.layer(Tool.make("process"), () => Effect.succeed(pid)),
  Tool.layer(
    Tool.make("silent", { input: { seconds: Schema.Int } }),
    ({ seconds }) => Effect.as(Effect.sleep(`${seconds} seconds`), "woke up")
  ),
  Tool.layer(
    Tool.make("steps"),
    () => Effect.as(Effect.forEach([1, 2, 3], (progress) => Progress.report({ progress })), "done")
  ),
  Tool.layer(
    Tool.make("upload", { input: { text: Schema.String } }),
    ({ text }) => Effect.succeed(`${text.length}`)
  ),
  Tool.layer(
    Tool.make("ask"),
    () =>
      Effect.gen(function*() {
        const { name } = yield* Elicitation.accepted(
          Elicitation.form("Who?", Elicitation.make({ name: Schema.String }))
        )
        const { town } = yield* Elicitation.accepted(
          Elicitation.form("Where?", Elicitation.make({ town: Schema.String }))
        )
        return `${name} of ${town}`
      })
  )
)

const url = process.env["DATABASE_URL"]
if (url === undefined) NodeHttp.runMain(server)
else {
  const { layer } = await import("@skein/fleet/PostgresFleet")
  NodeHttp.runMain(Layer.provideMerge(server, layer({ url })))
}
