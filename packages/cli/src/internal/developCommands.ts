/**
 * The command lines of the commands for the author of a server: `run`.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { invalid, last, toggle } from "./commandLine.ts"
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
