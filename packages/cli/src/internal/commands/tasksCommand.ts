/**
 * The command line of `skein tasks`: its commands and options, with their help. A further command is one more entry of
 * {@link commands}.
 */
import type { TaskStatus } from "@skein/protocol/Task"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { choice, handledBy, invalid, text, toggle, wholeNumber } from "./commandLine.ts"
import { describe, type Description } from "./help.ts"
import {
  checkOperands,
  idOf,
  type OnServerLine,
  type OperandKind,
  serverTarget,
  serverTaskFlags
} from "./taskOperands.ts"
import { answeringFlags } from "./serverOptions.ts"
import type { CommandFailed, Process } from "../base/process.ts"
import type { StoreLine } from "../tasks/tasks.ts"

const storeFlags = {
  sqlite: text("sqlite", "<file>", "The SQLite file of the tasks; its server may run"),
  postgres: text(
    "postgres",
    "<url>",
    "The PostgreSQL database of the tasks; pass a URL with a password in SKEIN_TASKS"
  ),
  json: toggle("json", "Print the result as JSON")
}

const footer = "The store is --sqlite, --postgres, or SKEIN_TASKS: a file, or a URL that begins with postgres:. " +
  "SKEIN_TASK_KEYS has the keys of encrypted tasks. " +
  "Exit codes: 0 done, 1 there is no such task or nothing to do, 2 invalid command line, 3 the store cannot be used."

