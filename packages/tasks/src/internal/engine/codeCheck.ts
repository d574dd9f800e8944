/**
 * Compares the code of this process with tasks that exist, before they run: each task is replayed against its log, and
 * nothing starts and nothing is stored. A step, sleep or question that the log does not have waits forever, until the
 * handler makes no progress.
 *
 * The check reads a bounded number of tasks, and leaves out tasks that run now. It does not see code after the first
 * part of a task that is not recorded, so that it cannot distinguish a part that was added from one that was renamed.
 */
import { cut } from "@skein/protocol/Text"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { CodeCheck, CodeFinding } from "../../TaskAdmin.ts"
import type { TaskError } from "../../TaskError.ts"
import type { LogEntry, TaskStore, UnsettledTask } from "../store/store.ts"
import { shortTaskId } from "../base/text.ts"
import { describeEvent, describeEvents } from "./codeChanges.ts"
import { type EngineContext, isKeyError } from "./engineContext.ts"
import { failureOf, replay } from "./codeReplay.ts"
import { unreachedSteps } from "./execution.ts"
import type { FoundHandler, HandlerRegistry } from "./handlerRegistry.ts"
import type { Run } from "./run.ts"
import { TaskLog, textOf } from "./taskLog.ts"

/** The tasks that a check reads. */
export interface CheckScope {
  /** The pools of this process; `undefined`: all. */
  readonly pools: ReadonlyArray<string> | undefined
  /** Only the tasks of this tool. */
  readonly tool?: string | undefined
  /** Only tasks that were created before a time, in milliseconds of Unix time. */
  readonly createdBefore?: number | undefined
  /** The number of unsettled tasks that it reads. */
  readonly maxTasks: number
  /** The number of tasks of each tool that it replays. */
  readonly maxTasksPerTool: number
}

/** Unsettled tasks that are read together, and the milliseconds between two pages. */
const pageSize = 200
const pagePauseMs = 10

/** Tasks that are replayed at the same time. */
const parallelReplays = 4

/** The most ids and details in a finding. */
const maxListed = 10

/** Characters of a detail, at most. */
const maxDetailChars = 300

type Kind = CodeFinding["kind"]
type Difference = readonly [kind: Kind, detail: string | undefined]

/** The differences between a task and the handler that would continue it. */
const compare = Effect.fnUntraced(function*(
  engine: EngineContext,
  row: UnsettledTask,
  found: FoundHandler
): Effect.fn.Return<ReadonlyArray<Difference>, TaskError> {
  const { store } = engine
  const task = yield* store.load(row.id)
  if (task === undefined || task.status === "completed" || task.status === "failed") return []
  const entries = yield* store.readLog(row.id)
  const log = new TaskLog(entries)
  if (!found.handler.durable) return log.isOfDurable ? [["plain", undefined] as const] : []
  // A task that compensates has ended already.
  if (log.undoReason !== undefined || log.givenUpAfter !== undefined) return []
  const { answers, openQuestions } = yield* store.readQuestions(row.id)
  const { exit, run } = yield* replay(engine, task, log, answers, found)
  // The handlers were removed, or the replay took too long.
  if (Option.isNone(exit) || (run.ending !== undefined && run.ending !== "suspended")) return []
  const hasEnded = run.ending === undefined
  const failure = hasEnded && row.isWaiting ? failureOf(exit.value) : undefined
  // A task that compensates stops before steps that it does not reach.
  if (failure !== undefined || (task.status === "cancelled" && !log.isToSettle)) {
    const steps = yield* unreachedSteps(run)
    const reason = failure === undefined ? "" : `, before which the handler fails: ${failure}`
    if (steps.length > 0) return [["stopped", `${describeEvents(steps)}${reason}`] as const]
    // The events after a failure are not reached because of it.
    return failure === undefined ? [] : [["failed", failure] as const]
  }
  // A step that it begins may be followed by the question; a question or a sleep suspends the task, which withdraws others.
  const mayAsk = run.unstarted.some(({ kind }) => kind === "step" || kind === "once")
  return [
    ...recordedButNotReached(run, entries, hasEnded),
    ...openQuestions.filter((key) => !mayAsk && !run.names.has(`question/${key}`)).map((
      key
    ): Difference => ["question", `"${key}"`])
  ]
})

const recordedButNotReached = (
  run: Run,
  entries: ReadonlyArray<LogEntry>,
  hasEnded: boolean
): ReadonlyArray<Difference> => {
  const unreached = run.log.unreached.map((event): Difference => {
    const part = run.unstarted.find((part) => event.beside?.includes(textOf(part)) === true)
    if (part !== undefined) {
      return ["stopped", `${describeEvent(event)}, recorded while ${describeEvent(part)} was under way`]
    }
    const added = hasEnded ? undefined : run.unstarted.at(-1)
    return added === undefined
      ? ["skipped", describeEvent(event)]
      : ["added", `${describeEvent(added)} before ${describeEvent(event)}`]
  })
  // The handler of a task that sleeps reaches the sleep, unless something new comes before it.
  const sleeps = !hasEnded ?
    [] :
    entries.filter(({ kind, name }) =>
      kind === "timer" && name.startsWith("sleep/") && !run.names.has(name) &&
      !entries.some((other) => other.kind === "fired" && other.name === name)
    )
  return [...unreached, ...sleeps.map((event): Difference => ["skipped", describeEvent(event)])]
}

