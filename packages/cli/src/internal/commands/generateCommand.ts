/**
 * The command line of `generate-client`.
 */
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { commandOnServer, invalid, last, toggle } from "./commandLine.ts"
import { HelpText } from "./help.ts"
import { checkNamed, checkServer, serverFlags, serverInvocationOf, targetArgument } from "./serverOptions.ts"

const defaultMaxChars = 4 * 1024 * 1024

/** `skein generate-client`. */
export const generateOptions = commandOnServer("generate-client", {
  ...serverFlags,
  out: Flag.String("out").pipe(
    Flag.withMetavar("<file>"),
    Flag.withDescription("Write the module to a file, which is replaced if it exists; stdout by default"),
    last
  ),
  check: toggle("check", "Write nothing, and exit with 1 if the file of --out is not what would be written"),
  maxChars: Flag.String("max-chars").pipe(
    Flag.withMetavar("<number>"),
    Flag.withDescription(`How many characters the module has at most: ${defaultMaxChars} by default`),
    last,
    Flag.mapEffect((text = String(defaultMaxChars)) =>
      /^[1-9]\d{0,9}$/.test(text)
        ? Effect.succeed(Number(text))
        : invalid(`--max-chars must be a whole number above 0: ${JSON.stringify(text)}`)
    )
  ),
  target: targetArgument
}).pipe(
  Command.withShortDescription("Generate a typed client of a server: functions and schemas for its tools"),
  Command.withDescription(
    "Generates a TypeScript module with a typed function for each tool, prompt, resource and resource template of an MCP " +
      "server, and Effect Schemas for the arguments and results of its tools."
  ),
  Command.annotate(HelpText, {
    usage: [
      "[options] --out <file> <url or module>",
      "[options] --out <file> \"<command and its arguments>\"",
      "[options] --out <file> --config <file> --server <name>"
    ],
    examples: ["--out src/shop.ts https://example.com/mcp", "--check --out src/shop.ts \"node server.mjs\""],
    footer:
      "Exit codes: 0 success, 1 the file of --check differs, 2 invalid command line or file, 3 no connection or no " +
      "answer in time, 4 the server refused a request, its answer was invalid or too large, 130 interrupted."
  }),
  Command.validate((line) =>
    line.check && line.out === undefined
      ? invalid("--check needs --out: the file that is compared")
      : Effect.andThen(checkServer(line), checkNamed(line))
  )
)

export const generateCommand = Command.withHandler(
  generateOptions,
  (line) =>
    Effect.flatMap(
      Effect.promise(() => import("../generate/generateClient.ts")),
      ({ generateClient }) => generateClient({ ...serverInvocationOf(line), json: false })
    )
)
