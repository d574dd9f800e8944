/**
 * Runs the commands of `skein tasks` on the store of a server.
 */
import * as Encryption from "@skein/tasks/Encryption"
import { type ListedTask, TaskAdmin, type TaskFilter } from "@skein/tasks/TaskAdmin"
import type { TaskStatus } from "@skein/protocol/Task"
import type { TaskError } from "@skein/tasks/TaskError"
import type { TaskSchedules } from "@skein/tasks/TaskSchedules"
import type { ListPosition, OutputItem } from "@skein/tasks/TaskState"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { quoteLine, quoteName } from "../base/format.ts"
import type { Colors } from "../base/colors.ts"
import { operatorName } from "../base/nodeProgram.ts"
import { type CommandFailed, failed, Process } from "../base/process.ts"
import { describeTask, describeTasks, describeTools, describeWorkers, queueTable, taskTable } from "./tasksFormat.ts"

/** The store of the tasks, as the command line names it. Without a name, the environment has it. */
export interface StoreLine {
  readonly sqlite?: string | undefined
  readonly postgres?: string | undefined
  readonly json: boolean
}

/** Which tasks a command is about. */
export interface FilterLine extends StoreLine {
  readonly ids?: ReadonlyArray<string> | undefined
  readonly tool?: string | undefined
  readonly pool?: string | undefined
  readonly owner?: string | undefined
  readonly worker?: string | undefined
  readonly labels?: Readonly<Record<string, string>> | undefined
  readonly status?: ReadonlyArray<TaskStatus> | undefined
  /** Whether only tasks that have failed are meant. */
  readonly hasFailed?: true | undefined
  /** Whether only tasks with a failed compensation are meant. */
  readonly hasFailedCompensation?: true | undefined
  /** Times in milliseconds of Unix time. */
  readonly after?: number | undefined
  readonly before?: number | undefined
  readonly endedAfter?: number | undefined
  readonly endedBefore?: number | undefined
}

/** Which tasks to list. */
export interface ListLine extends FilterLine {
  /** Whether the processes and the running steps are listed. */
  readonly long?: boolean
  readonly limit: number
  readonly cursor?: ListPosition | undefined
}

/** A command about one task of a store. */
export interface TaskLine extends StoreLine {
  readonly id: string
}

/** A command about one tool. */
export interface ToolLine extends StoreLine {
  readonly tool: string
  /** Whether the store need not know the tool. */
  readonly isNew?: boolean
}

type Env = Process["Service"]["env"]

/** The store could not be used, or refuses an operation on a task. */
const unusable = ({ message, reason: { _tag } }: TaskError): CommandFailed =>
  failed(_tag === "NotEnded" ? 1 : _tag === "InvalidOption" ? 2 : 3, quoteLine(message))

/** There is nothing to do. */
export const nothing = (message: string): Effect.Effect<never, CommandFailed> => Effect.fail(failed(1, message))

/** The store that the command line or the environment names. */
const findStore = ({ postgres, sqlite }: StoreLine, env: Env) => {
  const given = sqlite ?? postgres ?? env["SKEIN_TASKS"]
  if (given === undefined || given === "") {
    return Effect.fail(failed(2, "no store is given: use --sqlite <file>, --postgres <url>, or SKEIN_TASKS"))
  }
  const isPostgres = sqlite === undefined && (postgres !== undefined || /^postgres(ql)?:/.test(given))
  return Effect.succeed({ given, isPostgres })
}

/** How a store is opened. */
const storeOf = (line: StoreLine, env: Env) =>
  Effect.flatMap(findStore(line, env), ({ given, isPostgres }) =>
    Effect.promise(async () => {
      if (isPostgres) {
        const { layerAdmin, migrate } = await import("@skein/tasks/PostgresTasks")
        const options = { url: Redacted.make(given), applicationName: "skein tasks" }
        return { admin: layerAdmin(options), migrate: (dryRun: boolean) => migrate({ ...options, dryRun }) }
      }
      const { layerAdmin, migrate } = await import("@skein/tasks/SqliteTasks")
      const options = { filename: given }
      return { admin: layerAdmin(options), migrate: (dryRun: boolean) => migrate({ ...options, dryRun }) }
    }))

