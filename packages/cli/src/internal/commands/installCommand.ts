/**
 * The command line of `skein install`.
 */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { choice, commandOnServer, invalid, last, option, toggle } from "./commandLine.ts"
import { describe } from "./help.ts"
import { hostNames, hosts, noUrls } from "../install/hosts.ts"
import {
  checkNamed,
  checkTarget,
  configFlags,
  envFlag,
  exportFlag,
  headerFlag,
  targetArgument
} from "./serverOptions.ts"

/** `skein install`. */
export const installCommand = commandOnServer("install", {
  host: last(choice("host", hostNames, "<host>", `The host to install the server in: ${hostNames.join(", ")}`)),
  name: option(
    "name",
    "<name>",
    "The name of the entry; by default that of the server of a module, else that of the package, the program, or the " +
      "host of the URL",
    (text) =>
      /^[A-Za-z0-9_-]{1,64}$/.test(text)
        ? Effect.succeed(text)
        : invalid("--name must have 1 to 64 letters, digits, hyphens and underscores, which all hosts take")
  ),
  headers: headerFlag.pipe(Flag.withDescription("A header for each HTTP request; can be repeated")),
  env: envFlag.pipe(Flag.withDescription(
    "A variable for the server's process; without a value, that of this process is written; can be repeated"
  )),
  exportName: exportFlag,
  config: configFlags.config,
  server: configFlags.server,
  project: toggle("project", "Write to the file of the project in this folder, where the host has two files"),
  yes: toggle("yes", "Write without asking; an entry of another server is not replaced"),
  force: toggle("force", "Replace the entry of another server, which has the same name"),
  print: toggle("print", "Print the entry, and write nothing"),
  json: toggle("json", "Print the file, the entry and whether it was written as JSON"),
  target: targetArgument
}).pipe(
  describe({
    short: "Add a server to the configuration of a host: Claude, Cursor, VS Code, …",
    description:
      "Adds an MCP server to the configuration of a host. The change is shown first, and written after a confirmation. " +
      "Comments and other entries are kept, and no copy of the file is made.",
    usage: [
      "[options] --host <host> <url or module>",
      "[options] --host <host> \"<command and its arguments>\"",
      "[options] --host <host> <command> <its arguments…>",
      "[options] --config <file> --server <name> --host <host>"
    ],
    examples: [
      "--host claude-desktop src/server.ts",
      "--host vscode --name tea https://example.com/mcp",
      "--host cursor --env TOKEN npx -y @example/server"
    ],
    footer:
      "A module is started by skein run: with this program and this Node, or with npx skein in the file of a project. " +
      "For the name of the entry it is started once. " +
      "Paths of existing files in the command become absolute, except in the file of a project. In the file of " +
      "Codex, which is TOML, an entry of the same name is not replaced. Exit codes: 0 written, printed, or there " +
      "already; 1 not confirmed, or the name is that of another server, 2 invalid command line, 3 the file of the host " +
      "cannot be used, 130 interrupted."
  }),
  Command.validate((line) => {
    const { env, host, print, project, target, yes } = line
    const checkHost = () => {
      if (host === undefined) return invalid(`--host is required: one of ${hostNames.join(", ")}`)
      if (target?._tag === "Url" && Object.keys(env).length > 0) {
        return invalid("--env needs a command: a server with a URL is not started")
      }
      if (target?._tag === "Url" && host === "claude-desktop") return invalid(noUrls)
      if (project && hosts[host].projectFile === undefined) {
        return invalid(`--project cannot be used with --host ${host}: it has no file for a project`)
      }
      return yes && print ? invalid("--yes and --print exclude each other") : Effect.void
    }
    return Effect.andThen(Effect.andThen(checkNamed(line), checkTarget(line)), checkHost())
  }),
  Command.withHandler(({ config: file, host, server, target, ...line }) =>
    Effect.flatMap(
      Effect.promise(() => import("../install/install.ts")),
      ({ install }) =>
        install({
          ...line,
          host: host!,
          target: file === undefined ? target! : { _tag: "Configured", file, server }
        })
    )
  )
)
