/**
 * The tasks of an engine as rows of the console, in groups:
 *
 * - Queue: the tools, with the numbers of their tasks and the age of the oldest one that waits for a worker. A tool can be
 *   paused and resumed, all of its tasks cancelled or checked, and all failed ones run again.
 * - Workers, where several processes run the tasks.
 * - Tasks: those that have not ended, with what each waits for, and their logs and open questions on request.
 *   Interrupting a row cancels its task, and its compensations run. A task that waits can be checked now. A step that takes ten
 *   times its median is marked, and the steps that run are shown with their heartbeats.
 * - Tasks that need attention, if there are some: they wait for other code, and an operator can let them end.
 * - Tasks that ended with an error: the newest ones, with their reasons and logs. They can run again, from the beginning or from a step.
 *
 * The rows have no arguments and results. With `showPayloads` a step shows its record, which may hold data of users.
 *
 * @example
 * const Program = Console.layer().pipe(
 *   Layer.provide(ConsoleTasks.layer),
 *   Layer.provide([ConsoleSource.ConsoleSources.layer, SqliteTasks.layer({ filename: "tasks.db" })])
 * )
 */
import { type Statistics, TaskAdmin, type TaskFilter } from "@skein/tasks/TaskAdmin"
import type { TaskError } from "@skein/tasks/TaskError"
import type { TaskStatus } from "@skein/protocol/Task"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ConsoleSource from "./ConsoleSource.ts"
import * as BulkActions from "./internal/tasks/bulkActions.ts"
import { makeOverviews, OverviewInterval } from "./internal/tasks/overview.ts"
import * as QueueRows from "./internal/tasks/queueRows.ts"
import * as TaskRows from "./internal/tasks/taskRows.ts"

/** The tasks that have not ended. A cancelled task that compensates is not among them. */
const live: ReadonlyArray<TaskStatus> = ["working", "input_required"]

/** The most tasks that `TaskAdmin.list` returns at once. */
const maxListed = 1_000