/** Runs a command on the store. */
export const withStore = <A>(
  line: StoreLine,
  use: () => Effect.fn.Return<A, TaskError | CommandFailed, TaskAdmin | TaskSchedules | Process>
): Effect.Effect<A, CommandFailed, Process> =>
  Effect.gen(function*() {
    const { env } = yield* Process
    const keys = env["SKEIN_TASK_KEYS"] ?? ""
    const { admin } = yield* storeOf(line, env)
    const encryption = keys === ""
      ? Layer.empty
      : Encryption.layer({ keys: keys.split(",").map((key) => key.trim()), readPlaintext: true })
    return yield* Effect.provide(Effect.gen(use), Layer.provide(admin, encryption))
  }).pipe(Effect.catchTag("TaskError", (error) => Effect.fail(unusable(error))))

/** Runs a command of an operator on the store. */
export const onStore = <A>(
  line: StoreLine,
  use: (admin: TaskAdmin["Service"]) => Effect.fn.Return<A, TaskError | CommandFailed, Process>
) =>
  withStore(line, function*() {
    return yield* use(yield* TaskAdmin)
  })

/** Prints a value as JSON, or as text. */
export const print = (
  line: StoreLine,
  value: unknown,
  text: (colors: Colors | undefined) => string
): Effect.Effect<void, never, Process> =>
  Effect.flatMap(
    Process,
    ({ console: { colors, print } }) =>
      line.json ? print(JSON.stringify(value, undefined, 2)) : print(text(colors?.out), true)
  )

/** The filter of a command line. */
export const filterOf = (
  {
    after,
    before,
    endedAfter,
    endedBefore,
    hasFailed,
    hasFailedCompensation,
    ids,
    labels,
    owner,
    pool,
    status = [],
    tool,
    worker
  }: FilterLine
): TaskFilter => ({
  ...{ ids, tool, pool, owner, worker, labels, hasFailed, hasFailedCompensation, endedAfter, endedBefore },
  createdAfter: after,
  createdBefore: before,
  status: status.length === 0 ? undefined : status
})

/** The place of a task in the listings, for `--cursor`. */
export const cursorOf = ({ createdAt, id }: ListPosition): string => `${createdAt}.${id}`

/** `skein tasks list` and `skein tasks failed`. */
export const list = (line: ListLine): Effect.Effect<void, CommandFailed, Process> =>
  onStore(line, function*(admin) {
    const { cursor: after, limit } = line
    const filter = filterOf(line)
    const tasks = yield* admin.list(filter, { after, limit })
    const last = tasks.at(-1)?.state
    // The first page has the tasks that need attention, too.
    const isFirst = line.hasFailed === true && after === undefined
    const stopped = isFirst
      ? yield* admin.list({ ...filter, hasFailed: undefined, needsAttention: true }, { limit })
      : []
    const shown = [...stopped, ...tasks]
    const hasMore = last !== undefined && tasks.length === limit && !line.json &&
      (yield* admin.list(filter, { after: last, limit: 1 })).length > 0
    const now = yield* Clock.currentTimeMillis
    yield* print(
      line,
      shown.map((task) => ({ ...toJson(task), cursor: cursorOf(task.state) })),
      (colors) => describeTasks(shown, now, hasMore ? cursorOf(last) : undefined, line.long === true, colors)
    )
  })

/** A task without what its caller has sent. */
const toJson = ({ events, labels, needsAttention, place, state }: ListedTask) => {
  const { caller: _caller, outcome: _outcome, questions: _questions, ...rest } = state
  return { ...rest, labels, place, ...needsAttention && { needsAttention }, events }
}

/** There is no such task. */
export const unknown = (id: string) => nothing(`there is no task ${quoteName(id)}`)

