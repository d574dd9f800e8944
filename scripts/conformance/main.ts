/**
 * Runs the official conformance suite: `npm run conformance -- server [--url <url>] [--verbose]`,
 * `npm run conformance -- client [--verbose]` and `npm run conformance -- auth [--verbose]`.
 *
 * The server is `examples/everything`, or the one at `--url`; the client is `examples/everything-client`; `auth` judges
 * the authorization server `DevServer` of `@skein/auth`. Prints a table, and exits with 1 when a scenario fails that
 * must pass.
 */
import { parseArgs } from "node:util"
import { judgeAuthorization } from "./judgeAuthorization.ts"
import { judgeClient } from "./judgeClient.ts"
import { judgeServer } from "./judgeServer.ts"
import { suiteVersion } from "./suite.ts"

const main = async (): Promise<void> => {
  const { positionals: [side, ...more], values } = parseArgs({
    allowPositionals: true,
    options: { url: { type: "string" }, verbose: { type: "boolean", default: false } }
  })
  const isValid = side === "server" || ((side === "client" || side === "auth") && values.url === undefined)
  if (!isValid || more.length > 0) {
    console.error(
      "usage: npm run conformance -- server [--url <url>] [--verbose] | client [--verbose] | auth [--verbose]"
    )
    process.exitCode = 2
    return
  }
  const width = values.verbose ? Infinity : undefined
  console.log(`@modelcontextprotocol/conformance ${await suiteVersion()}`)
  const { passed, text } = await (side === "server"
    ? judgeServer(values.url, width)
    : side === "client"
    ? judgeClient(width)
    : judgeAuthorization(width))
  console.log(text)
  if (!passed) process.exitCode = 1
}

// A signal alone would end this process without the "exit" event, which kills the server.
process.once("SIGINT", () => process.exit(130))
process.once("SIGTERM", () => process.exit(143))

try {
  await main()
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  process.exitCode = 1
}