/** The findings of a check, by tool and kind. */
class Findings {
  readonly #byKey = new Map<string, { tool: string; kind: Kind; tasks: Set<string>; details: Set<string> }>()

  add({ id, tool }: UnsettledTask, [kind, detail]: Difference): void {
    const key = `${kind} ${tool}`
    const finding = this.#byKey.get(key) ?? { tool, kind, tasks: new Set(), details: new Set() }
    this.#byKey.set(key, finding)
    finding.tasks.add(id)
    if (detail !== undefined && finding.details.size < maxListed) finding.details.add(cut(detail, maxDetailChars))
  }

  get all(): ReadonlyArray<CodeFinding> {
    return Array.from(this.#byKey.values(), ({ details, kind, tasks, tool }) => ({
      tool,
      kind,
      count: tasks.size,
      tasks: [...tasks].slice(0, maxListed),
      details: [...details]
    }))
  }
}

/**
 * Checks tasks against the handlers of an engine. Without one it finds the tasks that wait for a worker already, in a
 * process without handlers.
 */
export const checkCode = Effect.fnUntraced(function*(
  store: TaskStore["Service"],
  engine: EngineContext | undefined,
  { createdBefore = Infinity, maxTasks, maxTasksPerTool, pools, tool }: CheckScope
): Effect.fn.Return<CodeCheck, TaskError> {
  const hasHandlers = engine !== undefined && !engine.handlers.isEmpty
  const isAlone = hasHandlers && (pools === undefined || (yield* store.admin.workers).length <= 1)
  const findings = new Findings()
  const replays = new Map<string, number>()
  let checked = 0
  let isComplete = true

  const checkTask = (row: UnsettledTask): Effect.Effect<void, TaskError> => {
    const found = engine?.handlers.find(row.tool)
    if (engine === undefined || found === undefined) {
      checked++
      const kind = row.waitsFor === "code" ? "stopped" : row.waitsFor === "tool" || isAlone ? "missing" : undefined
      return Effect.sync(() => kind === undefined ? undefined : findings.add(row, [kind, undefined]))
    }
    const count = replays.get(row.tool) ?? 0
    // A task without a run has recorded nothing.
    if (row.runs === 0) return Effect.void
    if (count >= maxTasksPerTool) return Effect.sync(() => void (isComplete = false))
    replays.set(row.tool, count + 1)
    return Effect.gen(function*() {
      const differences = yield* compare(engine, row, found)
      checked++
      if (differences.length === 0) return
      // The differences do not count if the task has run meanwhile.
      const now = yield* store.checks.find(row.id)
      if (now === undefined || now.isRunning || now.runs !== row.runs) return
      for (const difference of differences) findings.add(row, difference)
    }).pipe(Effect.catchIf(isKeyError, () => Effect.void))
  }

  let after = ""
  for (let read = 0; read < maxTasks;) {
    const limit = Math.min(pageSize, maxTasks - read)
    const page: ReadonlyArray<UnsettledTask> = yield* store.checks.page(after, limit)
    read += page.length
    after = page.at(-1)?.id ?? after
    const rows = page.filter((row) =>
      !row.isRunning && row.createdAt < createdBefore && (tool === undefined || row.tool === tool) &&
      (pools === undefined || pools.includes(row.pool))
    )
    yield* Effect.forEach(rows, checkTask, { concurrency: parallelReplays, discard: true })
    if (page.length < limit) return { checked, isComplete, findings: findings.all }
    yield* Effect.sleep(pagePauseMs)
  }
  return { checked, isComplete: false, findings: findings.all }
})

const meanings: Readonly<Record<Kind, string>> = {
  skipped: "do not reach what they have recorded with the code of this process",
  added: "begin something new before what they have recorded: a part of the code was added or renamed",
  stopped: "stop, because the code of this process does not reach what they have recorded",
  question: "have open questions that the code of this process does not ask",
  failed: "fail with the code of this process",
  plain: "have steps, and wait, because the tool is a plain one in this process",
  missing: "wait for a worker that has the tool"
}

/** A finding as a line of a log. */
const describeFinding = ({ count, details, kind, tasks, tool }: CodeFinding, isComplete: boolean): string => {
  const ids = tasks.map(shortTaskId).join(", ")
  const number = `${isComplete ? "" : "at least "}${count} ${count === 1 ? "task" : "tasks"}`
  const subject = `${number} of the tool ${tool} (${ids})`
  return `a check of the code: ${subject} ${meanings[kind]}${details.length === 0 ? "" : `: ${details.join(", ")}`}`
}

/** Milliseconds from the last handlers that are added to the check: a program adds its handlers one after the other. */
const checkDelayMs = 1000

/** Checks the code each time that handlers are added, and logs the findings, forever. */
export const checkAddedHandlers = Effect.fnUntraced(function*(
  handlers: HandlerRegistry,
  check: Effect.Effect<CodeCheck | undefined>
): Effect.fn.Return<never> {
  let checked = 0
  while (true) {
    if (handlers.additions === checked) yield* handlers.changed
    yield* Effect.sleep(checkDelayMs)
    checked = handlers.additions
    const { findings = [], isComplete = true } = (yield* check) ?? {}
    yield* Effect.forEach(
      findings,
      (finding) => Effect.logWarning(describeFinding(finding, isComplete)),
      { discard: true }
    )
  }
})
