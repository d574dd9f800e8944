/**
 * Visits the server at a URL: `npm run -s everything-client -- http://127.0.0.1:3001/mcp`.
 *
 * The official conformance suite starts it with `MCP_CONFORMANCE_SCENARIO`, the program to run instead (see `programs.ts`), and
 * `MCP_CONFORMANCE_PROTOCOL_VERSION`, the one revision to speak: without it that is found out. `--fetch` goes by `fetch`, as a browser
 * would, and not by the sockets of Node.
 *
 * Exits with 0 when all went well, 1 when something did not, and 2 when it was not told what to do.
 */
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import { parseArgs } from "node:util"
import { Answers } from "./answers.ts"
import { programs } from "./programs.ts"
import { visit } from "./visit.ts"

const misuse = (why: string): never => {
  console.error(`${why}\nusage: npm run -s everything-client -- [--fetch] <url>`)
  process.exit(2)
}

const args = () => {
  try {
    return parseArgs({ allowPositionals: true, options: { fetch: { type: "boolean", default: false } } })
  } catch (error) {
    return misuse(String(error))
  }
}

const { positionals: [url = misuse("There is no URL"), ...more], values } = args()
if (more.length > 0 || !URL.canParse(url)) misuse("It is one URL that is wanted")

const { MCP_CONFORMANCE_PROTOCOL_VERSION: version, MCP_CONFORMANCE_SCENARIO: scenario } = process.env
const program = scenario === undefined ? visit : programs[scenario] ?? misuse(`There is no scenario ${scenario}`)
const revisions = version === undefined ? Revision.all : Revision.all.filter((revision) => revision === version)
if (revisions.length === 0) misuse(`There is no revision ${version}`)

const transport = values.fetch ? Http.transport({ url }) : NodeHttp.transport({ url })
const client = Client.make(transport, { info: { name: "everything-client", version: "1.0.0" }, revisions })

Effect.flatMap(client, program).pipe(
  Effect.scoped,
  Effect.provide(Answers),
  // What a program says is on stdout; what is worth a warning is not.
  Effect.provideService(References.LogToStderr, true),
  Effect.runPromise
).catch((error: unknown) => {
  console.error(error instanceof Error ? `${error.name}: ${error.message}` : error)
  process.exitCode = 1
})
