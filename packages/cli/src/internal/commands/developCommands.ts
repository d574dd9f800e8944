/**
 * The command lines of the commands for the author of a server: `run`, `dev`, `build`, `publish` and `conformance`.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import {
  commandOnServer,
  handledBy,
  invalid,
  isUrl,
  last,
  option,
  portNumber,
  secondsOr,
  splitWords,
  text,
  texts,
  toggle,
  wholeNumber
} from "./commandLine.ts"
import type { HttpLine } from "../develop/nodeRun.ts"
import { sanitize } from "../base/format.ts"
import { describe } from "./help.ts"
import { Process, promised } from "../base/process.ts"
import {
  checkOneServer,
  configFlags,
  envFlag,
  exportFlag,
  headerFlag,
  loginFlag,
  serverInvocationOf,
  targetArgument
} from "./serverOptions.ts"
import { signInFlags } from "./signInFlags.ts"

/** `from` names the variable that has the default, if there is one. */
const httpFlags = (from: (variable: string) => string) => ({
  http: toggle("http", "Serve over HTTP; over stdio by default"),
  port: portNumber(
    "<number>",
    `The port, with --http: ${from("SKEIN_PORT")}3000 by default, 0 for any free port`,
    0
  ),
  host: text("host", "<address>", `The address to listen on, with --http: ${from("SKEIN_HOST")}127.0.0.1 by default`)
})

const moduleFlags = {
  // Not `--env-file`: Node reads that option, wherever it is among the arguments of a program.
  exportName: text("export", "<name>", "The export that is the server: default, or the only server, by default"),
  dotenv: text("dotenv", "<file>", "A file with variables for the environment of the server, such as .env")
}

const describedEnv = envFlag.pipe(Flag.withDescription(
  "A variable that the server needs, and its value while it is described, that of this process by default; can be " +
    "repeated. Those that its Config reads are found; others, of process.env, are listed if they are given here"
))

const checkHttp = ({ host, http, port }: HttpLine) =>
  http || (host === undefined && port === undefined) ? Effect.void : invalid("--port and --host need --http")

const workers = option<number | "auto">(
  "workers",
  "<number>",
  "The number of processes, with --http: auto for one for each processor; SKEIN_WORKERS or 1 by default",
  (text) =>
    text === "auto"
      ? Effect.succeed("auto")
      : /^[1-9]\d{0,3}$/.test(text)
      ? Effect.succeed(Number(text))
      : invalid(`--workers must be auto, or a whole number from 1 to 9999: ${JSON.stringify(text)}`)
)

const exitCodes = "Exit codes: those of the server; 2 invalid command line, or a module that cannot be served; 130 " +
  "interrupted, 143 terminated."

/** `skein run`. */
export const runModuleCommand = Command.make("run", {
  ...httpFlags((variable) => `${variable} or `),
  workers,
  ...moduleFlags,
  module: Argument.String("module")
}).pipe(
  describe({
    short: "Serve the server that a module exports, or a folder of tools, over stdio or HTTP",
    description:
      "Serves the server that a module of JavaScript or TypeScript exports: a layer of McpServer.layer, or an AsyncServer. " +
      "Or serves a folder: its modules export definitions, such as that of tool(…) or the layer of Tool.layer, and the nearest " +
      "package.json has the name and the version. The packages are those of the project.",
    usage: ["[options] <module or folder>"],
    examples: [
      "src/server.ts",
      "src/tools",
      "--http --port 8080 --workers auto src/server.ts",
      "--export TeaHouse --dotenv .env src/servers.ts"
    ],
    footer: `With --http, variables such as SKEIN_PORT set the other options of the server. ${exitCodes}`
  }),
  Command.validate((line) =>
    line.workers === undefined || line.http ? checkHttp(line) : invalid("--workers needs --http")
  ),
  Command.withHandler(Effect.fnUntraced(function*(line) {
    const { handOver } = yield* Process
    if (handOver === undefined) return yield* Effect.die("a server needs a process of its own")
    const start = yield* promised(async () => (await import("../develop/nodeRun.ts")).prepareServer(line))
    return yield* handOver(start)
  }))
)

