/** A server to try the host with. Replace it in `mcp.json` by servers of yours. */
import { AsyncServer } from "skein"
import { z } from "zod"

export const exampleServer = new AsyncServer({ name: "example", version: "1.0.0" }).tool(
  "reserve",
  { description: "Reserves a table. Asks for how many people.", input: z.object({ day: z.string() }) },
  async ({ day }, { elicit }) => {
    const answer = await elicit("For how many people?", z.object({ people: z.int() }))
    return answer.action === "accept" ? `A table for ${answer.content.people} on ${day}` : "No table is reserved"
  }
)

if (process.argv[1] === import.meta.filename) exampleServer.runStdio()
