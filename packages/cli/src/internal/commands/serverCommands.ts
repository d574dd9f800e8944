/**
 * The command lines of the commands about one server: `inspect`, `read`, `prompt`, `complete`, `ping`, `logs`,
 * `subscribe` and `generate-client`.
 */
import { logLevels } from "@skein/protocol/RequestMeta"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { isAssignment, stringArguments } from "../base/givenArguments.ts"
import { Process, promised } from "../base/process.ts"
import {
  choice,
  commandOnServer,
  type CountOperands,
  handledBy,
  invalid,
  last,
  secondsOr,
  text,
  toggle,
  wholeNumber
} from "./commandLine.ts"
import { describe, type Description } from "./help.ts"
import {
  answeringFlags,
  argumentWords,
  checkOneServer,
  serverFlags,
  serverInvocationOf,
  type ServerLine,
  targetArgument,
  withFlag
} from "./serverOptions.ts"

const exitCodes = "Exit codes: 0 success, 2 invalid command line, 3 no connection or no answer in time, 4 the server " +
  "refused the request or its answer was invalid, 130 interrupted."

const exitCodesOfAsking = exitCodes.replace("130", "5 the answers did not fit a form, which was declined, 130")

/** A command whose server is followed by these operands: its help, and the check of its server. */
const onServer = (
  { acceptsDomain = false, operands = "", ...help }: Omit<Description, "usage"> & {
    readonly operands?: string
    /** Whether the server may be given by a domain, whose catalog lists it. */
    readonly acceptsDomain?: boolean
  }
) =>
<const Name extends string, Line extends ServerLine, ContextInput, E, R>(
  command: Command.Command<Name, Line, ContextInput, E, R>
) => {
  const after = operands === "" ? "" : ` ${operands}`
  const usage = [
    `[options] <url or module>${after}`,
    `[options] "<command and its arguments>"${after}`,
    `[options] <command> <its arguments…>${after === "" ? "" : ` --${after}`}`,
    `[options] --config <file> --server <name>${after}`,
    ...acceptsDomain ? ["[options] <domain>"] : []
  ]
  return command.pipe(describe({ ...help, usage }), Command.validate((line) => checkOneServer(line, acceptsDomain)))
}

const loadRequests = () => import("../calls/requests.ts")
const loadWatch = () => import("../calls/watch.ts")

/** Prints what each process of a server would have apart. */
const inspectFleet = Effect.fnUntraced(function*({ env, exportName, json }: Pick<ServerLine, "env" | "exportName"> & {
  readonly json: boolean
}, module: string) {
  const { console: { print, warn } } = yield* Process
  const { hasLocalParts, localPartsOf, localPartsText } = yield* Effect.promise(() => import("../develop/nodeFleet.ts"))
  const parts = yield* promised(() => localPartsOf({ module, exportName, env }))
  if (json) yield* print(JSON.stringify({ local: parts }, undefined, 2))
  else if (parts.length > 0) yield* print(localPartsText(parts))
  else warn("Several processes can share everything that was found in the server")
  if (parts.length > 0) return yield* hasLocalParts
})

