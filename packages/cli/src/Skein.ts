/**
 * The program `skein`: inspects MCP servers, calls their tools, installs them in hosts, and signs in to them, from a
 * shell.
 *
 * ```sh
 * skein inspect https://example.com/mcp
 * skein login https://example.com/mcp
 * skein call https://example.com/mcp greet '{"name":"Ada"}'
 * ```
 */
import { nodeMain } from "./internal/base/nodeProcess.ts"
import { programFlags, runCommand } from "./internal/commands/runCommand.ts"
import { skeinArguments, skeinCommand } from "./internal/commands/skeinCommand.ts"

/**
 * Runs the program as the only one of this process, which exits when it ends. `argv` has the words after the name of
 * the program: `process.argv.slice(2)`. The first one is the command.
 */
export const main = (argv: ReadonlyArray<string>): void =>
  nodeMain("skein", runCommand(skeinCommand, skeinArguments(argv), programFlags))
