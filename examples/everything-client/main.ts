/**
 * Explores the server at a URL: `npm run -s everything-client -- http://127.0.0.1:3002/mcp`.
 *
 * The official conformance suite sets two environment variables. `MCP_CONFORMANCE_SCENARIO` names the program to run
 * instead, see `scenarios.ts`. `MCP_CONFORMANCE_PROTOCOL_VERSION` is the only revision to offer; without it the
 * revision is negotiated. The client signs in at a server that requires it, see `authorization.ts`. `--fetch` uses
 * `fetch`, as in a browser, instead of `node:http`.
 *
 * Exits with 0 on success, 1 on a failure, and 2 on wrong arguments.
 */
import * as Client from "@skein/client/Client"
import * as Http from "@skein/client/Http"
import * as NodeHttp from "@skein/client/NodeHttp"
import * as Revision from "@skein/protocol/Revision"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import { commandLine, usageError } from "../commandLine.ts"
import { credentials } from "./authorization.ts"
import { explore } from "./explore.ts"
import { RequestHandlers } from "./requestHandlers.ts"
import { programOf } from "./scenarios.ts"

const usage = "npm run -s everything-client -- [--fetch] <url>"
const wrong = (message: string): never => usageError(usage, message)
const { positionals: [url = wrong("missing URL"), ...more], values } = commandLine(usage, {
  allowPositionals: true,
  options: { fetch: { type: "boolean", default: false } }
})
if (more.length > 0 || !URL.canParse(url)) wrong("expected one valid URL")

const { MCP_CONFORMANCE_PROTOCOL_VERSION: version, MCP_CONFORMANCE_SCENARIO: scenario } = process.env
const program = scenario === undefined ? explore : programOf(scenario) ?? wrong(`unknown scenario: ${scenario}`)
const revisions = version === undefined ? Revision.all : Revision.all.filter((revision) => revision === version)
if (revisions.length === 0) wrong(`unknown revision: ${version}`)

const makeTransport = values.fetch ? Http.transport : NodeHttp.transport
const info = { name: "everything-client", version: "1.0.0" }
const client = Effect.flatMap(
  credentials,
  (credentials) => Client.make(makeTransport({ url, credentials }), { info, revisions })
)

Effect.flatMap(client, program).pipe(
  Effect.scoped,
  Effect.provide(RequestHandlers),
  // Stdout is for the output of the programs.
  Effect.provideService(References.LogToStderr, true),
  Effect.runPromise
).catch((error: unknown) => {
  console.error(error instanceof Error ? `${error.name}: ${error.message}` : error)
  // Why a sign-in failed.
  if (error instanceof Error && error.cause instanceof Error) {
    console.error(`${error.cause.name}: ${error.cause.message}`)
  }
  process.exitCode = 1
})
