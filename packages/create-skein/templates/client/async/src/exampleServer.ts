/** A server to try the host with. Replace it in `mcp.json` by servers of yours. */
import * as McpServer from "@skein/server/McpServer"
import * as Stdio from "@skein/server/Stdio"
import * as Tool from "@skein/server/Tool"
import { z } from "zod"

const reserve = Tool.async(
  Tool.make("reserve", {
    description: "Reserves a table. Asks for how many people.",
    input: z.object({ day: z.string() })
  }),
  async ({ day }, { elicit }) => {
    const answer = await elicit("For how many people?", z.object({ people: z.int() }))
    return answer.action === "accept" ? `A table for ${answer.content.people} on ${day}` : "No table is reserved"
  }
)

export const ExampleServer = McpServer.layer({ name: "example", version: "1.0.0" }, reserve)

if (process.argv[1] === import.meta.filename) Stdio.runMain(ExampleServer)
