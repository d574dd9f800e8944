/**
 * Runs a command of `effect/cli`, and decides the exit code of the process.
 */
import * as CliConfig from "effect/cli/CliConfig"
import * as CliOutput from "effect/cli/CliOutput"
import * as Command from "effect/cli/Command"
import * as GlobalFlag from "effect/cli/GlobalFlag"
import * as Effect from "effect/Effect"
import * as FileSystem from "effect/FileSystem"
import * as Layer from "effect/Layer"
import * as Path from "effect/Path"
import * as ChildProcessSpawner from "effect/process/ChildProcessSpawner"
import * as Stdio from "effect/Stdio"
import * as Terminal from "effect/Terminal"
import { plain } from "../base/colors.ts"
import { sanitize } from "../base/format.ts"
import { errorMessage, formatHelp, formatUsage } from "./help.ts"
import { type CommandFailed, type Console, Process, version } from "../base/process.ts"

/** The exit code for a command line that is not valid. */
const invalidUsage = 2

/**
 * The services that `effect/cli` requires for parsing, where an option can name a file or prompt for a value. The
 * options of these commands do neither, and loading `@effect/platform-node` would take 50 ms, so each service fails
 * when it is used.
 */
const unused = /* @__PURE__ */ Layer.mergeAll(
  /* @__PURE__ */ FileSystem.layerNoop({}),
  Path.layer,
  /* @__PURE__ */ Stdio.layerTest({}),
  /* @__PURE__ */ Layer.succeed(
    Terminal.Terminal,
    /* @__PURE__ */ Terminal.make({
      columns: /* @__PURE__ */ Effect.die("no terminal"),
      rows: /* @__PURE__ */ Effect.die("no terminal"),
      size: /* @__PURE__ */ Effect.die("no terminal"),
      readInput: /* @__PURE__ */ Effect.die("no terminal"),
      readLine: /* @__PURE__ */ Effect.die("no terminal"),
      display: () => Effect.die("no terminal")
    })
  ),
  /* @__PURE__ */ Layer.succeed(
    ChildProcessSpawner.ChildProcessSpawner,
    /* @__PURE__ */ ChildProcessSpawner.make(() => Effect.die("no processes"))
  )
)

const presenter = (name: string, { colors, print, warn }: Console): CliOutput.Presenter => ({
  present: (event) => {
    switch (event._tag) {
      case "Help":
        return print(formatHelp(event.helpDoc, event.commandPath))
      case "InvalidInvocation": {
        const { red } = colors?.err ?? plain
        const errors = event.errors.map((error) => red(sanitize(`${name}: ${errorMessage(error)}`)))
        return Effect.sync(() => warn(`${errors.join("\n")}\n\n${formatUsage(event.helpDoc, event.commandPath)}`))
      }
      case "Version":
        return print(event.version)
    }
  }
})

/** The options of a program with several commands. */
export const programFlags = [GlobalFlag.Help, GlobalFlag.Version, GlobalFlag.Completions] as const

/**
 * Runs the command with the arguments of the process, reports a failure on stderr, and returns the exit code.
 * `builtIns` are the options that `effect/cli` provides: `--help` and `--version` by default.
 */
export const runCommand = Effect.fnUntraced(function*<Name extends string, Input, ContextInput>(
  command: Command.Command<Name, Input, ContextInput, CommandFailed, Process>,
  argv: ReadonlyArray<string>,
  builtIns: ReadonlyArray<GlobalFlag.BuiltIn> = [GlobalFlag.Help, GlobalFlag.Version]
): Effect.fn.Return<number, never, Process> {
  const process = yield* Process
  const options = argv.includes("--") ? argv.slice(0, argv.indexOf("--")) : argv
  const console = options.includes("--json") ? { ...process.console, colors: undefined } : process.console
  const { red } = console.colors?.err ?? plain
  const warn = (message: string): void => console.warn(red(sanitize(`${command.name}: ${message}`)))
  return yield* Command.runWith(command, { version })(argv).pipe(
    Effect.as(0),
    Effect.catch((error) => {
      // The presenter has shown it.
      if (error._tag === "ShowHelp") return Effect.succeed(error.errors.length === 0 ? 0 : invalidUsage)
      if (error._tag !== "CommandFailed") {
        warn(errorMessage(error))
        return Effect.succeed(invalidUsage)
      }
      if (error.report !== undefined) warn(error.report)
      return Effect.succeed(error.exitCode)
    }),
    Effect.provideService(CliOutput.Presenter, presenter(command.name, console)),
    Effect.provideService(CliConfig.CliConfig, CliConfig.make({ builtIns })),
    Effect.provideService(Process, { ...process, console }),
    Effect.provide(unused)
  )
})