/** The help of a command that takes a server too. */
const describeOnServer = (
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

const storeFooter = "Without a server the store is meant: --sqlite, --postgres, or SKEIN_TASKS. "

const load = () => import("../tasks/tasks.ts")

const loadServer = () => import("../calls/serverTasks.ts")

const checkStore = ({ postgres, sqlite }: StoreLine) =>
  postgres === undefined || sqlite === undefined ? Effect.void : invalid("--sqlite and --postgres exclude each other")

/** A command about the store of the tasks: its help, and the check of its store. */
const onStore =
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
const onEither = <Line extends OnServerLine>(
  kind: OperandKind,
  storeOptions: ReadonlyArray<keyof Line & string>,
  ofStore: (store: Store, line: Line) => Ran,
  ofServer: (tasks: ServerTasks, server: NonNullable<ReturnType<typeof serverTarget>>, line: Line) => Ran
) =>
<const Name extends string, ContextInput>(command: Command.Command<Name, Line, ContextInput, unknown, unknown>) =>
  command.pipe(
    Command.validate((line) => Effect.andThen(checkStore(line), checkOperands(line, kind, storeOptions))),
    Command.withHandler((line) => {
      const server = serverTarget(line, kind)
      return server === undefined
        ? Effect.flatMap(Effect.promise(load), (store) => ofStore(store, line))
        : Effect.flatMap(Effect.promise(loadServer), (tasks) => ofServer(tasks, server, line))
    })
  )

const statuses: ReadonlyArray<TaskStatus> = ["working", "input_required", "completed", "failed", "cancelled"]
const maxListed = 1000

const list = Command.make("list", {
  ...storeFlags,
  ...serverTaskFlags,
  tool: text("tool", "<name>", "Only tasks of this tool"),
  pool: text("pool", "<name>", "Only tasks of this pool"),
  owner: text("owner", "<owner>", "Only tasks of this owner"),
  worker: text("worker", "<id>", "Only tasks that this worker runs"),
  status: choice(
    "status",
    statuses,
    "<status>",
    `Only tasks with this status: ${statuses.join(", ")}; can be repeated`
  ).pipe(Flag.atLeast(0)),
  limit: wholeNumber("limit", `How many tasks to list: 50 by default, at most ${maxListed}`, 50, maxListed)
}).pipe(
  describeOnServer({
    short: "List tasks, newest first",
    description:
      "Lists tasks of a store, newest first, and where they are: in the queue, waiting, or running on a worker. With a " +
      "server, lists the tasks of this caller there: only 2025-11-25 has such a listing.",
    usage: ["[options]", "[options] <server>"],
    footer: storeFooter
  }),
  onEither(
    "list",
    ["tool", "pool", "owner", "worker"],
    ({ list }, line) => list(line),
    ({ list }, server, { limit, status }) => list({ ...server, limit, status })
  )
)

const failed = Command.make("failed", storeFlags).pipe(
  onStore(
    "List tasks that have failed, newest first",
    "Lists the 50 newest tasks that have failed, with an error of the protocol or a result with isError, and their " +
      "reasons. A task that ended because a person declined is not among them."
  ),
  handledBy(load, ({ list }, line) => list({ ...line, status: [], hasFailed: true, limit: 50 }))
)

/** The form of the command lines of a command about one task. */
const forms = ["[options] <id>", "[options] <server> <id>"]

const id = Argument.String("id").pipe(Argument.withDescription("The id of the task"))
const tool = Argument.String("tool").pipe(Argument.withDescription("The name of the tool"))

const show = Command.make("show", {
  ...storeFlags,
  ...serverTaskFlags,
  values: toggle("values", "Also show the questions and the results of steps, which can contain data of callers")
}).pipe(
  describeOnServer({
    short: "Show a task: its steps with attempts and times, its sleeps and its questions",
    description:
      "Shows a task with its log: the attempts of its steps, its sleeps, answers and compensations. A server shows its " +
      "status only.",
    usage: forms,
    footer: storeFooter
  }),
  onEither(
    "task",
    ["values"],
    ({ show }, line) => show({ ...line, id: idOf(line) }),
    ({ show }, server, line) => show(server, idOf(line))
  )
)

const ofServer = ["[options] <server> <id>"]

const wait = Command.make("wait", { ...serverTaskFlags, ...answeringFlags, json: storeFlags.json }).pipe(
  describeOnServer({
    short: "Wait for the result of a task of a server, and answer its questions",
    description:
      "Waits for the result of a task of a server, as skein call does, and prints it. Its questions appear on the " +
      "terminal, or --answer answers them. Without both, or at the end of the input, a question stays open, and the command ends. " +
      "The task continues when the command is interrupted.",
    usage: ofServer,
    codes: "5 the answers do not fit a form and 6 a question needs an answer, which stay open, "
  }),
  Command.validate((line) => checkOperands(line, "task")),
  handledBy(loadServer, ({ result }, line) => result(serverTarget(line, "task")!, idOf(line), true))
)

const result = Command.make("result", { ...serverTaskFlags, json: storeFlags.json }).pipe(
  describeOnServer({
    short: "Print the result of a task of a server that has ended",
    description: "Prints the result of a task of a server that has ended, as skein call does.",
    usage: ofServer
  }),
  Command.validate((line) => checkOperands(line, "task")),
  handledBy(loadServer, ({ result }, line) => result(serverTarget(line, "task")!, idOf(line), false))
)

const cancel = Command.make("cancel", {
  ...storeFlags,
  ...serverTaskFlags,
  message: text("message", "<text>", "The status message that the client of the task reads")
}).pipe(
  describeOnServer({
    short: "Cancel a task; its compensations run",
    description: "Cancels a task. Its run is interrupted, and its compensations run.",
    usage: forms,
    footer: storeFooter
  }),
  onEither(
    "task",
    ["message"],
    ({ cancel }, line) => cancel({ ...line, id: idOf(line) }),
    ({ cancel }, server, line) => cancel(server, idOf(line))
  )
)

const wake = Command.make("wake", { ...storeFlags, id }).pipe(
  onStore(
    "Let a task that waits be checked now",
    "Lets a worker check a task that waits, before its time. It waits again if nothing has happened.",
    " <id>"
  ),
  handledBy(load, ({ wake }, line) => wake(line))
)

const rerun = Command.make("rerun", {
  ...storeFlags,
  id,
  from: text("from", "<step>", "The first step that runs again; the ones before keep their results")
}).pipe(
  onStore(
    "Run a task again, as a new task, from its beginning or from a step",
    "Runs a task again, as a new task with the same owner and arguments. The steps run with new idempotency keys: " +
      "their effects happen again.",
    " <id>"
  ),
  handledBy(load, ({ rerun }, line) => rerun(line))
)

const pause = Command.make("pause", { ...storeFlags, tool }).pipe(
  onStore(
    "Hold the tasks of a tool until it is resumed",
    "Pauses a tool for all workers. Calls are accepted and their tasks wait; what runs goes on until it waits next.",
    " <tool>"
  ),
  handledBy(load, ({ pause }, line) => pause(line))
)

const resume = Command.make("resume", { ...storeFlags, tool }).pipe(
  onStore("Let the tasks of a paused tool run again", "Resumes a tool that was paused.", " <tool>"),
  handledBy(load, ({ resume }, line) => resume(line))
)

const stats = Command.make("stats", {
  ...storeFlags,
  watch: toggle("watch", "Print the numbers every two seconds, until the command is interrupted")
}).pipe(
  onStore(
    "Show how many tasks there are, by tool and status, and the queue",
    "Shows how many tasks there are by tool and status, how many wait and run by pool and tool, how long the oldest has " +
      "waited for a worker, and which tools are paused or limited."
  ),
  handledBy(load, ({ stats }, line) => stats(line))
)

const workers = Command.make("workers", storeFlags).pipe(
  onStore(
    "List the workers of a PostgreSQL database",
    "Lists the workers of a PostgreSQL database: pools, machine, lease, and how many tasks each runs."
  ),
  handledBy(load, ({ workers }, line) => workers(line))
)

const migrate = Command.make("migrate", {
  ...storeFlags,
  dryRun: toggle("dry-run", "Only show the versions")
}).pipe(
  onStore(
    "Create the tables of tasks, or migrate them to the version of this program",
    "Creates the tables of tasks, or migrates them to the version of this program, for servers and workers with " +
      "migrate: false. A SQLite file must not be in use by its server."
  ),
  handledBy(load, ({ migrate }, line) => migrate(line))
)

const backup = Command.make("backup", {
  sqlite: storeFlags.sqlite,
  json: storeFlags.json,
  to: Argument.String("file").pipe(Argument.withDescription("The new file; it must not exist"))
}).pipe(
  onStore(
    "Copy a SQLite file while its server runs",
    "Copies the SQLite file of the tasks to a new file, also while its server runs. For PostgreSQL use pg_dump.",
    " <file>"
  ),
  handledBy(load, ({ backup }, line) => backup(line))
)

const schedule = Argument.String("schedule").pipe(Argument.withDescription("The name of the schedule"))

const loadSchedules = () => import("../tasks/schedules.ts")

const schedules = Command.make("schedules", storeFlags).pipe(
  onStore(
    "List the schedules, by their names",
    "Lists up to 1,000 schedules: their times, tools, and the tasks that they have started last."
  ),
  handledBy(loadSchedules, ({ list }, line) => list(line))
)

/** A command that changes one schedule. */
const onSchedule = <const Name extends string>(
  name: Name,
  run: "trigger" | "pause" | "resume" | "remove",
  short: string,
  description: string
) =>
  Command.make(name, { ...storeFlags, schedule }).pipe(
    onStore(short, description, " <schedule>"),
    handledBy(loadSchedules, ({ changes }, line) => changes[run](line))
  )

const scheduleCommands = [
  onSchedule(
    "trigger",
    "trigger",
    "Start a task of a schedule now",
    "Starts a task of a schedule now, also of a paused one. Its next time stays as it is."
  ),
  onSchedule(
    "pause-schedule",
    "pause",
    "Let a schedule start no tasks",
    "Pauses a schedule: its times start no tasks until it is resumed."
  ),
  onSchedule(
    "resume-schedule",
    "resume",
    "Let a paused schedule go on with its next time",
    "Resumes a paused schedule. Times of the pause are skipped."
  ),
  onSchedule(
    "remove-schedule",
    "remove",
    "Remove a schedule; its tasks continue",
    "Removes a schedule. A program with it in its code stores it again when it starts."
  )
] as const

const commands = [
  ...[list, show, wait, result, failed, cancel, wake, rerun, pause, resume, stats, workers],
  ...[schedules, ...scheduleCommands, migrate, backup]
] as const

/** `skein tasks`. */
export const tasksCommand = Command.make("tasks").pipe(
  describe({
    short: "See and change tasks, of a server or in its store: list, show, wait, cancel, pause, …",
    description:
      "Shows and changes tasks: over the protocol, or the durable tasks in the SQLite file or the PostgreSQL database of a " +
      "server.",
    usage: ["<command> [options]"],
    footer: "skein tasks <command> --help describes a command."
  }),
  Command.withSubcommands(commands)
)
