/**
 * The command line of `skein gateway`.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { invalid, isUrl, portNumber, text, toggle } from "./commandLine.ts"
import type { GatewayTarget } from "../gateway/nodeGateway.ts"
import { describe } from "./help.ts"
import { Process } from "../base/process.ts"
import { envFlag, headerFlag, loginFlag } from "./serverOptions.ts"

/** The first word of `skein gateway init`, which writes a configuration. */
const init = "init"

/** The file that `init` writes by default. */
const initFile = "mcp.json"

const isFile = (word: string): boolean => /\.jsonc?$/i.test(word)

/** The words of the command line: a URL, files, or a command. */
const targetOf = (words: ReadonlyArray<string>): GatewayTarget | string => {
  const [first, ...args] = words
  if (first === undefined) return "name the configurations, such as mcp.json, a URL, or -- and a command"
  if (isUrl(first)) {
    if (args.length > 0) return `a URL is the only server of a gateway: ${JSON.stringify(args[0])} follows it`
    return URL.canParse(first) ? { _tag: "Url", url: new URL(first) } : `not a URL: ${JSON.stringify(first)}`
  }
  return words.every(isFile) ? { _tag: "Files", files: words } : { _tag: "Command", command: first, args }
}

/** `skein gateway`. */
export const gatewayCommand = Command.make("gateway", {
  stdio: toggle("stdio", "Serve over stdio, for a host that starts the gateway; over HTTP by default"),
  port: portNumber("<number>", "The port: SKEIN_PORT or 3000 by default, 0 for any free port", 0),
  host: text("host", "<address>", "The address to listen on: SKEIN_HOST or 127.0.0.1 by default"),
  console: portNumber("<number>", "Show the console on this port of 127.0.0.1, 0 for any free port", 0, "console"),
  headers: headerFlag,
  env: envFlag,
  login: loginFlag,
  words: Argument.String("server").pipe(Argument.variadic())
}).pipe(
  describe({
    short: "Serve many servers as one: those of configurations, a URL, or a command",
    description:
      "Serves all servers of the configurations of hosts (mcpServers of Claude Desktop, Cursor and others, servers of VS Code) " +
      "as one server, with the name of each before its tools. A configuration that changes is applied while the gateway runs. " +
      "Or serves one server by another transport: a command over HTTP, a URL over stdio. init writes a configuration, mcp.json by " +
      "default, with the servers of Claude Desktop, Claude Code, Cursor, VS Code and Gemini CLI on this computer.",
    usage: ["init [file]", "[options] <file>...", "[options] <url>", "[options] -- <command> [arguments]"],
    examples: [
      "init",
      "mcp.json",
      "--port 8080 --console 3001 ~/.cursor/mcp.json .vscode/mcp.json",
      "-- npx -y @modelcontextprotocol/server-memory",
      "--stdio --login https://example.com/mcp"
    ],
    footer:
      "The member gateway of an entry selects and renames its tools. Variables such as SKEIN_PORT set the other options of the " +
      "server. Exit codes: those of the server; 1 init wrote nothing, 2 invalid command line or configuration, 130 interrupted, 143 terminated."
  }),
  Command.validate(({ console, host, port, stdio, words, headers, env }) => {
    if (words[0] === init) {
      const isOnlyFile = words.length <= 2 && words.slice(1).every(isFile)
      return isOnlyFile ? Effect.void : invalid("init takes the name of one file that ends with .json")
    }
    const target = targetOf(words)
    if (typeof target === "string") return invalid(target)
    if (stdio && (host !== undefined || port !== undefined)) {
      return invalid("--port and --host cannot be used with --stdio")
    }
    if (Object.keys(headers).length > 0 && target._tag !== "Url") return invalid("--header needs a URL")
    if (Object.keys(env).length > 0 && target._tag !== "Command") return invalid("--env needs a command")
    return console !== undefined && console === port && console !== 0
      ? invalid("--console needs a port of its own")
      : Effect.void
  }),
  Command.withHandler(Effect.fnUntraced(function*({ words, ...line }) {
    if (words[0] === init) {
      const { initGateway } = yield* Effect.promise(() => import("../gateway/gatewayInit.ts"))
      return yield* initGateway(words[1] ?? initFile)
    }
    const { handOver } = yield* Process
    if (handOver === undefined) return yield* Effect.die("a server needs a process of its own")
    const { prepareGateway } = yield* Effect.promise(() => import("../gateway/nodeGateway.ts"))
    const target = targetOf(words)
    if (typeof target === "string") return yield* Effect.die(target)
    return yield* handOver(yield* prepareGateway({ ...line, target }))
  }))
)