/** `skein build`. */
export const buildCommand = Command.make("build", {
  stdio: toggle("stdio", "Serve over stdio, as by default"),
  http: toggle("http", "Serve over HTTP: variables such as SKEIN_PORT set the options when the file runs"),
  exportName: moduleFlags.exportName,
  out: text("out", "<file>", "The file to write: dist/<name of the module or the folder>.cjs by default"),
  minify: Flag.Boolean("minify").pipe(
    Flag.withDescription("Shorten names and remove white space, as by default; a readable file starts slower"),
    last,
    Flag.map((value) => value ?? true)
  ),
  sourcemap: toggle("sourcemap", "Write a source map beside the file"),
  external: texts("external", "<package>", "Keep a package outside of the file; can be repeated"),
  mcpb: toggle(
    "mcpb",
    "Write a bundle beside the file, too, which hosts such as Claude Desktop install. The server is built once for it"
  ),
  env: describedEnv,
  dotenv: moduleFlags.dotenv,
  json: toggle("json", "Print the result as JSON"),
  module: Argument.String("module")
}).pipe(
  describe({
    short: "Bundle a server into one file that starts fast",
    description:
      "Bundles the server that a module exports, or that the modules of a folder make, and everything that it imports, " +
      "into one file, which Node starts with its compile cache. A module without exports is a program that starts the server. Packages with native code stay " +
      "outside of the file. With --mcpb, the bundle has a manifest of the definitions and the Config of the server, and of " +
      "its package.json.",
    usage: ["[options] <module or folder>"],
    examples: [
      "src/server.ts",
      "src/tools",
      "--mcpb --env TEA_API_KEY src/server.ts",
      "--http --out dist/main.cjs src/server.ts",
      "--no-minify --sourcemap src/main.ts"
    ],
    footer:
      "The project needs rolldown: npm install --save-dev rolldown. Exit codes: 0 success, 2 invalid command line, " +
      "or a module that cannot be bundled, 3 the file cannot be written, 130 interrupted."
  }),
  Command.validate((line) => {
    if (line.http && line.stdio) return invalid("--http and --stdio cannot be used together")
    if (line.mcpb) {
      return line.http
        ? invalid("--mcpb cannot be used with --http: hosts start it on stdio")
        : Effect.void
    }
    return line.dotenv === undefined && Object.keys(line.env).length === 0
      ? Effect.void
      : invalid("--env and --dotenv need --mcpb: the server does not run otherwise")
  }),
  Command.withHandler(Effect.fnUntraced(function*(line) {
    const { console } = yield* Process
    const { buildServer, notesOf } = yield* Effect.promise(() => import("../develop/nodeBuild.ts"))
    const built = yield* promised(() => buildServer(line))
    if (line.json) return yield* console.print(JSON.stringify(built, undefined, 2))
    for (const note of notesOf(built)) console.warn(sanitize(note))
    for (const { bytes, file } of [built, ...built.bundle === undefined ? [] : [built.bundle]]) {
      yield* console.print(`${file}  ${(bytes / 1024).toFixed(1)} KiB`)
    }
  }))
)

