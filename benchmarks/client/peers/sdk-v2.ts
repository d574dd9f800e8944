/**
 * `@modelcontextprotocol/client` 2. In the session era with its defaults, which know that era only; for the other with `auto`, its way to
 * find out what a server speaks.
 */
import { Client, type ConnectOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { type Connect, textOf, together } from "../face.ts"

export const connect: Connect = async ({ era, kept, url }) => {
  const client = new Client(
    { name: "bench", version: "1.0.0" },
    era === "session" ? {} : { versionNegotiation: { mode: "auto" } }
  )
  const options: ConnectOptions = kept === undefined ? {} : { prior: kept as NonNullable<ConnectOptions["prior"]> }
  await client.connect(new StreamableHTTPClientTransport(new URL(url)), options)
  return {
    discover: async () => void await client.listTools(),
    drive: (job, inFlight, turns) =>
      together(inFlight, async () => {
        for (let turn = turns.next(); turn !== undefined; turn = turns.next()) {
          if (job === "greet") {
            turns.greeted(turn, textOf(await client.callTool({ name: job, arguments: { name: `n${turn}` } })))
          } else if (job === "report" || job === "lie") {
            turns.reported(turn, (await client.callTool({ name: job, arguments: { id: turn } })).structuredContent)
          } else {
            const cacheMode = job === "list" ? "bypass" : "use"
            turns.listed((await client.listTools(undefined, { cacheMode })).tools)
          }
        }
      }),
    get kept() {
      return era === "session" ? { kind: "legacy" } : { kind: "modern", discover: client.getDiscoverResult() }
    },
    close: () => client.close()
  }
}
