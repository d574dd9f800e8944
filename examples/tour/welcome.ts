/**
 * The output of `npm start`: the server's URL, commands to connect to it, and a log of some first requests, which this
 * program sends.
 */
import * as Client from "@skein/client/Client"
import * as Elicitation from "@skein/client/Elicitation"
import type * as Revision from "@skein/protocol/Revision"
import * as InMemoryTransport from "@skein/server/InMemoryTransport"
import * as McpServer from "@skein/server/McpServer"
import * as Effect from "effect/Effect"
import { join } from "node:path"
import { styleText } from "node:util"
import type { Auth } from "./auth.ts"

/** A request of revision 2026-07-28, which needs no session, so that curl can send it. */
const body = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{
    "name":"bill","arguments":{"tea":"oolong","cups":2},"_meta":{
      "io.modelcontextprotocol/protocolVersion":"2026-07-28",
      "io.modelcontextprotocol/clientInfo":{"name":"curl","version":"1"},
      "io.modelcontextprotocol/clientCapabilities":{}}}}`

const name = "tea-house"
const main = join(import.meta.dirname, "main.ts")

/** Commands to paste into a shell, and texts to paste into the settings of host applications. */
export const commands = (url: string) => ({
  claude: `claude mcp add --transport http ${name} ${url}`,
  codex: `codex mcp add ${name} --url ${url}`,
  gemini: `gemini mcp add --transport http ${name} ${url}`,
  code: `code --add-mcp '${JSON.stringify({ name, type: "http", url })}'`,
  codexToml: `[mcp_servers.${name}]\nurl = "${url}"`,
  vsCode: JSON.stringify({ servers: { [name]: { type: "http", url } } }),
  cursor: JSON.stringify({ mcpServers: { [name]: { url } } }),
  // The command does not need `npm`, which programs with a window often do not find.
  mcpServers: JSON.stringify({
    mcpServers: { [name]: { command: process.execPath, args: ["--conditions=@skein/source", main, "--stdio"] } }
  }),
  inspector: `npx @modelcontextprotocol/inspector --cli ${url} --transport http --method tools/list`,
  curl: [
    `curl ${url} -H 'content-type: application/json' -H 'mcp-protocol-version: 2026-07-28'`,
    `-H 'mcp-method: tools/call' -H 'mcp-name: bill'`,
    `-d '${body}'`
  ].join(" \\\n  "),
  page: `npm run page -- --server ${url}`,
  login: `npm run -s skein -- login ${url}`,
  loggedIn: `npm run -s skein -- call ${url} greet '{"name":"Ada"}'`,
  greet: `npm run -s call -- ${url} greet name=Ada`,
  task: `npm run -s call -- --verbose ${url} cater guests=14 tea=oolong`
})

const print = (text: string) => Effect.sync(() => console.log(text))
const heading = (text: string): string => styleText(["bold", "cyan"], text)
const gray = (text: string): string => styleText("gray", text)

/** The part about guests who sign in. */
const signIn = (url: string, { issuer, users }: Auth): string => {
  const { claude, code, codex, gemini, inspector, loggedIn, login, page } = commands(url)
  return `
The server is ready: ${heading(url)} ${gray("(Ctrl-C stops it)")}
Its authorization server: ${heading(issuer)}

${gray(`Guests must sign in, as ${users.join(" or ")}. There are no passwords. Sign in from a shell, and call a tool:`)}
${login}
${loggedIn}

${gray("Or add the server to Claude Code, Codex, Gemini CLI or VS Code. They open a browser to sign in:")}
${claude}
${codex}
${gemini}
${code}

${gray("Or sign in on a web page, from a second shell:")}
${page}

${gray("Without a token it answers 401 with the address of its metadata. The MCP Inspector shows this:")}
${inspector}

${gray("Requests are logged below. This program sends the first ones in memory, where nobody needs a token:")}
`
}

/** The commands and settings that connect to the server, for `--hosts`. */
const connections = (url: string): string => {
  const { claude, code, codex, codexToml, curl, cursor, gemini, inspector, mcpServers, page, vsCode } = commands(url)
  return `${gray("Claude Code, Codex, Gemini CLI or VS Code:")}
${claude}
${codex}
${gemini}
${code}

${gray("Or in their files. Codex, ~/.codex/config.toml:")}
${codexToml}

${gray("VS Code, .vscode/mcp.json:")}
${vsCode}

${gray("Cursor, ~/.cursor/mcp.json:")}
${cursor}

${gray("Claude Desktop and other programs with mcpServers. They start a server of their own:")}
${mcpServers}

${gray("The MCP Inspector lists the tools:")}
${inspector}

${gray("curl calls a tool:")}
${curl}

${gray("A web page connects:")}
${page}
`
}

const introduction = (url: string, { console, hosts, storage }: Parts): string => {
  const { greet, task } = commands(url)
  const lines = [
    ["Call a tool", greet],
    ["Run a task", task],
    ["See a conversation", "npm run tour"],
    ["Connect a host", "npm start -- --hosts"],
    ...console === undefined ? [] : [["Open the console", `${console} (an example session waits for an answer)`]]
  ] as const
  return `
The server is ready: ${heading(url)} ${gray("(Ctrl-C stops it)")}
${lines.map(([what, how]) => `  ${`${what}:`.padEnd(20)} ${how}`).join("\n")}
${hosts ? `\n${connections(url)}` : ""}
${gray(storage)}
${gray("The log of its requests. This program sends the first ones, with revision 2025-11-25 and then 2026-07-28:")}
`
}

/** A client in the same process, connected in memory. */
const connect = (revision: Revision.Revision, name = "welcome") =>
  Effect.flatMap(
    McpServer.McpServer,
    ({ serve }) =>
      Client.make(InMemoryTransport.transport(serve), {
        info: { name, version: "1" },
        revisions: [revision]
      })
  )

const firstRequests = Effect.all([
  Effect.scoped(Effect.gen(function*() {
    const client = yield* connect("2025-11-25")
    yield* client.listTools()
    yield* client.callTool("greet", { name: "Ada" })
    yield* client.readResource("menu://today")
  })),
  Effect.scoped(Effect.gen(function*() {
    const client = yield* connect("2026-07-28")
    yield* client.callTool("bill", { tea: "sencha", cups: 3 })
    yield* client.callTool("order", { cake: "sachertorte" })
    yield* Effect.ignore(client.callTool("juggle"))
  }))
])

/** A guest for the console: its session stays open, and its call waits for an answer that never comes. */
const exampleSession = Effect.scoped(Effect.gen(function*() {
  const guest = yield* connect("2025-11-25", "example guest")
  yield* guest.callTool("book", { name: "Ada" })
})).pipe(Effect.provide(Elicitation.layer({ form: () => Effect.never })))

/** The parts of the welcome text. */
export interface Parts {
  /** The storage of the tasks. */
  readonly storage: string
  /** The URL of the console, if it was started. */
  readonly console: string | undefined
  /** Whether the settings of host applications are shown. */
  readonly hosts: boolean
  /** The users, if guests must sign in. */
  readonly auth: Auth | undefined
}

/** Prints the introduction and never ends. */
export const welcome = (url: string, parts: Parts): Effect.Effect<never, never, McpServer.McpServer> =>
  print(parts.auth === undefined ? introduction(url, parts) : signIn(url, parts.auth)).pipe(
    Effect.andThen(Effect.orDie(firstRequests)),
    Effect.andThen(parts.console === undefined ? Effect.never : Effect.orDie(exampleSession)),
    Effect.andThen(Effect.never)
  )