/** `skein tasks show`. */
export const show = (line: TaskLine & { readonly values: boolean }): Effect.Effect<void, CommandFailed, Process> =>
  onStore(line, function*(admin) {
    const { id, values } = line
    const task = yield* admin.inspect(id, { values })
    if (task === undefined) return yield* unknown(id)
    const now = yield* Clock.currentTimeMillis
    const questions = task.questions.map(({ key, method, params, to }) => ({
      key,
      method,
      to,
      ...values && { params }
    }))
    const { actions, args, failedCompensations, log, outcome } = task
    yield* print(
      line,
      { ...toJson(task), ...values && { args, outcome }, questions, log, actions, failedCompensations },
      (colors) => describeTask(task, now, values, colors)
    )
  })

/** `skein tasks show --output` and `--follow`. */
export const output = (
  line: TaskLine & { readonly follow: boolean; readonly from: number }
): Effect.Effect<void, CommandFailed, Process> =>
  onStore(line, function*(admin) {
    const { follow, id } = line
    const { console: { print } } = yield* Process
    const printItem = (item: OutputItem) =>
      print(line.json || typeof item.value !== "string" ? JSON.stringify(line.json ? item : item.value) : item.value)
    let page = yield* admin.readOutput(id, line)
    if (page === undefined) return yield* unknown(id)
    if (follow) return yield* Stream.runForEach(admin.followOutput(id, line), printItem)
    while (page !== undefined && page.items.length > 0) {
      yield* Effect.forEach(page.items, printItem)
      page = yield* admin.readOutput(id, { from: page.next })
    }
  })

/** Why a task cannot be woken. */
const notWaiting = ({ place: { _tag } }: ListedTask): string =>
  _tag === "Settled"
    ? "the task has ended already"
    : _tag === "Running"
    ? "the task does not wait: it runs"
    : "the task does not wait: it is in the queue"

/** Changes a task. `refused` is the reason why nothing has changed, unless the task does not exist. */
const changeTask = (
  line: TaskLine,
  change: (admin: TaskAdmin["Service"]) => Effect.Effect<boolean, TaskError>,
  done: { readonly [member: string]: true },
  message: string,
  refused: (task: ListedTask) => string
) =>
  onStore(line, function*(admin) {
    const { id } = line
    if (yield* change(admin)) return yield* print(line, { id, ...done }, () => message)
    const task = yield* admin.inspect(id)
    return yield* task === undefined ? unknown(id) : nothing(refused(task))
  })

/** The status message of a task that was cancelled without one. */
export const cancelledMessage = "An operator cancelled the task"

/** `skein tasks cancel`. */
export const cancel = (
  line: TaskLine & { readonly message: string | undefined }
): Effect.Effect<void, CommandFailed, Process> =>
  changeTask(
    line,
    (admin) => admin.cancel(line.id, line.message ?? cancelledMessage, { by: operatorName() }),
    { cancelled: true },
    "The task is cancelled. Its compensations run.",
    () => "the task has ended already"
  )

/** `skein tasks wake`. */
export const wake = (line: TaskLine): Effect.Effect<void, CommandFailed, Process> =>
  changeTask(
    line,
    (admin) => admin.wake(line.id, { by: operatorName() }),
    { woken: true },
    "A worker checks the task.",
    notWaiting
  )

/** `skein tasks settle`. */
export const settle = (line: TaskLine): Effect.Effect<void, CommandFailed, Process> =>
  changeTask(
    line,
    (admin) => admin.settle(line.id, { by: operatorName() }),
    { settled: true },
    "The task ends as it is. Compensations that the code does not reach never run.",
    () => "the task does not need attention"
  )

