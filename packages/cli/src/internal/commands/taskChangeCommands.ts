/**
 * The commands of `skein tasks` that change a task, or the tasks that options select.
 */
import type { BulkChange } from "@skein/tasks/TaskAdmin"
import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import type { BulkLine } from "../tasks/bulk.ts"
import { invalid, option, text } from "./commandLine.ts"
import { describe } from "./help.ts"
import { checkStore, describeOnServer, footer, forms, load, onEither, storeFlags, storeFooter } from "./storeCommand.ts"
import { checkSelection, selectionFlags, selectsMany } from "./taskFilterFlags.ts"
import { idOf, serverTaskFlags } from "./taskOperands.ts"

const loadBulk = () => import("../tasks/bulk.ts")

/** Changes the tasks that the options select. */
const changeMany = (line: BulkLine, change: BulkChange) =>
  Effect.flatMap(Effect.promise(loadBulk), (bulk) => bulk.changeMany(line, change))

const manyHelp = " With options that select tasks, it counts these, and changes them with --yes."

const manyForm = "[options] --tool <name> [--yes]"

interface Line extends BulkLine {
  readonly all: boolean
  /** The id of a task, or nothing. */
  readonly id: ReadonlyArray<string>
}

const flags = {
  ...storeFlags,
  ...selectionFlags,
  id: Argument.String("id").pipe(
    Argument.withDescription("The id of the task; options that select tasks take its place"),
    Argument.variadic({ max: 1 })
  )
}

type Store = Awaited<ReturnType<typeof load>>

/** The help, the checks and the handler of a command about one task of a store, or about those that options select. */
const onTasks = <L extends Line>(
  help: { readonly short: string; readonly description: string },
  change: (line: L) => BulkChange,
  ofOne?: (store: Store, line: Omit<L, "id"> & { readonly id: string }) => ReturnType<typeof changeMany>
) =>
<const Name extends string, ContextInput>(command: Command.Command<Name, L, ContextInput, unknown, unknown>) =>
  command.pipe(
    describe({
      short: help.short,
      description: help.description + manyHelp,
      usage: ["[options] <id>", manyForm],
      footer
    }),
    Command.validate((line) =>
      Effect.andThen(
        checkStore(line),
        selectsMany(line)
          ? checkSelection(line.id.length > 0)
          : line.id.length === 0
          ? invalid("<id> is required, or options that select tasks, such as --tool")
          : Effect.void
      )
    ),
    Command.withHandler((line) => {
      if (selectsMany(line)) return changeMany(line, change(line))
      const id = line.id[0]!
      return ofOne === undefined
        ? changeMany({ ...line, ids: [id], yes: true }, change(line))
        : Effect.flatMap(Effect.promise(load), (store) => ofOne(store, { ...line, id }))
    })
  )

const cancelChange = ({ message }: { readonly message: string | undefined }): BulkChange => ({
  action: "cancel",
  statusMessage: message
})

const cancel = Command.make("cancel", {
  ...storeFlags,
  ...serverTaskFlags,
  ...selectionFlags,
  message: text("message", "<text>", "The status message that the client of the task reads")
}).pipe(
  describeOnServer({
    short: "Cancel a task, or many; their compensations run",
    description: "Cancels a task. Its run is interrupted, and its compensations run." + manyHelp,
    usage: [...forms, manyForm],
    footer: storeFooter
  }),
  onEither(
    "task",
    ["message"],
    ({ cancel }, line) =>
      selectsMany(line) ? changeMany(line, cancelChange(line)) : cancel({ ...line, id: idOf(line) }),
    ({ cancel }, server, line) => cancel(server, idOf(line))
  )
)

const wake = Command.make("wake", flags).pipe(
  onTasks(
    {
      short: "Let a task that waits be checked now, or many",
      description: "Lets a worker check a task that waits, before its time. It waits again if nothing has happened."
    },
    () => ({ action: "wake" }),
    ({ wake }, line) => wake(line)
  )
)

const rerun = Command.make("rerun", {
  ...flags,
  from: text("from", "<step>", "The first step that runs again; the ones before keep their results")
}).pipe(
  onTasks(
    {
      short: "Run a task again, as a new task, from its beginning or from a step, or many",
      description:
        "Runs a task again, as a new task with the same owner and arguments. The steps run with new idempotency keys: " +
        "their effects happen again. With --failed, --status and others it leaves out tasks that were run again before."
    },
    ({ from }) => ({ action: "rerun", from }),
    ({ rerun }, line) => rerun(line)
  )
)

const remove = Command.make("delete", flags).pipe(
  onTasks(
    {
      short: "Delete a task that has ended, or many",
      description: "Deletes a task that has ended, with its log, before the end of its time to live."
    },
    () => ({ action: "delete" })
  )
)

const priority = Command.make("priority", {
  ...flags,
  to: option(
    "to",
    "<number>",
    "The new priority: a whole number, the highest first, 0 by default",
    (text) =>
      /^-?\d{1,7}$/.test(text) && Math.abs(Number(text)) <= 1_000_000
        ? Effect.succeed(Number(text))
        : invalid(`--to must be a whole number from -1000000 to 1000000: ${JSON.stringify(text)}`)
  )
}).pipe(
  onTasks(
    {
      short: "Change the priority of a task in the queue, or of many",
      description: "Changes the priority of a task that has not ended. Tasks with a higher one start first."
    },
    ({ to = 0 }) => ({ action: "priority", priority: to })
  )
)

const move = Command.make("move", {
  ...flags,
  to: text("to", "<pool>", "The pool whose workers continue it, default by default")
}).pipe(
  onTasks(
    {
      short: "Move a task in the queue to another pool, or many",
      description:
        "Moves a task that has not ended to another pool, whose workers continue it. A task of a tool with versioning: " +
        "\"pinned\" is in the pool <pool>@<deployment>, until it is moved."
    },
    ({ to = "default" }) => ({ action: "move", pool: to })
  )
)

export const changeCommands = [cancel, wake, rerun, remove, priority, move] as const
