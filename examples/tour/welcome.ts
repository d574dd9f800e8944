/**
 * What a newcomer sees first: where the server is, what to paste to reach it, and the first requests, which this program makes.
 */
import * as Client from "@skein/client/Client"
import type * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import { styleText } from "node:util"

/** A request that stands alone, so that a shell is enough. */
const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{
    "name":"bill","arguments":{"tea":"oolong","cups":2},"_meta":{
      "io.modelcontextprotocol/protocolVersion":"2026-07-28",
      "io.modelcontextprotocol/clientInfo":{"name":"curl","version":"1"},
      "io.modelcontextprotocol/clientCapabilities":{}}}}`

/** What to paste into a shell. */
export const lines = (url: string) => ({
  claude: `claude mcp add --transport http tea-house ${url}`,
  inspector: `npx @modelcontextprotocol/inspector --cli ${url} --transport http --method tools/list`,
  curl: [
    `curl ${url} -H 'content-type: application/json' -H 'mcp-protocol-version: 2026-07-28'`,
    `-H 'mcp-method: tools/call' -H 'mcp-name: bill'`,
    `-d '${body}'`
  ].join(" \\\n  "),
  page: `npm run page -- --server ${url}`,
  task: `npm run -s call -- --verbose ${url} cater '{"guests":14,"tea":"oolong"}'`
})

const say = (text: string) => Effect.sync(() => console.log(text))
const heading = (text: string): string => styleText(["bold", "cyan"], text)
const quiet = (text: string): string => styleText("gray", text)

const connecting = (url: string, tasks: string): string => {
  const { claude, curl, inspector, page, task } = lines(url)
  return `
${heading("The tea house is open.")}  ${url}

${quiet("From Claude Code:")}
${claude}

${quiet("From the MCP Inspector:")}
${inspector}

${quiet("From a shell, with nothing but curl:")}
${curl}

${quiet("From a web page, with the client of this tree:")}
${page}

${quiet("A task of half a minute, which asks you something on the way:")}
${task}
${quiet(tasks)}

${quiet("Requests are shown here as they pass. The first guest is this program, once in each era of the protocol:")}
`
}

const turn = `
${quiet("Now it is your turn. Ctrl-C closes the house. A whole conversation, message by message: npm run tour")}
`

/** A client in the same process, with the server's other end in its hand. */
const guest = (revision: Revision.Revision) =>
  Effect.flatMap(
    McpServer.McpServer,
    ({ serve }) =>
      Client.make(InMemoryTransport.transport(serve), {
        info: { name: "first-guest", version: "1" },
        revisions: [revision]
      })
  )

const visits = Effect.all([
  Effect.scoped(Effect.gen(function*() {
    const client = yield* guest("2025-11-25")
    yield* client.listToolsPage()
    yield* client.callTool("greet", { name: "Ada" })
    yield* client.readResource("menu://today")
  })),
  Effect.scoped(Effect.gen(function*() {
    const client = yield* guest("2026-07-28")
    yield* client.callTool("bill", { tea: "sencha", cups: 3 })
    yield* client.callTool("order", { cake: "sachertorte" })
    yield* Effect.ignore(client.callTool("juggle"))
  }))
])

/** Welcomes, and stays until the house closes. `tasks` says where its tasks are kept. */
export const welcome = (url: string, tasks: string): Effect.Effect<never, never, McpServer.McpServer> =>
  say(connecting(url, tasks)).pipe(
    Effect.andThen(Effect.orDie(visits)),
    Effect.andThen(say(turn)),
    Effect.andThen(Effect.never),
    Effect.onInterrupt(() => say("\nThe tea house closes. Who is served may finish."))
  )
