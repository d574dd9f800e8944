/**
 * The command lines of the commands for the author of a server: `run` and `build`.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { invalid, last, toggle } from "./commandLine.ts"
import { sanitize } from "./format.ts"
import { HelpText } from "./help.ts"
import { CommandFailed, Process } from "./process.ts"

/** How a server is served over HTTP. */
interface HttpLine {
  readonly http: boolean
  readonly port: number | undefined
  readonly host: string | undefined
}

/** A parsed command line of `run`. */
export interface RunLine extends HttpLine {
  readonly module: string
  /** The name of the export that is the server. */
  readonly exportName: string | undefined
  /** A file with variables for the environment of the server. */
  readonly dotenv: string | undefined
}

/** A parsed command line of `build`. */
export interface BuildLine {
  readonly module: string
  readonly exportName: string | undefined
  readonly http: boolean
  /** The file to write. */
  readonly out: string | undefined
  readonly minify: boolean
  readonly sourcemap: boolean
  /** Packages that stay outside of the file. */
  readonly external: ReadonlyArray<string>
  readonly json: boolean
}

const text = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), last)

const httpFlags = {
  http: toggle("http", "Serve over HTTP; over stdio by default"),
  port: text("port", "<number>", "The port, with --http: SKEIN_PORT or 3000 by default, 0 for any free port").pipe(
    Flag.mapEffect((text) =>
      text === undefined || (/^\d+$/.test(text) && Number(text) <= 65_535)
        ? Effect.succeed(text === undefined ? undefined : Number(text))
        : invalid(`--port must be a number from 0 to 65535: ${JSON.stringify(text)}`)
    )
  ),
  host: text("host", "<address>", "The address to listen on, with --http: SKEIN_HOST or 127.0.0.1 by default")
}

const moduleFlags = {
  // Not `--env-file`: Node reads that option, wherever it is among the arguments of a program.
  exportName: text("export", "<name>", "The export that is the server: default, or the only server, by default"),
  dotenv: text("dotenv", "<file>", "A file with variables for the environment of the server, such as .env")
}

const checkHttp = ({ host, http, port }: HttpLine) =>
  http || (host === undefined && port === undefined) ? Effect.void : invalid("--port and --host need --http")

const exitCodes = "Exit codes: those of the server; 2 invalid command line, or a module that cannot be served; 130 " +
  "interrupted, 143 terminated."

/** Fails as the command that ran, or with a defect. */
const promised = <A>(run: () => Promise<A>): Effect.Effect<A, CommandFailed> =>
  Effect.flatten(Effect.promise(() =>
    run().then(
      (value): Effect.Effect<A, CommandFailed> => Effect.succeed(value),
      (cause: unknown) => cause instanceof CommandFailed ? Effect.fail(cause) : Effect.die(cause)
    )
  ))

/** `skein run`. */
export const runOptions = Command.make("run", {
  ...httpFlags,
  ...moduleFlags,
  module: Argument.String("module")
}).pipe(
  Command.withShortDescription("Serve the server that a module exports, over stdio or HTTP"),
  Command.withDescription(
    "Serves the server that a module of JavaScript or TypeScript exports: a layer of McpServer.layer, or an AsyncServer. " +
      "The module, @skein/server and effect are those of its project."
  ),
  Command.annotate(HelpText, {
    usage: ["[options] <module>"],
    examples: ["src/server.ts", "--http --port 8080 src/server.ts", "--export TeaHouse --dotenv .env src/servers.ts"],
    footer: `With --http, variables such as SKEIN_PORT set the other options of the server. ${exitCodes}`
  }),
  Command.validate((line) => checkHttp(line))
)

export const runModuleCommand = Command.withHandler(runOptions, (line) =>
  Effect.gen(function*() {
    const { handOver } = yield* Process
    if (handOver === undefined) return yield* Effect.die("a server needs a process of its own")
    const start = yield* promised(async () => (await import("./develop/nodeRun.ts")).prepareServer(line))
    return yield* handOver(start)
  }))

const loadBuild = () => import("./develop/nodeBuild.ts")

/** `skein build`. */
export const buildOptions = Command.make("build", {
  stdio: toggle("stdio", "Serve over stdio, as by default"),
  http: toggle("http", "Serve over HTTP: variables such as SKEIN_PORT set the options when the file runs"),
  exportName: moduleFlags.exportName,
  out: text("out", "<file>", "The file to write: dist/<name of the module>.cjs by default"),
  minify: Flag.Boolean("minify").pipe(
    Flag.withDescription("Shorten names and remove white space, as by default; a readable file starts slower"),
    last,
    Flag.map((value) => value ?? true)
  ),
  sourcemap: toggle("sourcemap", "Write a source map beside the file"),
  external: Flag.String("external").pipe(
    Flag.withMetavar("<package>"),
    Flag.withDescription("Keep a package outside of the file; can be repeated"),
    Flag.atLeast(0)
  ),
  json: toggle("json", "Print the result as JSON"),
  module: Argument.String("module")
}).pipe(
  Command.withShortDescription("Bundle a server into one file that starts fast"),
  Command.withDescription(
    "Bundles the server that a module exports, and everything that it imports, into one file, which Node starts with its " +
      "compile cache. A module without exports is a program that starts the server. Packages with native code stay " +
      "outside of the file."
  ),
  Command.annotate(HelpText, {
    usage: ["[options] <module>"],
    examples: ["src/server.ts", "--http --out dist/main.cjs src/server.ts", "--no-minify --sourcemap src/main.ts"],
    footer:
      "The project needs rolldown: npm install --save-dev rolldown. Exit codes: 0 success, 2 invalid command line, " +
      "or a module that cannot be bundled, 3 the file cannot be written, 130 interrupted."
  }),
  Command.validate((line) =>
    line.http && line.stdio ? invalid("--http and --stdio cannot be used together") : Effect.void
  )
)

export const buildCommand = Command.withHandler(buildOptions, (line) =>
  Effect.gen(function*() {
    const { console } = yield* Process
    const { buildServer, notesOf } = yield* Effect.promise(loadBuild)
    const built = yield* promised(() => buildServer(line))
    if (line.json) return yield* console.print(JSON.stringify(built, undefined, 2))
    for (const note of notesOf(built)) console.warn(sanitize(note))
    yield* console.print(`${built.file}  ${(built.bytes / 1024).toFixed(1)} KiB`)
  }))
