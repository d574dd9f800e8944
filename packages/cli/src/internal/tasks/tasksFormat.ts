/**
 * The output of `skein tasks` for people. All texts of tasks are printable: a handler or a caller has chosen them.
 */
import { cut, printable } from "@skein/protocol/Text"
import {
  type InspectedTask,
  isSlow,
  type ListedTask,
  type LoggedEvent,
  type OperatorAction,
  type Statistics,
  type TaskPlace,
  type ToolState,
  type WorkerState
} from "@skein/tasks/TaskAdmin"
import { taskStatus } from "../base/format.ts"
import type { Colors } from "../base/colors.ts"
import { cell, table } from "../base/textTable.ts"
import { formatAge } from "../base/columns.ts"

// How much of a value of a step is shown, in characters.
const maxValue = 8_192

/** How much of the details of a heartbeat is shown, in characters. */
const maxDetails = 500

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
      return place.events.length === 0
        ? place.until === undefined ? "waits for an answer" : `waits, at most ${formatAge(place.until - now)}`
        : `waits for ${place.events.length === 1 ? "the event" : "the events"} ${cell(place.events.join(", "))}${
          place.until === undefined ? "" : `, at most ${formatAge(place.until - now)}`
        }`
    case "Running":
      return place.worker === "" ? "runs" : `runs on ${cut(place.worker, 8)}`
    case "Settled":
      return ""
  }
}

type Running = Extract<TaskPlace, { readonly _tag: "Running" }>

/** The process that runs a task. */
const processOf = ({ process }: Running): string => {
  if (process === undefined) return ""
  const { application, host, pid } = process
  return [application && cell(application), pid === undefined ? undefined : `pid ${pid}`, `on ${cell(host)}`]
    .filter((part) => part !== undefined).join(" ")
}

/** The last details that a step has reported. */
const heartbeatOf = (heartbeat: Running["steps"][number]["heartbeat"], now: number): string => {
  if (heartbeat === undefined) return ""
  const { at, details } = heartbeat
  const value = details === undefined ? "" : `: ${printable(details, maxDetails)}`
  return `, heartbeat ${formatAge(now - at)} ago${value}`
}

/** The steps of a task that have run for more than a second. */
const stepsOf = ({ steps }: Running, now: number): string =>
  steps.map((step) => {
    const { attempt, heartbeat, medianMs, name, startedAt } = step
    const ms = now - startedAt
    const usual = isSlow(step, now) ? `: SLOW, its median is ${medianMs} ms` : ""
    return `${cell(name)}${attempt > 1 ? `, attempt ${attempt}` : ""}, for ${formatAge(ms)}${usual}${
      heartbeatOf(heartbeat, now)
    }`
  }).join("; ")

const time = (at: number): string => new Date(at).toISOString().replace("T", " ").slice(0, 19)

/** A page of tasks. `cursor`: where further ones begin. */
export const describeTasks = (
  tasks: ReadonlyArray<ListedTask>,
  now: number,
  cursor: string | undefined,
  isLong: boolean,
  colors?: Colors
): string => {
  if (tasks.length === 0) return "There are no such tasks."
  const rows = table(
    ["ID", "TOOL", "STATUS", "CREATED (UTC)", "AGE", "WHERE", ...isLong ? ["PROCESS", "STEP"] : [], "MESSAGE"],
    tasks.map(({ needsAttention, place, state }) => [
      state.id,
      cell(state.tool),
      taskStatus(state.status, state.isError),
      time(state.createdAt),
      formatAge(now - state.createdAt),
      needsAttention
        ? "needs attention"
        : place._tag === "Settled"
        ? `ended ${time(state.updatedAt)}`
        : placeOf(place, now),
      ...isLong
        ? [place._tag === "Running" ? processOf(place) : "", place._tag === "Running" ? stepsOf(place, now) : ""]
        : [],
      cell(state.statusMessage ?? "")
    ]),
    colors
  )
  return cursor === undefined ? rows : `${rows}\n\nThere are more: add --cursor ${cursor}, or a larger --limit`
}

