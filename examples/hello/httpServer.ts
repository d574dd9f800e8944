import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const greet = Tool.make("greet", { description: "Greets a person by name.", input: { name: Schema.String } })
const tools = Tool.layer(greet, ({ name }) => Effect.succeed(`Hello, ${name}!`))

NodeHttp.runMain(McpServer.layer({ name: "hello", version: "1.0.0" }, tools), { port: 3000 })