const makeSource = (admin: TaskAdmin["Service"], interval: number): ConsoleSource.Source => {
  const overviews = makeOverviews(admin, interval)
  const read = (query: ConsoleSource.Query): Effect.Effect<ConsoleSource.Page, TaskError> =>
    Effect.gen(function*() {
      const limit = Math.min(query.limit, maxListed)
      const tasks = yield* admin.list({ status: live }, { limit })
      const now = yield* Clock.currentTimeMillis
      const overview = yield* overviews.read(limit)
      const { at, statistics, tools, workers } = overview
      /** A group of tasks. The numbers may be older than the list. */
      const group = (
        id: string,
        label: string,
        busy: ConsoleSource.State,
        actions: ReadonlyArray<ConsoleSource.Action>,
        countOf: (one: Statistics["tasks"][number]) => number,
        listed: typeof tasks
      ): ConsoleSource.Node => {
        const counted = statistics.tasks.reduce((sum, one) => sum + countOf(one), 0)
        const total = listed.length < limit ? listed.length : Math.max(counted, listed.length)
        const more = total === listed.length ? {} : { more: { total, after: TaskRows.toPosition(listed.at(-1)!) } }
        return { id, kind: "group", label, ...total === 0 ? { state: "idle" } : { state: busy, actions }, ...more }
      }
      const newest = overview.failed.slice(0, limit)
      const waiting = overview.stoppedTasks.slice(0, limit)
      return {
        nodes: [
          ...QueueRows.queueNodes(statistics, tools, at, limit),
          ...QueueRows.workerNodes(workers, limit),
          group(
            TaskRows.groups.live,
            "Tasks",
            "running",
            [BulkActions.cancelAll, BulkActions.wakeAll],
            ({ count, status }) => live.includes(status) ? count : 0,
            tasks
          ),
          ...tasks.map(TaskRows.liveNode(now)),
          ...waiting.length === 0
            ? []
            : [group(TaskRows.groups.stopped, "Tasks that need attention", "failed", [], () => 0, waiting)],
          ...waiting.map(TaskRows.stoppedNode(now)),
          group(
            TaskRows.groups.failed,
            "Tasks that ended with an error",
            statistics.tasks.some(({ count, status }) => status === "failed" && count > 0)
              ? "failed"
              : "completed (error)",
            [BulkActions.rerunAll],
            ({ count, declined, errors, status }) => status === "failed" ? count : errors - declined,
            newest
          ),
          ...newest.map(TaskRows.failedNode)
        ]
      }
    })

  const more = (
    { after, parent, showPayloads, ...query }: ConsoleSource.MoreQuery
  ): Effect.Effect<ConsoleSource.Page, TaskError> => {
    const limit = Math.min(query.limit, maxListed)
    if (parent === TaskRows.groups.live || parent === TaskRows.groups.failed) {
      const isLive = parent === TaskRows.groups.live
      const page = admin.list(isLive ? { status: live } : { hasFailed: true }, {
        limit,
        after: TaskRows.fromPosition(after)
      })
      return Effect.map(Effect.zip(page, Clock.currentTimeMillis), ([tasks, now]) => ({
        nodes: tasks.map(isLive ? TaskRows.liveNode(now) : TaskRows.failedNode),
        after: tasks.length < limit ? undefined : TaskRows.toPosition(tasks.at(-1)!)
      }))
    }
    const prefix = Object.values(TaskRows.prefixes).find((one) => parent.startsWith(one))
    if (prefix === undefined) return Effect.succeed({ nodes: [] })
    return Effect.map(
      Effect.zip(admin.inspect(parent.slice(prefix.length), { values: showPayloads }), Clock.currentTimeMillis),
      ([task, now]) =>
        task === undefined
          ? { nodes: [] }
          : TaskRows.toLogPage(parent, task, now, after ?? TaskRows.start, limit)
    )
  }

  const done = (message: string): ConsoleSource.ActionResult => {
    overviews.expire()
    return { isDone: true, message }
  }
  const nothing = (message: string): ConsoleSource.ActionResult => ({ isDone: false, message })

  /** Runs a failed task again, from its beginning or from the step with a position in its log. */
  const rerun = Effect.fnUntraced(function*(id: string, seq: number | undefined, by: string | undefined) {
    const task = yield* admin.inspect(id)
    if (task === undefined || !TaskRows.hasFailed(task.state)) return undefined
    const event = seq === undefined ? undefined : task.log.find((one) => one.seq === seq)
    if (seq !== undefined && (event === undefined || !TaskRows.canRerunFrom(task.log, event))) return undefined
    const state = yield* admin.rerun(id, { from: event?.name, by })
    return state === undefined ? nothing("The task has expired") : done(`The new task is ${state.id}`)
  })

  const changeAll = (
    action: string,
    filter: TaskFilter,
    by: string | undefined
  ): Effect.Effect<ConsoleSource.ActionResult, TaskError> =>
    Effect.tap(BulkActions.changeAll(admin, action, filter, by), () => Effect.sync(() => overviews.expire()))

  const act = (
    id: string,
    action: string,
    by: string | undefined
  ): Effect.Effect<ConsoleSource.ActionResult | undefined, TaskError> => {
    const [, kind, task = "", seq] = /^(task|failed|stopped)\/([^/]+)(?:\/(\d+))?$/.exec(id) ?? []
    const { rerun: again, rerunFrom, settle, wake } = TaskRows.actionNames
    if (kind === "task" && action === wake && seq === undefined) {
      return Effect.map(
        admin.wake(task, { by }),
        (isWoken) => isWoken ? done("A worker checks the task now") : nothing("The task does not wait")
      )
    }
    if (kind === "stopped" && action === settle && seq === undefined) {
      return Effect.map(
        admin.settle(task, { by }),
        (isSettled) => isSettled ? done("The task ends as it is") : nothing("The task does not need attention any more")
      )
    }
    if (kind === "failed" && action === (seq === undefined ? again : rerunFrom)) {
      return rerun(task, seq === undefined ? undefined : Number(seq), by)
    }
    if (kind !== undefined) return Effect.undefined
    const ofGroup = id === TaskRows.groups.live ? { status: live } : id === TaskRows.groups.failed ? {} : undefined
    if (ofGroup !== undefined) return BulkActions.isBulk(action) ? changeAll(action, ofGroup, by) : Effect.undefined
    return Effect.gen(function*() {
      const { statistics, tools } = yield* overviews.read(0)
      const row = [...statistics.tasks, ...statistics.queue, ...tools].find(({ tool }) =>
        QueueRows.toolNodeId(tool) === id
      )
      if (row === undefined) return undefined
      const { tool } = row
      if (BulkActions.isBulk(action)) return yield* changeAll(action, { tool }, by)
      if (action === QueueRows.actionNames.pause) {
        return (yield* admin.pause(tool)) ? done(`${tool} is paused`) : nothing(`${tool} is paused already`)
      }
      if (action !== QueueRows.actionNames.resume) return undefined
      return (yield* admin.resume(tool)) ? done(`${tool} runs again`) : nothing(`${tool} is not paused`)
    })
  }

  return {
    name: "tasks",
    isShared: true,
    read,
    more,
    act,
    interrupt: (id, by) =>
      id.startsWith(TaskRows.prefixes.live)
        ? Effect.tap(
          admin.cancel(id.slice(TaskRows.prefixes.live.length), "Cancelled by an operator", { by }),
          () => Effect.sync(() => overviews.expire())
        )
        : Effect.succeed(false)
  }
}

/**
 * Shows the tasks of an engine: in each group the newest 200; viewers ask for further ones. Tasks that have not ended are
 * read once per second. The other groups are read every 5 seconds at most, and after an action.
 *
 * @example
 * const Rows = Layer.provideMerge(ConsoleTasks.layer, ConsoleSource.ConsoleSources.layer)
 */
export const layer: Layer.Layer<never, never, ConsoleSource.ConsoleSources | TaskAdmin> = /* @__PURE__ */ Layer.unwrap(
  /* @__PURE__ */ Effect.gen(function*() {
    const admin = yield* TaskAdmin
    return ConsoleSource.layer(makeSource(admin, yield* OverviewInterval))
  })
)