const kinds: Readonly<Record<LoggedEvent["kind"], string>> = {
  step: "step",
  once: "once",
  timer: "timer set",
  fired: "timer ended",
  answer: "answer",
  timeout: "no answer",
  received: "event",
  start: "child started",
  join: "child ended",
  emit: "output",
  undo: "compensations",
  giveUp: "given up",
  continued: "began again",
  stopped: "stopped",
  settled: "settled by an operator",
  patched: "with a change",
  unpatched: "without a change",
  section: "section begun"
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

/** Why a task needs attention, and the steps that are not undone. */
const attentionOf = (log: ReadonlyArray<LoggedEvent>): string => {
  const end = log.find(({ kind }) => kind === "undo")?.seq ?? Infinity
  const done = log.filter(({ failed, kind, seq }) => kind === "step" && failed !== true && seq < end)
  const reason = log.findLast(({ kind }) => kind === "stopped")?.name ?? ""
  const which = end === Infinity ? "these steps" : "some of these steps"
  const names = done.map(({ name }) => name).join(", ")
  const steps = done.length === 0 ? "" : `; the compensations of ${which} have not run: ${names}`
  return printable(`it waits for other code, because ${reason}${steps}`, maxValue)
}

const actionNames: Readonly<Record<OperatorAction["action"], string>> = {
  cancel: "cancelled",
  settle: "settled",
  rerun: "run again as",
  wake: "woken",
  priority: "priority",
  move: "moved to the pool",
  import: "imported"
}

const describeChildren = ({ completed, failed, live }: InspectedTask["children"]): string | undefined =>
  completed + failed + live === 0 ? undefined : `${live} live, ${completed} completed, ${failed} failed or cancelled`

/** A task with its log. */
export const describeTask = (task: InspectedTask, now: number, withValues: boolean, colors?: Colors): string => {
  const {
    actions,
    args,
    failedCompensations,
    labels,
    log,
    needsAttention,
    outcome,
    place,
    questions,
    state,
    unreceived
  } = task
  const { runs = 0, attempts = 0 } = place._tag === "Settled" ? {} : place
  const fields: ReadonlyArray<readonly [string, string | undefined]> = [
    ["tool", cell(state.tool)],
    ["status", taskStatus(state.status, state.isError)],
    ["message", state.statusMessage && cell(state.statusMessage)],
    ["where", placeOf(place, now)],
    ["attention", needsAttention ? attentionOf(log) : undefined],
    ["worker", place._tag === "Running" ? place.worker : undefined],
    ["process", place._tag === "Running" ? processOf(place) : undefined],
    ["step", place._tag === "Running" ? stepsOf(place, now) : undefined],
    ["pool", state.pool === "default" ? undefined : cell(state.pool)],
    ["parent", task.parent],
    ["children", describeChildren(task.children)],
    ["owner", state.owner === null ? undefined : cell(state.owner)],
    ["labels", Object.entries(labels).map(([name, value]) => cell(`${name}=${value}`)).join(", ")],
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
      ...questions.map(({ key, method, params, to }) =>
        `  ${cell(key)}  ${cell(method)}${to === undefined ? "" : `  for ${cell(to)}`}${
          withValues ? `  ${printable(JSON.stringify(params), maxValue)}` : ""
        }`
      )
    ].join("\n"))
  }
  if (unreceived.length > 0) {
    parts.push([
      "events that it has not received:",
      ...unreceived.map(({ at, name }) => `  ${cell(name)}  ${time(at)} UTC`)
    ].join("\n"))
  }
  if (args !== undefined) parts.push(`arguments:\n  ${printable(JSON.stringify(args), maxValue)}`)
  if (log.length > 0) {
    parts.push(table(["SEQ", "TIME (UTC)", "EVENT", "TOOK", "", "NAME"], log.map(eventRow), colors))
  }
  if (withValues) {
    const values = log.flatMap(({ name, seq, value }) =>
      value === undefined ? [] : [`  ${seq} ${cell(name)}: ${printable(value, maxValue)}`]
    )
    if (values.length > 0) parts.push(["values:", ...values].join("\n"))
  }
  if (failedCompensations.length > 0) {
    parts.push([
      "failed compensations:",
      ...failedCompensations.map(({ at, message, number }) => `  ${time(at)}  number ${number}: ${cell(message)}`)
    ].join("\n"))
  }
  if (actions.length > 0) {
    parts.push([
      "operators:",
      ...actions.map(({ action, at, by, detail }) =>
        `  ${time(at)}  ${actionNames[action]}${
          detail === undefined ? "" : ` ${action === "import" ? "from " : ""}${cell(detail)}`
        }${by === undefined ? "" : `, by ${cell(by)}`}`
      )
    ].join("\n"))
  }
  if (outcome !== undefined) {
    const [title, value] = outcome._tag === "Error" ? ["error", outcome.error] : ["result", outcome.result]
    parts.push(`${title}:\n  ${printable(JSON.stringify(value), maxValue)}`)
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

const formatRate = ({ limit, periodMs }: NonNullable<ToolState["rate"]>): string => `${limit} in ${formatAge(periodMs)}`

/** The tools that are paused or have limits. */
export const describeTools = (tools: ReadonlyArray<ToolState>, colors?: Colors): string =>
  tools.length === 0 ? "" : table(
    ["TOOL", "PAUSED", "CONCURRENCY", "RATE", "EACH KEY", "RUNNING"],
    tools.map(({ concurrency, pausedAt, perKey, rate, running, tool }) => [
      cell(tool),
      pausedAt === undefined ? "" : `since ${time(pausedAt)}`,
      concurrency === undefined ? "" : String(concurrency),
      rate === undefined ? "" : formatRate(rate),
      perKey === undefined ? "" : [
        perKey.concurrency === undefined ? "" : `${perKey.concurrency} at once`,
        perKey.rate === undefined ? "" : formatRate(perKey.rate)
      ].filter((limit) => limit !== "").join(", ") || "in turns",
      String(running)
    ]),
    colors
  )

/** The workers of a database. */
export const describeWorkers = (workers: ReadonlyArray<WorkerState>, now: number, colors?: Colors): string =>
  workers.length === 0
    ? "There are no workers. A process that has a SQLite file alone runs all tasks."
    : table(
      ["WORKER", "MACHINE", "PID", "PROGRAM", "POOLS", "SINCE", "TASKS", "LEASE"],
      workers.map(({ application = "", host, id, isLost, pid = "", pools, running, startedAt }) => [
        id,
        cell(host),
        String(pid),
        cell(application),
        cell(pools.join(", ")),
        formatAge(now - startedAt),
        String(running),
        isLost ? "over: the worker is lost" : "valid"
      ]),
      colors
    )