/** `skein inspect`. */
export const inspectCommand = commandOnServer("inspect", {
  ...serverFlags,
  info: toggle("info", "Show the name, the revision, the capabilities and the instructions"),
  tools: toggle("tools", "Show the tools"),
  resources: toggle("resources", "Show the resources"),
  templates: toggle("templates", "Show the resource templates"),
  prompts: toggle("prompts", "Show the prompts"),
  lint: toggle("lint", "Show what providers of models refuse in the names and schemas of the tools"),
  fleet: toggle(
    "fleet",
    "Show what each of several processes of the server, a module, would have apart, and how to share it"
  ),
  json: toggle("json", "Print everything as JSON, with the schemas of the tools"),
  target: targetArgument
}).pipe(
  onServer({
    short: "Show what a server offers: tools, resources, prompts, capabilities",
    description:
      "Shows what an MCP server offers: its name and revision, its capabilities, extensions and instructions, and its " +
      "tools, resources, resource templates and prompts. Without a selection, everything is shown. The warnings that a " +
      "process of Skein logs at its start, such as parts of an OpenAPI document that it left out, follow. For a domain, the " +
      "server cards that its AI Catalog lists are read (experimental): the server of the only card is inspected, and " +
      "several are listed. With --fleet, the server of a module is built and not served: stores in memory, variables of its " +
      "files and changes of its catalog are listed, and the exit code is 1 if there are any.",
    examples: [
      "https://example.com/mcp",
      "--tools src/server.ts",
      "--lint src/server.ts",
      "--fleet src/server.ts",
      "--json https://example.com/mcp",
      "example.com"
    ],
    acceptsDomain: true,
    footer: exitCodes
  }),
  Command.validate(({ fleet, target }) =>
    fleet && target?._tag !== "Module"
      ? invalid("--fleet needs a module as the server: the path of a file that exists")
      : Effect.void
  ),
  handledBy(
    () => import("../calls/inspect.ts"),
    ({ inspect }, { fleet, ...line }) =>
      fleet && line.target?._tag === "Module"
        ? inspectFleet(line, line.target.file)
        : inspect(serverInvocationOf(line))
  )
)

// A scheme of one letter is a drive of Windows.
const uriScheme = /^[a-z][a-z0-9+.-]+:/i

const uri = (text: string) =>
  uriScheme.test(text) ? Effect.succeed(text) : invalid(`<uri> must be the URI of a resource: ${JSON.stringify(text)}`)

/** `skein read`. */
export const readCommand = commandOnServer("read", {
  ...serverFlags,
  ...answeringFlags,
  output: text("output", "<file>", "Write the contents to a file, which is replaced if it exists"),
  json: toggle("json", "Print the whole result as JSON, binary contents in base64"),
  target: targetArgument,
  uri: Argument.String("uri").pipe(Argument.mapEffect(uri))
}, () => 1).pipe(
  onServer({
    short: "Print the contents of a resource, or write them to a file",
    description: "Prints the contents of a resource of an MCP server. Binary contents are written to a file or a pipe.",
    operands: "<uri>",
    examples: ["https://example.com/mcp shop://menu", "--output logo.png \"node server.mjs\" shop://logo"],
    footer: exitCodesOfAsking
  }),
  handledBy(loadRequests, ({ read }, line) => read(serverInvocationOf(line)))
)

