/**
 * The referee: `npm run conformance -- server [--url <url>] [--verbose]` and `npm run conformance -- client [--verbose]`.
 *
 * The server is `examples/everything`, or what is at `--url`; the client is `examples/everything-client`. Prints a table, and exits 1
 * when anything that should pass does not.
 */
import { parseArgs } from "node:util"
import * as Client from "./client.ts"
import { version } from "./referee.ts"
import * as Server from "./server.ts"

const main = async (): Promise<void> => {
  const { positionals: [side, ...more], values } = parseArgs({
    allowPositionals: true,
    options: { url: { type: "string" }, verbose: { type: "boolean", default: false } }
  })
  const known = side === "server" || (side === "client" && values.url === undefined)
  if (!known || more.length > 0) {
    console.error("usage: npm run conformance -- server [--url <url>] [--verbose] | client [--verbose]")
    process.exitCode = 2
    return
  }
  const width = values.verbose ? Infinity : undefined
  console.log(`@modelcontextprotocol/conformance ${await version()}`)
  const { passed, text } = await (side === "server" ? Server.judge(values.url, width) : Client.judge(width))
  console.log(text)
  if (!passed) process.exitCode = 1
}

// A signal alone would end this process without the event that ends the server.
process.once("SIGINT", () => process.exit(130))
process.once("SIGTERM", () => process.exit(143))

try {
  await main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
