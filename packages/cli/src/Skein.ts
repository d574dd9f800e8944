/**
 * The program `skein`: signs in to MCP servers and calls their tools from a shell.
 *
 * ```sh
 * skein login https://example.com/mcp
 * skein call https://example.com/mcp greet '{"name":"Ada"}'
 * ```
 */
import { nodeMain } from "./internal/nodeProcess.ts"
import { runCommand } from "./internal/runCommand.ts"
import { skeinArguments, skeinCommand } from "./internal/skeinCommand.ts"

/**
 * Runs the program as the only one of this process, which exits when it ends. `argv` has the words after the name of
 * the program: `process.argv.slice(2)`. The first one is the command.
 */
export const main = (argv: ReadonlyArray<string>): void =>
  nodeMain("skein", runCommand(skeinCommand, skeinArguments(argv)))