const countPrompt: CountOperands = (words) =>
  /^\s*\{/.test(words.at(-1) ?? "") ? 2 : words.length - words.findLastIndex((word) => !isAssignment(word))

/** `skein prompt`. */
export const promptCommand = commandOnServer("prompt", {
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
  onServer({
    short: "Print the messages of a prompt",
    description: "Prints the messages of a prompt of an MCP server, with its arguments filled in.",
    operands: "<name> [<arguments>]",
    examples: [
      "https://example.com/mcp review tea=sencha",
      "src/server.ts review '{\"code\":\"let a = 1\"}'",
      "--json \"node server.mjs\" review"
    ],
    footer: `Arguments are words of the form name=value, or one JSON object. ${exitCodesOfAsking}`
  }),
  handledBy(loadRequests, ({ prompt }, line) => prompt(serverInvocationOf(line)))
)

// The number of its operands is not fixed: without quotes or an end mark the command of the server is one word.
const countComplete: CountOperands = (words) => words.length - 1

/** `skein complete`. */
export const completeCommand = commandOnServer("complete", {
  ...serverFlags,
  with: withFlag,
  json: toggle("json", "Print the whole result as JSON"),
  target: targetArgument,
  of: Argument.String("prompt or template"),
  argument: Argument.String("argument"),
  typed: Argument.String("typed").pipe(Argument.optional, Argument.map(Option.getOrElse(() => "")))
}, countComplete).pipe(
  onServer({
    short: "Print suggestions for an argument of a prompt or of a resource template",
    description:
      "Prints the suggestions of an MCP server for an argument of a prompt, or for a variable of a resource template, one " +
      "in a line. A text with {…} or :// is a URI template. The argument and its text may be one word, name=value.",
    operands: "<prompt or template> <argument> [<typed>]",
    examples: [
      "https://example.com/mcp review language py",
      "--with language=rust https://example.com/mcp review framework",
      "\"node server.mjs\" 'shop://teas/{tea}' tea"
    ],
    footer: exitCodes
  }),
  handledBy(loadRequests, ({ complete }, line) => complete(serverInvocationOf(line)))
)

const defaultCount = 4
const maxCount = 1_000_000

/** `skein ping`. */
export const pingCommand = commandOnServer("ping", {
  ...serverFlags,
  count: wholeNumber(
    "count",
    `How many requests to send: ${defaultCount} by default, at most ${maxCount}`,
    defaultCount,
    maxCount
  ),
  interval: secondsOr("interval", "How long to wait between two requests", 1),
  json: toggle("json", "Print the times as JSON, at the end"),
  target: targetArgument
}).pipe(
  onServer({
    short: "Measure the round trips to a server",
    description:
      "Sends requests to an MCP server and prints how long each answer took: ping, or server/discover in 2026-07-28.",
    examples: ["https://example.com/mcp", "--count 10 --interval 0.2 \"node server.mjs\""],
    footer: exitCodes.replace("no answer in time", "an answer did not arrive in time")
  }),
  handledBy(loadRequests, ({ ping }, line) => ping(serverInvocationOf(line)))
)

/** `skein logs`. */
export const logsCommand = commandOnServer("logs", {
  ...serverFlags,
  level: choice(
    "level",
    logLevels,
    "<level>",
    `The least severe level to print: info by default; one of ${logLevels.join(", ")}`
  ).pipe(
    last,
    Flag.map((level = "info") => level)
  ),
  json: toggle("json", "Print each message as JSON in a line"),
  target: targetArgument
}).pipe(
  onServer({
    short: "Print the log messages of a server until interrupted",
    description:
      "Prints the log messages that an MCP server sends to this client, until it is interrupted. It opens a session: in " +
      "2026-07-28 a server sends log messages only with the response to a request (skein call --verbose).",
    examples: ["--level warning \"node server.mjs\"", "--json https://example.com/mcp"],
    footer: exitCodes
  }),
  handledBy(loadWatch, ({ logs }, line) => logs(serverInvocationOf(line)))
)

const trailingUris: CountOperands = (words) => words.length - 1 - words.findLastIndex((word) => !uriScheme.test(word))

/** `skein subscribe`. */
export const subscribeCommand = commandOnServer("subscribe", {
  ...serverFlags,
  json: toggle("json", "Print each change as JSON in a line"),
  target: targetArgument,
  uris: Argument.String("uri").pipe(Argument.mapEffect(uri), Argument.variadic())
}, trailingUris).pipe(
  onServer({
    short: "Print updates of resources and changes of lists until interrupted",
    description:
      "Prints the changes on an MCP server until it is interrupted: updates of the resources, and changes of the lists of " +
      "tools, resources and prompts.",
    operands: "[<uri>…]",
    examples: ["https://example.com/mcp shop://menu shop://orders", "\"node server.mjs\""],
    footer: exitCodes
  }),
  handledBy(loadWatch, ({ subscribe }, line) => subscribe(serverInvocationOf(line)))
)

const defaultMaxChars = 4 * 1024 * 1024

/** `skein generate-client`. */
export const generateCommand = commandOnServer("generate-client", {
  ...serverFlags,
  out: text("out", "<file>", "Write the module to a file, which is replaced if it exists; stdout by default"),
  check: toggle("check", "Write nothing, and exit with 1 if the file of --out is not what would be written"),
  maxChars: wholeNumber(
    "max-chars",
    `How many characters the module has at most: ${defaultMaxChars} by default`,
    defaultMaxChars,
    9_999_999_999
  ),
  target: targetArgument
}).pipe(
  describe({
    short: "Generate a typed client of a server: functions and schemas for its tools",
    description:
      "Generates a TypeScript module with a typed function for each tool, prompt, resource and resource template of an MCP " +
      "server, and Effect Schemas for the arguments and results of its tools.",
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
      : checkOneServer(line)
  ),
  handledBy(
    () => import("../generate/generateClient.ts"),
    ({ generateClient }, line) => generateClient({ ...serverInvocationOf(line), json: false })
  )
)
