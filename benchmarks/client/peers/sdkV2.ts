/**
 * `@modelcontextprotocol/client` 2. For revisions with sessions it has its defaults, which support those only. For
 * 2026-07-28 it negotiates with `auto`.
 */
import { Client, type ConnectOptions, StreamableHTTPClientTransport } from "@modelcontextprotocol/client"
import { type Connect, runConcurrently, textOf } from "../testClient.ts"

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
      runConcurrently(inFlight, async () => {
        for (let turn = turns.next(); turn !== undefined; turn = turns.next()) {
          if (job === "greet") {
            turns.greeted(turn, textOf(await client.callTool({ name: job, arguments: { name: `n${turn}` } })))
          } else if (job === "report" || job === "invalid") {
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
