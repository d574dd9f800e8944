/**
 * The minimum of a server that uses Effect: it has the Effect imports of `skein.ts`, uses almost nothing of them, and
 * responds to `initialize` like bare Node. The start time of Skein beyond this is its own.
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
