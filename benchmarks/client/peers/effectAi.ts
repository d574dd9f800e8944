/**
 * The `effect/ai` client of Effect over `fetch`, the only HTTP client that it includes. It does not negotiate the
 * revision, opens no standalone stream, and validates a structured result with a schema of the caller instead of the
 * tool's. Modules are imported one by one, which starts fastest.
 */
import * as McpClient from "effect/ai/McpClient"
import * as McpProtocol from "effect/ai/McpProtocol"
import * as McpSchema from "effect/ai/McpSchema"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as FetchHttpClient from "effect/http/FetchHttpClient"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as Scope from "effect/Scope"
import { type Connect, type Job, textOf, type Turns } from "../testClient.ts"

const Report = Schema.Struct({
  id: Schema.Int,
  title: Schema.String,
  items: Schema.Array(Schema.Struct({ sku: Schema.String, count: Schema.Int, price: Schema.Number }))
})

const work = (
  client: McpClient.McpClient,
  toolOf: (name: string) => McpSchema.Tool,
  job: Job,
  turns: Turns
) =>
  Effect.gen(function*() {
    const tool = toolOf(job)
    for (let turn = turns.next(); turn !== undefined; turn = turns.next()) {
      if (job === "greet") {
        turns.greeted(turn, textOf(yield* client.callTool({ tool, arguments: { name: `n${turn}` } })))
      } else if (job === "report" || job === "invalid") {
        turns.reported(turn, yield* client.callTool({ tool, schema: Report, arguments: { id: turn } }))
      } else turns.listed(yield* client.listTools())
    }
  })

export const connect: Connect = async ({ era, url }) => {
  const scope = Scope.makeUnsafe()
  const protocol = era === "session" ? McpProtocol.v2025_11_25 : McpProtocol.v2026_07_28
  const layer = McpClient.layerHttp({ name: "bench", version: "1.0.0", protocol, url }).pipe(
    Layer.provide(FetchHttpClient.layer)
  )
  const client = await Effect.runPromise(
    Effect.flatMap(Layer.buildWithScope(layer, scope), (context) => Effect.provide(McpClient.McpClient, context))
  )
  // `callTool` expects a listed tool. A made-up definition avoids the listing, which the other clients do not need
  // either.
  const tools = new Map<string, McpSchema.Tool>()
  const toolOf = (name: string) =>
    tools.get(name) ?? new McpSchema.Tool({ name, inputSchema: { type: "object" } as never })
  return {
    discover: () =>
      Effect.runPromise(Effect.map(client.listTools(), (listed) => {
        for (const tool of listed) tools.set(tool.name, tool)
      })),
    drive: (job, inFlight, turns) =>
      Effect.runPromise(
        Effect.all(Array.from({ length: inFlight }, () => work(client, toolOf, job, turns)), {
          concurrency: "unbounded",
          discard: true
        })
      ),
    kept: undefined,
    close: () => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
