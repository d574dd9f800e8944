import * as DevServer from "@skein/auth/DevServer"
import * as Protect from "@skein/auth/Protect"
import * as TokenVerifier from "@skein/auth/TokenVerifier"
import * as McpServer from "@skein/server/McpServer"
import * as NodeHttp from "@skein/server/NodeHttp"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const greet = Tool.make("greet", { description: "Greets a person by name.", input: { name: Schema.String } })
const tools = Tool.layer(greet, ({ name }) => Effect.succeed(`Hello, ${name}!`))

const { issuer } = await DevServer.start()
const protection = Protect.make({ resource: "http://127.0.0.1:3000/mcp", verify: TokenVerifier.jwt({ issuer }) })
NodeHttp.runMain(McpServer.layer({ name: "hello", version: "1.0.0" }, tools), { port: 3000, protection })
