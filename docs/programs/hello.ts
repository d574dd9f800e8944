/** The server that the programs about HTTP mount. */
import * as McpServer from "@skein/server/McpServer"
import * as Principal from "@skein/server/Principal"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

const greet = Tool.layer(
  Tool.make("greet", { description: "Greets a person by name.", input: { name: Schema.String } }),
  ({ name }) => Effect.succeed(`Hello, ${name}!`)
)

const whoami = Tool.layer(
  Tool.make("whoami", { description: "Returns the id of the caller." }),
  () => Effect.map(Principal.current, Option.match({ onNone: () => "anonymous", onSome: ({ id }) => id }))
)

export const Hello = McpServer.layer({ name: "hello", version: "1.0.0" }, greet, whoami)
