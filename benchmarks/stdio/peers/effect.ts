/**
 * The floor of a server that is written in Effect: it imports what the eleven lines of `skein.ts` import from Effect, uses next
 * to nothing of it, and answers `initialize` as bare Node does. What Skein's start takes beyond this is Skein's.
 */
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const serverInfo = { name: "effect", version: "1.0.0" }
const Input = Schema.Struct({ name: Schema.String })

process.stdin.setEncoding("utf8")
process.stdin.on("data", (line: string) => {
  const { id, params } = JSON.parse(line)
  if (params?.protocolVersion === undefined) return
  const capabilities = Schema.is(Input)(serverInfo) ? { tools: {} } : {}
  const result = { protocolVersion: params.protocolVersion, capabilities, serverInfo }
  process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result: Effect.runSync(Effect.succeed(result)) }) + "\n")
})
