/**
 * The command `skein-call`: calls a tool of an MCP server from a shell, or lists its tools.
 *
 * ```sh
 * skein-call https://example.com/mcp
 * skein-call "node server.mjs" greet '{"name":"Ada"}'
 * ```
 */
import { callCommand } from "./internal/commands/callCommand.ts"
import { rewrite } from "./internal/commands/commandLine.ts"
import { nodeMain } from "./internal/base/nodeProcess.ts"
import { runCommand } from "./internal/commands/runCommand.ts"

/**
 * Runs the command as the only program of this process, which exits when the command ends. `argv` has the words after
 * the name of the command: `process.argv.slice(2)`. SIGINT, SIGTERM and SIGHUP cancel the call at the server and stop
 * the server's process, within six seconds; a second signal exits at once.
 */
export const main = (argv: ReadonlyArray<string>): void => {
  const command = callCommand("skein-call")
  nodeMain("skein-call", runCommand(command, rewrite(command, argv)))
}