/** `skein tasks rerun`. */
export const rerun = (
  line: TaskLine & { readonly from: string | undefined }
): Effect.Effect<void, CommandFailed, Process> =>
  onStore(line, function*(admin) {
    const { from, id } = line
    const state = yield* admin.rerun(id, { from, by: operatorName() })
    if (state !== undefined) {
      return yield* print(line, toJson({ state } as ListedTask), () => `The new task is ${state.id}`)
    }
    return yield* (yield* admin.inspect(id)) === undefined
      ? unknown(id)
      : nothing(`the task has no step ${quoteName(from ?? "")}`)
  })

/** Pauses a tool, or resumes it. */
const setPaused =
  (use: "pause" | "resume", done: string, refused: string) =>
  (line: ToolLine): Effect.Effect<void, CommandFailed, Process> =>
    onStore(line, function*(admin) {
      const tool = quoteName(line.tool)
      const isDone = use === "pause"
        ? admin.pause(line.tool, { mustBeKnown: line.isNew !== true })
        : admin.resume(line.tool)
      const advice = (error: TaskError) =>
        error.reason._tag === "UnknownTool"
          ? failed(1, `${quoteLine(error.message)}: check its name, or use --new to pause it before its first task`)
          : error
      if (!(yield* Effect.mapError(isDone, advice))) return yield* nothing(`${tool} ${refused}`)
      return yield* print(line, { tool: line.tool, paused: use === "pause" }, () => `${tool} ${done}`)
    })

/** `skein tasks pause`. */
export const pause = setPaused("pause", "is paused.", "is paused already")

/** `skein tasks resume`. */
export const resume = setPaused("resume", "runs again.", "is not paused")

/** Between two outputs of `--watch`. */
const watchInterval = "2 seconds"

/** `skein tasks stats`. */
export const stats = (line: StoreLine & { readonly watch: boolean }): Effect.Effect<void, CommandFailed, Process> =>
  onStore(line, function*(admin) {
    do {
      const statistics = yield* admin.statistics
      const tools = yield* admin.tools
      yield* print(
        line,
        { ...statistics, tools },
        (colors) =>
          [taskTable(statistics, colors), queueTable(statistics, colors), describeTools(tools, colors)]
            .filter((part) => part !== "").join("\n\n")
      )
      if (line.watch) yield* Effect.sleep(watchInterval)
    } while (line.watch)
  })

/** `skein tasks workers`. */
export const workers = (line: StoreLine): Effect.Effect<void, CommandFailed, Process> =>
  onStore(line, function*(admin) {
    const found = yield* admin.workers
    const now = yield* Clock.currentTimeMillis
    yield* print(line, found, (colors) => describeWorkers(found, now, colors))
  })

/** `skein tasks migrate`. */
export const migrate = Effect.fnUntraced(function*(
  line: StoreLine & { readonly dryRun: boolean }
): Effect.fn.Return<void, CommandFailed, Process> {
  const { env } = yield* Process
  const { dryRun } = line
  const store = yield* storeOf(line, env)
  const { from, to } = yield* Effect.mapError(store.migrate(dryRun), unusable)
  const [are, were] = from === 0
    ? ["There are no tables", "There were no tables"]
    : [`The tables have version ${from}`, `The tables had version ${from}`]
  yield* print(line, { from, to, dryRun }, () =>
    from === to
      ? `The tables have version ${to}: there is nothing to do.`
      : dryRun
      ? `${are}, and this program needs version ${to}.`
      : `${were}, and have version ${to} now.`)
})

/** `skein tasks backup`. */
export const backup = (line: StoreLine & { readonly to: string }): Effect.Effect<void, CommandFailed, Process> =>
  Effect.gen(function*() {
    const { env } = yield* Process
    const { to } = line
    const { given: filename, isPostgres } = yield* findStore(line, env)
    if (isPostgres) {
      return yield* failed(2, "a PostgreSQL database is copied with pg_dump, and not with this command")
    }
    const { backup } = yield* Effect.promise(() => import("@skein/tasks/SqliteTasks"))
    yield* Effect.mapError(backup({ filename, to }), unusable)
    yield* print(line, { from: filename, to }, () => `${quoteName(to)} has all tasks of ${quoteName(filename)}.`)
  })
