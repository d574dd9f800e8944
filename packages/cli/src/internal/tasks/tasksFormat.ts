/**
 * The output of `skein tasks` for people. All texts of tasks are printable: a handler or a caller has chosen them.
 */
import { cut, printable } from "@skein/protocol/Text"
import type {
  InspectedTask,
  ListedTask,
  LoggedEvent,
  Statistics,
  TaskPlace,
  ToolState,
  WorkerState
} from "@skein/tasks/TaskAdmin"
import { taskStatus } from "../base/format.ts"
import type { Colors } from "../base/colors.ts"
import { cell, table } from "../base/textTable.ts"
import { formatAge } from "../base/columns.ts"

// How much of a value of a step is shown, in characters.
const maxValue = 8_192

/** Where a task is, in a few words. */
const placeOf = (place: TaskPlace, now: number): string => {
  switch (place._tag) {
    case "Ready":
      return place.heldBy === "pause"
        ? "held: its tool is paused"
        : place.heldBy === "limit"
        ? `held by a limit for ${formatAge(now - place.since)}`
        : `in the queue for ${formatAge(now - place.since)}`
    case "Waiting":
      return place.until === undefined ? "waits for an answer" : `waits, at most ${formatAge(place.until - now)}`
    case "Running":
      return place.worker === "" ? "runs" : `runs on ${cut(place.worker, 8)}`
    case "Settled":
      return ""
  }
}

const time = (at: number): string => new Date(at).toISOString().replace("T", " ").slice(0, 19)

/** A list of tasks. */
export const describeTasks = (tasks: ReadonlyArray<ListedTask>, now: number, colors?: Colors): string =>
  tasks.length === 0 ? "There are no such tasks." : table(
    ["ID", "TOOL", "STATUS", "AGE", "WHERE", "MESSAGE"],
    tasks.map(({ place, state }) => [
      state.id,
      cell(state.tool),
      taskStatus(state.status, state.isError),
      formatAge(now - state.createdAt),
      placeOf(place, now),
      cell(state.statusMessage ?? "")
    ]),
    colors
  )

const kinds: Readonly<Record<LoggedEvent["kind"], string>> = {
  step: "step",
  once: "once",
  timer: "timer set",
  fired: "timer ended",
  answer: "answer",
  timeout: "no answer",
  undo: "compensations",
  giveUp: "given up",
  continued: "began again"
}

const eventRow = ({ at, attempt, failed, kind, name, seq, startedAt }: LoggedEvent): ReadonlyArray<string> => [
  String(seq),
  time(at),
  kinds[kind] + (kind === "timer" ? ", for this time" : ""),
  startedAt === undefined ? "" : `${at - startedAt} ms`,
  kind === "step"
    ? (attempt > 1 || failed === true ? `attempt ${attempt}${failed === true ? " failed" : ""}` : "")
    : "",
  cell(name)
]

/** A task with its log. */
export const describeTask = (task: InspectedTask, now: number, withValues: boolean, colors?: Colors): string => {
  const { log, place, questions, state } = task
  const { runs = 0, attempts = 0 } = place._tag === "Settled" ? {} : place
  const fields: ReadonlyArray<readonly [string, string | undefined]> = [
    ["tool", cell(state.tool)],
    ["status", taskStatus(state.status, state.isError)],
    ["message", state.statusMessage && cell(state.statusMessage)],
    ["where", placeOf(place, now)],
    ["worker", place._tag === "Running" ? place.worker : undefined],
    ["pool", state.pool === "default" ? undefined : cell(state.pool)],
    ["owner", state.owner === null ? undefined : cell(state.owner)],
    ["created", `${time(state.createdAt)} UTC, ${formatAge(now - state.createdAt)} ago`],
    ["changed", `${time(state.updatedAt)} UTC, ${formatAge(now - state.updatedAt)} ago`],
    ["expires", state.ttlMs === null ? "never" : `${time(state.createdAt + state.ttlMs)} UTC`],
    ["runs", runs > 1 ? String(runs) : undefined],
    ["lost workers", attempts > 0 ? String(attempts) : undefined]
  ]
  const shown = fields.flatMap(([name, value = ""]) => value === "" ? [] : [[name, value] as const])
  const column = Math.max(...shown.map(([name]) => name.length))
  const parts = [
    [`task ${state.id}`, ...shown.map(([name, value]) => `  ${name.padEnd(column)}  ${value}`)].join("\n")
  ]
  if (questions.length > 0) {
    parts.push([
      "open questions:",
      ...questions.map(({ key, method, params }) =>
        `  ${cell(key)}  ${cell(method)}${withValues ? `  ${printable(JSON.stringify(params), maxValue)}` : ""}`
      )
    ].join("\n"))
  }
  if (log.length > 0) {
    parts.push(table(["SEQ", "TIME (UTC)", "EVENT", "TOOK", "", "NAME"], log.map(eventRow), colors))
  }
  if (withValues) {
    const values = log.flatMap(({ name, seq, value }) =>
      value === undefined ? [] : [`  ${seq} ${cell(name)}: ${printable(value, maxValue)}`]
    )
    if (values.length > 0) parts.push(["values:", ...values].join("\n"))
  }
  return parts.join("\n\n")
}

/** The numbers of tasks by tool and status. */
export const taskTable = ({ tasks }: Statistics, colors?: Colors): string =>
  tasks.length === 0
    ? "There are no tasks."
    : table(
      ["TOOL", "STATUS", "TASKS"],
      tasks.flatMap(({ count, errors, status, tool }) => [
        ...count === errors ? [] : [[cell(tool), status, String(count - errors)]],
        ...errors === 0 ? [] : [[cell(tool), `${status} (error)`, String(errors)]]
      ]),
      colors
    )

/** The queue by pool, tool and state. */
export const queueTable = ({ queue }: Statistics, colors?: Colors): string =>
  queue.length === 0 ? "" : table(
    ["POOL", "TOOL", "QUEUE", "TASKS", "OLDEST"],
    queue.map(({ count, oldestMs, pool, state, tool }) => [
      cell(pool),
      cell(tool),
      state,
      String(count),
      oldestMs === undefined ? "" : formatAge(oldestMs)
    ]),
    colors
  )

/** The tools that are paused or have limits. */
export const describeTools = (tools: ReadonlyArray<ToolState>, colors?: Colors): string =>
  tools.length === 0 ? "" : table(
    ["TOOL", "PAUSED", "CONCURRENCY", "RATE", "RUNNING"],
    tools.map(({ concurrency, pausedAt, rate, running, tool }) => [
      cell(tool),
      pausedAt === undefined ? "" : `since ${time(pausedAt)}`,
      concurrency === undefined ? "" : String(concurrency),
      rate === undefined ? "" : `${rate.limit} in ${formatAge(rate.periodMs)}`,
      String(running)
    ]),
    colors
  )

/** The workers of a database. */
export const describeWorkers = (workers: ReadonlyArray<WorkerState>, now: number, colors?: Colors): string =>
  workers.length === 0
    ? "There are no workers. On SQLite the one process that has the file runs all tasks."
    : table(
      ["WORKER", "MACHINE", "POOLS", "SINCE", "TASKS", "LEASE"],
      workers.map(({ host, id, isLost, pools, running, startedAt }) => [
        id,
        cell(host),
        cell(pools.join(", ")),
        formatAge(now - startedAt),
        String(running),
        isLost ? "over: the worker is lost" : "valid"
      ]),
      colors
    )