/** `skein publish`. */
export const publishCommand = Command.make("publish", {
  dryRun: toggle("dry-run", "Make and check the entry, and send nothing: required, since skein does not send it"),
  name: text(
    "name",
    "<name>",
    "The name in the registry, such as io.github.ada/tea-house: mcpName of package.json by default"
  ),
  description: text("description", "<text>", "The server in at most 100 characters: its description by default"),
  remote: text("remote", "<url>", "The URL of the server, if others reach it over HTTP"),
  exportName: moduleFlags.exportName,
  env: describedEnv,
  dotenv: moduleFlags.dotenv,
  out: text("out", "<file>", "Write the entry to a file, such as server.json; stdout by default"),
  module: Argument.String("module")
}).pipe(
  describe({
    short: "Make the entry of a server in the MCP registry (server.json), and check it",
    description:
      "Makes the entry of a server in the MCP registry, server.json, and checks it by the schema of the registry. The server " +
      "is built once, and has the title, the description, the version, the website and the icons; the variables that its " +
      "Config reads are listed, without their values. package.json has the package that npx starts, and the repository.",
    usage: ["--dry-run [options] <module or folder>"],
    examples: [
      "--dry-run src/server.ts",
      "--dry-run --env TEA_API_KEY --out server.json src/server.ts",
      "--dry-run --name com.example/tea-house --remote https://example.com/mcp src/server.ts"
    ],
    footer:
      "Publish the package with npm, and then the entry with the program of the registry: mcp-publisher publish. Exit codes: " +
      "0 success, 2 invalid command line, a module that cannot be built, or an entry that the registry would refuse, 3 the " +
      "file cannot be written, 130 interrupted."
  }),
  Command.validate((line) =>
    !line.dryRun
      ? invalid("skein publish needs --dry-run: it sends nothing. mcp-publisher publish sends the entry")
      : line.remote === undefined || (isUrl(line.remote) && URL.canParse(line.remote))
      ? Effect.void
      : invalid("--remote must be an http or https URL")
  ),
  Command.withHandler(Effect.fnUntraced(function*(line) {
    const { console } = yield* Process
    const { publishedEntry } = yield* Effect.promise(() => import("../develop/nodePublish.ts"))
    const { notes, text } = yield* promised(() => publishedEntry(line))
    for (const note of notes) console.warn(sanitize(note))
    yield* console.print(line.out === undefined ? text : line.out)
  }))
)

const count = (name: string, description: string, byDefault: number, most = 9_999_999) =>
  wholeNumber(name, `${description}: ${byDefault} by default`, byDefault, most)

// A body is decoded into one string: 256 MiB of it are within the bound of V8.
const mostBodyBytes = 256 * 1024 * 1024

/** The bounds of the bridge between HTTP and stdio. `when` says when there is one. */
const bridgeFlags = (when: string) => ({
  maxSessions: count("max-sessions", `How many sessions may be open, ${when}`, 32),
  maxBodyBytes: count(
    "max-body-bytes",
    `How many bytes the body of a request may have, ${when}`,
    4 * 1024 * 1024,
    mostBodyBytes
  )
})

// Short: a server that serves a request would take seconds to end, as long as its shutdown timeout.
const closeTimeout = secondsOr(
  "close-timeout",
  "How long a server may take to end after its stdin was closed, before it gets SIGTERM",
  0.5
)

/** The version of the MCP Inspector that `dev` starts by default. */
export const inspectorVersion = "2.12.0"

/** `skein dev`. */
export const devCommand = commandOnServer("dev", {
  // The bridge listens, and not the server, which the variables are for.
  ...httpFlags(() => ""),
  ...moduleFlags,
  env: envFlag,
  watch: texts(
    "watch",
    "<path>",
    "Watch a file or a folder; can be repeated. By default the folder of the project is watched"
  ),
  debounce: secondsOr("debounce", "How long no further file may change before a restart", 0.1),
  startTimeout: secondsOr("start-timeout", "How long a server may take to answer initialize", 30),
  maxWaiting: count("max-waiting", "How many requests may wait for a server that starts", 1_000),
  maxFolders: count("max-folders", "How many folders are watched", 1_000),
  drainTimeout: secondsOr(
    "drain-timeout",
    "How long requests in progress may take after the host has closed stdin",
    5
  ),
  closeTimeout,
  ...bridgeFlags("with --http"),
  restartOnly: toggle("restart-only", "Restart a program that listens on a port of its own: nothing connects to it"),
  killTimeout: secondsOr(
    "kill-timeout",
    "How long a program may take to end after SIGTERM, before it gets SIGKILL, with --restart-only",
    5
  ),
  inspector: toggle("inspector", "Open the MCP Inspector on the server, with npx"),
  inspectorVersion: text(
    "inspector-version",
    "<version>",
    `The version of the inspector: ${inspectorVersion} by default`
  )
    .pipe(Flag.map((version = inspectorVersion) => version)),
  target: Argument.String("module or command").pipe(
    Argument.mapEffect((text) => {
      const [command, ...args] = splitWords(text)
      return command === undefined || isUrl(command)
        ? invalid("A module or the command of a server on stdio is required")
        : Effect.succeed({ command, args })
    })
  )
}).pipe(
  describe({
    short: "Restart a server when its files change, while its hosts stay connected",
    description:
      "Serves a module, a folder of modules, or a command that serves stdio, and restarts it when a file of the project changes. Hosts stay " +
      "connected: each new server gets the handshake, the log level and the subscriptions again, and the hosts get the " +
      "changes of the lists. With --http each session has a server process of its own.",
    usage: [
      "[options] <module or folder>",
      "[options] \"<command and its arguments>\"",
      "[options] <command> <its arguments…>"
    ],
    examples: [
      "src/server.ts",
      "src/tools",
      "--watch src --watch .env --dotenv .env src/server.ts",
      "--http --inspector src/server.ts",
      "--restart-only --watch src \"node src/main.ts\""
    ],
    footer:
      "A host starts skein dev as it starts the server. Exit codes: 0 the host has closed stdin, 2 invalid command " +
      "line, 3 the port cannot be used, or the inspector failed, 130 interrupted, 143 terminated."
  }),
  Command.validate((line) =>
    line.restartOnly && (line.http || line.inspector)
      ? invalid("--restart-only cannot be used with --http and --inspector: nothing connects to the program")
      : checkHttp(line)
  ),
  handledBy(() => import("../develop/nodeDev.ts"), ({ dev }, line) => dev(line))
)

