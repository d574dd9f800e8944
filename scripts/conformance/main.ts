/**
 * The referee: `npm run conformance -- server [--url <url>] [--verbose]`.
 *
 * Starts `examples/everything` on a free port, or takes the server at `--url`, runs both requirement sets and the whole suite at
 * the older revisions against it, prints a table, and exits 1 when anything that should pass does not.
 */
import { parseArgs } from "node:util"
import * as Everything from "./everything.ts"
import { type Outcome, report } from "./report.ts"
import * as Suite from "./suite.ts"

/**
 * What runs at the same time. The scenarios of 2026-07-28 change the server's lists and watch the clock, half a second at a time,
 * so that they run alone.
 */
const rounds: ReadonlyArray<ReadonlyArray<Suite.Selection>> = [
  [{ revision: "2025-11-25" }, { revision: "2025-06-18", whole: true }, { revision: "2025-03-26", whole: true }],
  [{ revision: "2026-07-28" }]
]

/** How many scored checks there are for `examples/everything`. */
const least = { "2026-07-28": 120, "2025-11-25": 70, "2025-06-18": 56, "2025-03-26": 3 }

const judge = async (url: string): Promise<ReadonlyArray<Outcome>> => {
  const outcomes: Array<Outcome> = []
  for (const round of rounds) outcomes.push(...await Promise.all(round.map((selection) => Suite.run(url, selection))))
  return outcomes.toSorted((a, b) => a.revision < b.revision ? 1 : -1)
}

const main = async (): Promise<void> => {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { url: { type: "string" }, verbose: { type: "boolean", default: false } }
  })
  if (positionals.length !== 1 || positionals[0] !== "server") {
    console.error("usage: npm run conformance -- server [--url <url>] [--verbose]")
    process.exitCode = 2
    return
  }
  const server = values.url === undefined ? await Everything.start() : { url: values.url, stop: async () => {} }
  try {
    console.log(`@modelcontextprotocol/conformance ${await Suite.version()} against ${server.url}\n`)
    const { passed, text } = report(await judge(server.url), {
      ...(values.verbose ? { width: Infinity } : undefined),
      // Another server may answer as JSON what only a stream is checked for.
      ...(values.url === undefined ? { least } : undefined)
    })
    console.log(text)
    if (!passed) process.exitCode = 1
  } finally {
    await server.stop()
  }
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
