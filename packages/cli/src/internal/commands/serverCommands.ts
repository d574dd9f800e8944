/**
 * The command lines of the commands about one server: `inspect`, `read`, `prompt`, `complete`, `ping`, `logs` and
 * `subscribe`.
 */
import type { LoggingLevel } from "@skein/protocol/Logging"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { isAssignment, stringArguments } from "../base/givenArguments.ts"
import { choice, commandOnServer, type CountOperands, invalid, last, toggle } from "./commandLine.ts"
import { HelpText } from "./help.ts"
import {
  answeringFlags,
  argumentWords,
  checkNamed,
  checkServer,
  seconds,
  serverFlags,
  serverInvocationOf,
  targetArgument,
  withFlag
} from "./serverOptions.ts"

const exitCodes = "Exit codes: 0 success, 2 invalid command line, 3 no connection or no answer in time, 4 the server " +
  "refused the request or its answer was invalid, 130 interrupted."

const exitCodesOfAsking = exitCodes.replace("130", "5 the answers did not fit a form, which was declined, 130")

/** The help of a command whose server is followed by these operands. */
const help = (operands: string, examples: ReadonlyArray<string>, footer: string) => {
  const after = operands === "" ? "" : ` ${operands}`
  return Command.annotate(HelpText, {
    usage: [
      `[options] <url or module>${after}`,
      `[options] "<command and its arguments>"${after}`,
      `[options] <command> <its arguments…>${after === "" ? "" : ` --${after}`}`,
      `[options] --config <file> --server <name>${after}`
    ],
    examples,
    footer
  })
}

const loadRequests = Effect.promise(() => import("../calls/requests.ts"))
const loadWatch = Effect.promise(() => import("../calls/watch.ts"))

/** `skein inspect`. */
export const inspectOptions = commandOnServer("inspect", {
  ...serverFlags,
  info: toggle("info", "Show the name, the revision, the capabilities and the instructions"),
  tools: toggle("tools", "Show the tools"),
  resources: toggle("resources", "Show the resources"),
  templates: toggle("templates", "Show the resource templates"),
  prompts: toggle("prompts", "Show the prompts"),
  json: toggle("json", "Print everything as JSON, with the schemas of the tools"),
  target: targetArgument
}).pipe(
  Command.withShortDescription("Show what a server offers: tools, resources, prompts, capabilities"),
  Command.withDescription(
    "Shows what an MCP server offers: its name and revision, its capabilities, extensions and instructions, and its " +
      "tools, resources, resource templates and prompts. Without a selection, everything is shown."
  ),
  help("", ["https://example.com/mcp", "--tools src/server.ts", "--json https://example.com/mcp"], exitCodes),
  Command.validate((line) => Effect.andThen(checkServer(line), checkNamed(line)))
)

export const inspectCommand = Command.withHandler(
  inspectOptions,
  (line) =>
    Effect.flatMap(
      Effect.promise(() => import("../calls/inspect.ts")),
      ({ inspect }) => inspect(serverInvocationOf(line))
    )
)

// A scheme of one letter is a drive of Windows.
const uriScheme = /^[a-z][a-z0-9+.-]+:/i

const uri = (text: string) =>
  uriScheme.test(text) ? Effect.succeed(text) : invalid(`<uri> must be the URI of a resource: ${JSON.stringify(text)}`)

/** `skein read`. */
export const readOptions = commandOnServer("read", {
  ...serverFlags,
  ...answeringFlags,
  output: Flag.String("output").pipe(
    Flag.withMetavar("<file>"),
    Flag.withDescription("Write the contents to a file, which is replaced if it exists"),
    last
  ),
  json: toggle("json", "Print the whole result as JSON, binary contents in base64"),
  target: targetArgument,
  uri: Argument.String("uri").pipe(Argument.mapEffect(uri))
}, () => 1).pipe(
  Command.withShortDescription("Print the contents of a resource, or write them to a file"),
  Command.withDescription(
    "Prints the contents of a resource of an MCP server. Binary contents are written to a file or a pipe."
  ),
  help(
    "<uri>",
    ["https://example.com/mcp shop://menu", "--output logo.png \"node server.mjs\" shop://logo"],
    exitCodesOfAsking
  ),
  Command.validate((line) => Effect.andThen(checkServer(line), checkNamed(line)))
)

export const readCommand = Command.withHandler(
  readOptions,
  (line) => Effect.flatMap(loadRequests, ({ read }) => read(serverInvocationOf(line)))
)

