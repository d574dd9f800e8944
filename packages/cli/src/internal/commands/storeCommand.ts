/**
 * The common parts of the commands of `skein tasks`: the options of a store, their help, and the choice between a store
 * and a server.
 */
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import type { CommandFailed, Process } from "../base/process.ts"
import type { StoreLine } from "../tasks/tasks.ts"
import { invalid, text, toggle } from "./commandLine.ts"
import { describe, type Description } from "./help.ts"
import { checkSelection, type SelectionLine, selectsMany } from "./taskFilterFlags.ts"
import { checkOperands, type OnServerLine, type OperandKind, serverTarget } from "./taskOperands.ts"

/** The options of a store. */
export const storeFlags = {
  sqlite: text("sqlite", "<file>", "The SQLite file of the tasks; its server may run"),
  postgres: text(
    "postgres",
    "<url>",
    "The PostgreSQL database of the tasks; pass a URL with a password in SKEIN_TASKS"
  ),
  json: toggle("json", "Print the result as JSON")
}

/** The end of the help of a command about a store. */
export const footer =
  "The store is --sqlite, --postgres, or SKEIN_TASKS: a file, or a URL that begins with postgres:. " +
  "SKEIN_TASK_KEYS has the keys of encrypted tasks. " +
  "Exit codes: 0 done, 1 there is no such task or nothing to do, 2 invalid command line, 3 the store cannot be used."

/** The help of a command that takes a server too. */
export const describeOnServer = (
  { codes = "", footer = "", ...help }: Omit<Description, "footer"> & Partial<Description> & {
    /** Further exit codes. */
    readonly codes?: string
  }
) =>
  describe({
    ...help,
    footer:
      `${footer}The server is a URL, a module, or a command as one word; with --config no server is named. Exit codes: ` +
      "0 done, 1 there is no such task, it has no result, or its result is an error, 2 invalid command line, 3 the store " +
      `or the server cannot be used, 4 the server refused the request, ${codes}130 interrupted.`
  })

/** The end of the help of a command about a server or a store. */
export const storeFooter = "Without a server the store is meant: --sqlite, --postgres, or SKEIN_TASKS. "

/** Loads the commands on a store. */
export const load = () => import("../tasks/tasks.ts")

/** Loads the commands on a server. */
export const loadServer = () => import("../calls/serverTasks.ts")

/** Fails if two stores are named. */
export const checkStore = ({ postgres, sqlite }: StoreLine) =>
  postgres === undefined || sqlite === undefined ? Effect.void : invalid("--sqlite and --postgres exclude each other")

/** A command about the store of the tasks: its help, and the check of its store. */
export const onStore =
  (short: string, description: string, operands = "") =>
  <const Name extends string, Line extends StoreLine, ContextInput, E, R>(
    command: Command.Command<Name, Line, ContextInput, E, R>
  ) =>
    command.pipe(
      describe({ short, description, usage: [`[options]${operands}`], footer }),
      Command.validate((line) => checkStore(line))
    )

type Store = Awaited<ReturnType<typeof load>>
type ServerTasks = Awaited<ReturnType<typeof loadServer>>
type Ran = Effect.Effect<void, CommandFailed, Process>

/**
 * The checks and the handler of a command about the tasks of a store, or of a server. `storeOptions` are the names of
 * options that a server does not have.
 */
export const onEither = <Line extends OnServerLine & SelectionLine>(
  kind: OperandKind,
  storeOptions: ReadonlyArray<keyof Line & string>,
  ofStore: (store: Store, line: Line) => Ran,
  ofServer: (tasks: ServerTasks, server: NonNullable<ReturnType<typeof serverTarget>>, line: Line) => Ran
) =>
<const Name extends string, ContextInput>(command: Command.Command<Name, Line, ContextInput, unknown, unknown>) =>
  command.pipe(
    Command.validate((line) =>
      Effect.andThen(
        checkStore(line),
        selectsMany(line)
          ? checkSelection(line.config !== undefined || line.operands.words.length > 0)
          : checkOperands(line, kind, storeOptions)
      )
    ),
    Command.withHandler((line) => {
      const server = selectsMany(line) ? undefined : serverTarget(line, kind)
      return server === undefined
        ? Effect.flatMap(Effect.promise(load), (store) => ofStore(store, line))
        : Effect.flatMap(Effect.promise(loadServer), (tasks) => ofServer(tasks, server, line))
    })
  )

/** The form of the command lines of a command about one task. */
export const forms = ["[options] <id>", "[options] <server> <id>"]
