/**
 * The command line of `skein tasks`: its commands and options, with their help. A further command is one more entry of
 * {@link commands}.
 */
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import { handledBy, invalid, toggle, wholeNumber } from "./commandLine.ts"
import { describe } from "./help.ts"
import { answeringFlags } from "./serverOptions.ts"
import {
  describeOnServer,
  forms,
  load,
  loadServer,
  onEither,
  onStore,
  storeFlags,
  storeFooter
} from "./storeCommand.ts"
import { changeCommands } from "./taskChangeCommands.ts"
import { cursorFlag, filterFlags, filterNames, statusFlag, time } from "./taskFilterFlags.ts"
import { checkOperands, idOf, serverTarget, serverTaskFlags } from "./taskOperands.ts"

const maxListed = 1000
const maxOffset = 1_000_000_000

const pageFlags = {
  limit: wholeNumber("limit", `How many tasks to list: 50 by default, at most ${maxListed}`, 50, maxListed),
  cursor: cursorFlag
}

const list = Command.make("list", {
  ...storeFlags,
  ...serverTaskFlags,
  ...filterFlags,
  status: statusFlag,
  long: toggle("long", "Also list the process that runs a task, and the steps that have run for more than a second"),
  ...pageFlags
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
    [...filterNames, "long", "cursor"],
    ({ list }, line) => list(line),
    ({ list }, server, { limit, status }) => list({ ...server, limit, status })
  )
)

const failed = Command.make("failed", {
  ...storeFlags,
  ...filterFlags,
  ...pageFlags,
  compensations: toggle("compensations", "List the tasks with a compensation that has failed, whatever their status")
}).pipe(
  onStore(
    "List tasks that need attention or have failed, newest first",
    "Lists tasks that need attention, because they wait for other code, and tasks that have failed, with an error of the " +
      "protocol or a result with isError, and their reasons. A task that ended because a person declined is not among them."
  ),
  handledBy(
    load,
    ({ list }, line) => list({ ...line, ...line.compensations ? { hasFailedCompensation: true } : { hasFailed: true } })
  )
)

const id = Argument.String("id").pipe(Argument.withDescription("The id of the task"))
const tool = Argument.String("tool").pipe(Argument.withDescription("The name of the tool"))

const show = Command.make("show", {
  ...storeFlags,
  ...serverTaskFlags,
  values: toggle(
    "values",
    "Also show the arguments, the questions, and the results of steps and of the task, which can contain data of callers"
  ),
  output: toggle("output", "Print what the task has emitted, an item in each line, in place of the task"),
  follow: toggle("follow", "The same, and what it emits until its end"),
  from: wholeNumber("from", "The offset of the first item: 0 by default", 0, maxOffset, 0)
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
    ["values", "output", "follow"],
    ({ output, show }, line) => (line.output || line.follow ? output : show)({ ...line, id: idOf(line) }),
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

const settle = Command.make("settle", { ...storeFlags, id }).pipe(
  onStore(
    "Let a task end that needs attention, without some of its compensations",
    "Lets a task end that waits for other code. It is cancelled if it has not ended, the compensations that the code " +
      "reaches run, and the others never run: undo their effects by hand.",
    " <id>"
  ),
  handledBy(load, ({ settle }, line) => settle(line))
)

const pause = Command.make("pause", {
  ...storeFlags,
  tool,
  isNew: toggle("new", "Also pause a tool of which the store has no task, limit or schedule yet")
}).pipe(
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
    "List the workers of a database",
    "Lists the workers of a database: pools, machine, lease, and how many tasks each runs."
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

const loadExports = () => import("../tasks/exports.ts")

const exportTask = Command.make("export", {
  ...storeFlags,
  id,
  values: toggle("values", "With the arguments, the answers and the results, which can contain data of callers"),
  redact: toggle("redact", "With the shapes of the values in their place: names, structure and lengths")
}).pipe(
  onStore(
    "Print a task with its log as JSON, for a bug report or a test",
    "Prints a task with its log as one JSON value, for a bug report, as the fixture of a test (TaskTest.replay), or for " +
      "import. It needs --values or --redact.",
    " <id> (--values | --redact)"
  ),
  Command.validate(({ redact, values }) =>
    redact === values ? invalid("--values or --redact is required, and not both") : Effect.void
  ),
  handledBy(loadExports, ({ exportTask }, line) => exportTask(line))
)

const importTask = Command.make("import", {
  ...storeFlags,
  file: Argument.String("file").pipe(Argument.withDescription("The file with the exported task")),
  start: toggle("start", "Let a task that has not ended go on, whose further steps have effects")
}).pipe(
  onStore(
    "Store a task that was exported",
    "Stores a task that was exported, with its log: under its id, or under a new one if the store has that already. One " +
      "that has not ended is cancelled without its compensations, unless --start lets it go on.",
    " <file>"
  ),
  handledBy(loadExports, ({ importTask }, line) => importTask(line))
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

const backfill = Command.make("backfill", {
  ...storeFlags,
  schedule,
  from: time("from", "The first time: a date in UTC, or an age such as 12h or 7d"),
  to: time("to", "The end of the span, which is not a part of it: now by default"),
  dryRun: toggle("dry-run", "Only list the times, and which of them have a task")
}).pipe(
  onStore(
    "Start the tasks of a schedule for the times of a span that is over",
    "Starts a task of a schedule for each of its times in a span, at most 1,000. A time that has a task already starts " +
      "none, so that the command can be repeated while the tasks exist.",
    " <schedule> --from <time>"
  ),
  Command.validate(({ from }) => from === undefined ? invalid("--from is required") : Effect.void),
  handledBy(loadSchedules, ({ backfill }, line) => backfill({ ...line, from: line.from! }))
)

const commands = [
  ...[list, show, wait, result, failed, ...changeCommands, settle, pause, resume, stats, workers],
  ...[schedules, ...scheduleCommands, backfill, exportTask, importTask, migrate, backup]
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