const countPrompt: CountOperands = (words) =>
  /^\s*\{/.test(words.at(-1) ?? "") ? 2 : words.length - words.findLastIndex((word) => !isAssignment(word))

/** `skein prompt`. */
export const promptOptions = commandOnServer("prompt", {
  ...serverFlags,
  ...answeringFlags,
  json: toggle("json", "Print the whole result as JSON"),
  target: targetArgument,
  name: Argument.String("name"),
  args: argumentWords("prompt").pipe(
    Argument.mapEffect((given) => {
      const args = stringArguments(given)
      return Result.isSuccess(args) ? Effect.succeed(args.success) : invalid(args.failure)
    })
  )
}, countPrompt).pipe(
  Command.withShortDescription("Print the messages of a prompt"),
  Command.withDescription("Prints the messages of a prompt of an MCP server, with its arguments filled in."),
  help(
    "<name> [<arguments>]",
    [
      "https://example.com/mcp review tea=sencha",
      "src/server.ts review '{\"code\":\"let a = 1\"}'",
      "--json \"node server.mjs\" review"
    ],
    `Arguments are words of the form name=value, or one JSON object. ${exitCodesOfAsking}`
  ),
  Command.validate((line) => Effect.andThen(checkServer(line), checkNamed(line)))
)

export const promptCommand = Command.withHandler(
  promptOptions,
  (line) => Effect.flatMap(loadRequests, ({ prompt }) => prompt(serverInvocationOf(line)))
)

// The number of its operands is not fixed: without quotes or an end mark the command of the server is one word.
const countComplete: CountOperands = (words) => words.length - 1

/** `skein complete`. */
export const completeOptions = commandOnServer("complete", {
  ...serverFlags,
  with: withFlag,
  json: toggle("json", "Print the whole result as JSON"),
  target: targetArgument,
  of: Argument.String("prompt or template"),
  argument: Argument.String("argument"),
  typed: Argument.String("typed").pipe(Argument.optional, Argument.map(Option.getOrElse(() => "")))
}, countComplete).pipe(
  Command.withShortDescription("Print suggestions for an argument of a prompt or of a resource template"),
  Command.withDescription(
    "Prints the suggestions of an MCP server for an argument of a prompt, or for a variable of a resource template, one " +
      "in a line. A text with {…} or :// is a URI template."
  ),
  help(
    "<prompt or template> <argument> [<typed>]",
    [
      "https://example.com/mcp review language py",
      "--with language=rust https://example.com/mcp review framework",
      "\"node server.mjs\" 'shop://teas/{tea}' tea"
    ],
    exitCodes
  ),
  Command.validate((line) => Effect.andThen(checkServer(line), checkNamed(line)))
)

export const completeCommand = Command.withHandler(
  completeOptions,
  (line) => Effect.flatMap(loadRequests, ({ complete }) => complete(serverInvocationOf(line)))
)

const defaultCount = 4
const maxCount = 1_000_000

/** `skein ping`. */
export const pingOptions = commandOnServer("ping", {
  ...serverFlags,
  count: Flag.String("count").pipe(
    Flag.withMetavar("<number>"),
    Flag.withDescription(`How many requests to send: ${defaultCount} by default, at most ${maxCount}`),
    last,
    Flag.mapEffect((text = String(defaultCount)) => {
      const count = /^\d+$/.test(text) ? Number(text) : 0
      return count >= 1 && count <= maxCount
        ? Effect.succeed(count)
        : invalid(`--count must be a whole number from 1 to ${maxCount}: ${JSON.stringify(text)}`)
    })
  ),
  interval: seconds("interval", "How long to wait between two requests: 1 by default").pipe(
    Flag.map((interval = 1_000) => interval)
  ),
  json: toggle("json", "Print the times as JSON, at the end"),
  target: targetArgument
}).pipe(
  Command.withShortDescription("Measure the round trips to a server"),
  Command.withDescription(
    "Sends requests to an MCP server and prints how long each answer took: ping, or server/discover in 2026-07-28."
  ),
  help(
    "",
    ["https://example.com/mcp", "--count 10 --interval 0.2 \"node server.mjs\""],
    exitCodes.replace("no answer in time", "an answer did not arrive in time")
  ),
  Command.validate((line) => Effect.andThen(checkServer(line), checkNamed(line)))
)

export const pingCommand = Command.withHandler(
  pingOptions,
  (line) => Effect.flatMap(loadRequests, ({ ping }) => ping(serverInvocationOf(line)))
)

// The least severe first. The module of `LoggingLevel` would load the messages of the protocol before they are needed.
const levels: ReadonlyArray<LoggingLevel> = [
  "debug",
  "info",
  "notice",
  "warning",
  "error",
  "critical",
  "alert",
  "emergency"
]

/** `skein logs`. */
export const logsOptions = commandOnServer("logs", {
  ...serverFlags,
  level: choice(
    "level",
    levels,
    "<level>",
    `The least severe level to print: info by default; one of ${levels.join(", ")}`
  ).pipe(
    last,
    Flag.map((level = "info") => level)
  ),
  json: toggle("json", "Print each message as JSON in a line"),
  target: targetArgument
}).pipe(
  Command.withShortDescription("Print the log messages of a server until interrupted"),
  Command.withDescription(
    "Prints the log messages that an MCP server sends to this client, until it is interrupted. It opens a session: in " +
      "2026-07-28 a server sends log messages only with the response to a request (skein call --verbose)."
  ),
  help("", ["--level warning \"node server.mjs\"", "--json https://example.com/mcp"], exitCodes),
  Command.validate((line) => Effect.andThen(checkServer(line), checkNamed(line)))
)

export const logsCommand = Command.withHandler(
  logsOptions,
  (line) => Effect.flatMap(loadWatch, ({ logs }) => logs(serverInvocationOf(line)))
)

const trailingUris: CountOperands = (words) => words.length - 1 - words.findLastIndex((word) => !uriScheme.test(word))

/** `skein subscribe`. */
export const subscribeOptions = commandOnServer("subscribe", {
  ...serverFlags,
  json: toggle("json", "Print each change as JSON in a line"),
  target: targetArgument,
  uris: Argument.String("uri").pipe(Argument.mapEffect(uri), Argument.variadic())
}, trailingUris).pipe(
  Command.withShortDescription("Print updates of resources and changes of lists until interrupted"),
  Command.withDescription(
    "Prints the changes on an MCP server until it is interrupted: updates of the resources, and changes of the lists of " +
      "tools, resources and prompts."
  ),
  help("[<uri>…]", ["https://example.com/mcp shop://menu shop://orders", "\"node server.mjs\""], exitCodes),
  Command.validate((line) => Effect.andThen(checkServer(line), checkNamed(line)))
)

export const subscribeCommand = Command.withHandler(
  subscribeOptions,
  (line) => Effect.flatMap(loadWatch, ({ subscribe }) => subscribe(serverInvocationOf(line)))
)
