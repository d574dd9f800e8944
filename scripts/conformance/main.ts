/**
 * Runs the official conformance suite: `npm run conformance -- server [--url <url> | --sessions <kind>] [--verbose]`,
 * `npm run conformance -- client [--all] [--verbose]`, `npm run conformance -- auth [--verbose]` and
 * `npm run conformance -- gateway [--verbose]`.
 *
 * The server is `examples/everything`, or the one at `--url`. With `--sessions` three processes serve it and share its
 * sessions: as `workers`, or as nodes of a fleet on `postgres` or `redis`, behind a balancer that gives each request to the
 * next one.
 * The client is `examples/everything-client`, and with `--all` also in a second configuration; `auth` judges the authorization server `DevServer` of `@skein/auth`, and
 * `gateway` judges `Gateway` of `@skein/gateway` in front of `examples/everything`. Prints a table, and exits with 1 when a
 * scenario fails that must pass.
 */
import { parseArgs } from "node:util"
import { judgeAuthorization } from "./judgeAuthorization.ts"
import { judgeClient } from "./judgeClient.ts"
import { judgeGateway } from "./judgeGateway.ts"
import { judgeServer, type Subject } from "./judgeServer.ts"
import { isKind, kinds } from "./processes.ts"
import type { Report } from "./report.ts"
import { suiteVersion } from "./suite.ts"

const usage = `usage: npm run conformance -- server [--url <url> | --sessions ${kinds.join("|")}] [--verbose] | ` +
  "client [--all] [--verbose] | auth [--verbose] | gateway [--verbose]"

/** The server that the options name; undefined if they are wrong. */
const subjectOf = (url: string | undefined, sessions: string | undefined): Subject | undefined => {
  if (sessions === undefined) return { url }
  return url === undefined && isKind(sessions) ? { sessions: { kind: sessions, count: 3 } } : undefined
}

const main = async (): Promise<void> => {
  const { positionals: [side = "", ...more], values } = parseArgs({
    allowPositionals: true,
    options: {
      all: { type: "boolean", default: false },
      sessions: { type: "string" },
      url: { type: "string" },
      verbose: { type: "boolean", default: false }
    }
  })
  const subject = subjectOf(values.url, values.sessions)
  const judges = new Map<string, (width: number | undefined) => Promise<Report>>([
    ["server", (width) => judgeServer(subject!, width)],
    ["client", (width) => judgeClient(width, values.all)],
    ["auth", judgeAuthorization],
    ["gateway", judgeGateway]
  ])
  const judge = judges.get(side)
  const isForServer = values.url !== undefined || values.sessions !== undefined
  if (
    judge === undefined || subject === undefined || (side !== "server" && isForServer) ||
    (side !== "client" && values.all) || more.length > 0
  ) {
    console.error(usage)
    process.exitCode = 2
    return
  }
  console.log(`@modelcontextprotocol/conformance ${await suiteVersion()}`)
  const { passed, text } = await judge(values.verbose ? Infinity : undefined)
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
