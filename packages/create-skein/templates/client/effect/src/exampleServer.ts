/** A server to try the host with. Replace it in `mcp.json` by servers of yours. */
import * as Elicitation from "@skein/server/Elicitation"
import * as McpServer from "@skein/server/McpServer"
import * as Stdio from "@skein/server/Stdio"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const reserve = Tool.layer(
  Tool.make("reserve", { description: "Reserves a table. Asks for how many people.", input: { day: Schema.String } }),
  ({ day }) =>
    Effect.gen(function*() {
      const answer = yield* Elicitation.form("For how many people?", { people: Schema.Int })
      return answer.action === "accept" ? `A table for ${answer.content.people} on ${day}` : "No table is reserved"
    })
)

export const ExampleServer = McpServer.layer({ name: "example", version: "1.0.0" }, reserve)

if (process.argv[1] === import.meta.filename) Stdio.runMain(ExampleServer)
