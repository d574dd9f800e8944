import * as McpServer from "@skein/server/McpServer"
import * as Stdio from "@skein/server/Stdio"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const greet = Tool.layer(
  Tool.make("greet", { description: "Greets a person by name.", input: { name: Schema.String } }),
  ({ name }) => Effect.succeed(`Hello, ${name}!`)
)

Stdio.runMain(McpServer.layer({ name: "hello", version: "1.0.0" }, greet))