/** The version of the conformance suite by default. */
const conformanceVersion = "0.2.0-alpha.12"

/** `skein conformance`. */
export const conformanceCommand = commandOnServer("conformance", {
  headers: headerFlag,
  env: envFlag,
  exportName: exportFlag,
  ...configFlags,
  revision: text(
    "revision",
    "<date>",
    "The revision to test: the scenarios that it requires, or all that the suite has for it"
  ),
  suite: text("suite", "<name>", "The scenarios of a suite: active by default, or all, draft, pending"),
  scenario: text("scenario", "<name>", "One scenario"),
  expectedFailures: text(
    "expected-failures",
    "<file>",
    "A YAML file of scenarios that are expected to fail. One that passes is an error"
  ),
  suiteVersion: text(
    "suite-version",
    "<version>",
    `The version of @modelcontextprotocol/conformance: ${conformanceVersion} by default`
  ).pipe(Flag.map((version = conformanceVersion) => version)),
  timeout: secondsOr("timeout", "How long one scenario may take", 30),
  totalTimeout: secondsOr("total-timeout", "How long the suite may take", 900),
  closeTimeout,
  ...bridgeFlags("with a command"),
  login: loginFlag,
  ...signInFlags,
  verbose: toggle("verbose", "Report the output of the suite, and the stderr of the server"),
  json: toggle("json", "Print the results as JSON"),
  target: targetArgument
}).pipe(
  describe({
    short: "Judge a server with the official conformance suite",
    description:
      "Runs the official conformance suite against a server, and prints its scenarios. An installed suite of the version is " +
      "used, or npx downloads it. The suite needs a URL: a command on stdio is served over HTTP by a bridge, and headers " +
      "and tokens are added by a forwarder on this computer.",
    usage: [
      "[options] <url or module>",
      "[options] \"<command and its arguments>\"",
      "[options] <command> <its arguments…>",
      "[options] --config <file> --server <name>"
    ],
    examples: [
      "src/server.ts",
      "--header \"Authorization: Bearer $TOKEN\" https://example.com/mcp",
      "--revision 2026-07-28 http://127.0.0.1:3000/mcp",
      "--suite all --expected-failures known.yml \"node dist/server.cjs\""
    ],
    footer:
      "The scenarios expect the tools, resources and prompts of the suite's own example server. Exit codes: 0 no " +
      "scenario failed, 1 a scenario failed or an expected failure passed, 2 invalid command line or file, 3 the suite did " +
      "not run, 130 interrupted."
  }),
  Command.validate((line) =>
    line.scenario !== undefined && line.suite !== undefined
      ? invalid("--scenario and --suite cannot be used together")
      : checkOneServer(line)
  ),
  handledBy(
    () => import("../develop/nodeConformance.ts"),
    ({ conformance }, line) => conformance(serverInvocationOf(line))
  )
)
