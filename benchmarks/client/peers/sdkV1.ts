/** `@modelcontextprotocol/sdk` 1, with its defaults. */
import { Client } from "@modelcontextprotocol/sdk/client/index.js"
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js"
import { type Connect, runConcurrently, textOf } from "../testClient.ts"

export const connect: Connect = async ({ url }) => {
  const client = new Client({ name: "bench", version: "1.0.0" })
  await client.connect(new StreamableHTTPClientTransport(new URL(url)) as Parameters<Client["connect"]>[0])
  return {
    discover: async () => void await client.listTools(),
    drive: (job, inFlight, turns) =>
      runConcurrently(inFlight, async () => {
        for (let turn = turns.next(); turn !== undefined; turn = turns.next()) {
          if (job === "greet") {
            const result = await client.callTool({ name: job, arguments: { name: `n${turn}` } })
            turns.greeted(turn, textOf(result as { readonly content: ReadonlyArray<unknown> }))
          } else if (job === "report" || job === "invalid") {
            const result = await client.callTool({ name: job, arguments: { id: turn } })
            turns.reported(turn, result.structuredContent)
          } else turns.listed((await client.listTools()).tools)
        }
      }),
    kept: undefined,
    close: () => client.close()
  }
}
