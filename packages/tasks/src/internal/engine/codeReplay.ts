/**
 * Replays a task against its log without effects: for a check of the tasks of a store, and for a task that was exported.
 */
import * as CanonicalJson from "@skein/protocol/CanonicalJson"
import { cut } from "@skein/protocol/Text"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as References from "effect/References"
import { TaskError, UnknownTool } from "../../TaskError.ts"
import type { ExportedTask, Replay } from "../../TaskExport.ts"
import { isFinal, type Outcome } from "../../TaskState.ts"
import { readExported } from "../base/exported.ts"
import { isErrorResult, messageOf } from "../base/text.ts"
import { invalidOption } from "../store/database.ts"
import type { LogEntry, Questions, StoredTask, TaskStore } from "../store/store.ts"
import { describeEvent } from "./codeChanges.ts"
import type { EngineContext } from "./engineContext.ts"
import { replayToStall } from "./execution.ts"
import type { FoundHandler } from "./handlerRegistry.ts"
import { Run } from "./run.ts"
import { TaskLog } from "./taskLog.ts"

/** Milliseconds that a replay may take. */
export const maxReplayMs = 10_000

/** A store that changes nothing: its writes wait forever, or do nothing. */
const readOnly = (store: TaskStore["Service"]): TaskStore["Service"] => ({
  ...store,
  setStatusMessage: () => Effect.void,
  setWaitsForWorker: () => Effect.void,
  setProgress: () => Effect.void,
  markLost: () => Effect.void,
  ask: () => Effect.never,
  withdraw: () => Effect.never,
  removeQuestion: () => Effect.never,
  insertChild: () => Effect.never,
  append: () => Effect.never,
  suspend: () => Effect.never,
  release: () => Effect.never,
  finish: () => Effect.never,
  settle: () => Effect.never
})

/** The failure of a replay in a process without the handler of a tool. */
export const withoutHandler = (tool: string): TaskError => {
  const message = `this process has no handler of the tool "${cut(tool, maxValueChars)}"`
  return new TaskError({ reason: new UnknownTool({ message }) })
}

/** Replays a task without effects. */
export const replay = (
  engine: EngineContext,
  task: StoredTask,
  log: TaskLog,
  answers: Run["answers"],
  { handler, handlers }: FoundHandler,
  patience?: number
): Effect.Effect<{ readonly run: Run; readonly exit: Option.Option<Exit.Exit<Outcome>> }> =>
  Effect.scoped(Effect.gen(function*() {
    const context = yield* Effect.context<never>()
    const scope = yield* Effect.scope
    const run = new Run({
      engine: {
        ...engine,
        store: readOnly(engine.store),
        holdsLease: () => true,
        renewLease: Effect.void,
        noteStepEnd: () => {}
      },
      execution: { workerId: "", signals: 0 },
      ...{ task, log, answers, openQuestions: [], stops: 0, context, scope, handlers },
      durable: true,
      isCollecting: true,
      isCheck: true
    })
    engine.handlers.activeRuns.add(run)
    const exit = yield* Effect.ensuring(
      Effect.timeoutOption(replayToStall(run, handler, patience), maxReplayMs),
      Effect.sync(() => engine.handlers.activeRuns.delete(run))
    )
    return { run, exit }
  })).pipe(Effect.provideService(References.MinimumLogLevel, "None"), Effect.withTracerEnabled(false))

/** How the handler has failed in a replay; `undefined` if it has not. */
export const failureOf = (exit: Exit.Exit<Outcome>): string | undefined => {
  if (exit._tag === "Failure") return messageOf(Cause.squash(exit.cause))
  if (exit.value._tag === "Error") return exit.value.error.message
  return isErrorResult(exit.value) ? "a result with isError" : undefined
}

/** The events from which on the engine has ended a task: the handler does not observe those behind them. */
const ofEngine: ReadonlySet<LogEntry["kind"]> = new Set(["undo", "giveUp"])

/** Characters of a value in a difference, at most. */
const maxValueChars = 300

const endOfTask = "the end of the task"

/** The recorded part of an exported task that its handler has observed. */
const recordedOf = ({ log, questions, task }: ExportedTask) => {
  const end = log.findIndex(({ kind }) => ofEngine.has(kind))
  const entries = (end < 0 ? log : log.slice(0, end)).filter(({ kind }) => kind !== "stopped" && kind !== "settled")
  const answers: Questions["answers"] = new Map(
    questions.filter(({ state }) => state !== "open").map((
      { answer, key, state }
    ) => [key, state === "lost" ? "lost" : answer])
  )
  return {
    entries: entries.map((event): LogEntry => ({ ...event, startedAt: event.startedAt, value: event.value ?? null })),
    answers,
    openQuestions: isFinal(task) ? [] : questions.filter(({ state }) => state === "open").map(({ key }) => key),
    // A task that was cancelled or given up has not come to the end of its handler.
    outcome: log.some(({ kind }) => kind === "giveUp") ? undefined : task.outcome
  }
}

/** An end of a handler, in a few words. */
const describeEnd = (outcome: Outcome, withValue: boolean): string => {
  const isError = outcome._tag === "Error"
  if (!isError && !isErrorResult(outcome) && !withValue) return endOfTask
  const kind = isError ? "an error" : isErrorResult(outcome) ? "a result with isError" : "the result"
  return withValue ? `${kind}: ${cut(JSON.stringify(isError ? outcome.error : outcome.result), maxValueChars)}` : kind
}

/** How the end of a handler differs from the recorded one. The text of an error is not compared: it may have a reference. */
const compareEnds = (recorded: Outcome, found: Outcome, withValues: boolean): Replay | undefined => {
  const kindOf = (outcome: Outcome) => outcome._tag === "Result" ? isErrorResult(outcome) : outcome._tag
  const isSameKind = kindOf(recorded) === kindOf(found)
  const isSuccess = recorded._tag === "Result" && !isErrorResult(recorded)
  if (isSameKind && (!isSuccess || !withValues)) return undefined
  if (isSameKind && CanonicalJson.stringify(recorded) === CanonicalJson.stringify(found)) return undefined
  return {
    _tag: "Differs",
    seq: undefined,
    recorded: describeEnd(recorded, withValues),
    code: describeEnd(found, true)
  }
}

/** Compares a run that has replayed an exported task with what is recorded. */
const compareRun = (
  run: Run,
  exit: Exit.Exit<Outcome>,
  { entries, openQuestions, outcome }: ReturnType<typeof recordedOf>,
  withValues: boolean
): Replay => {
  const hasEnded = run.ending === undefined
  const failure = hasEnded ? failureOf(exit) : undefined
  const stalled = run.newParts.filter(({ isPassed }) => !isPassed)
  const next = stalled.at(-1)?.part
  /** The part, or the end, at which the code stays. */
  const place = next !== undefined
    ? describeEvent(next)
    : failure !== undefined
    ? `a failure: ${cut(failure, maxValueChars)}`
    : hasEnded
    ? endOfTask
    : "a wait for something that is not recorded"
  const differs = (recorded: LogEntry | undefined, code: string, missing = endOfTask): Replay => ({
    _tag: "Differs",
    seq: recorded?.seq,
    recorded: recorded === undefined ? missing : describeEvent(recorded),
    code
  })
  const unreached = run.log.unreached.toSorted((one, other) => one.seq - other.seq)
  const [first] = unreached
  const passed = run.newParts.find(({ isPassed }) => isPassed)
  if (passed !== undefined && passed.before <= (first?.seq ?? Infinity)) {
    return differs(entries.find(({ seq }) => seq === passed.before), describeEvent(passed.part))
  }
  if (first !== undefined) {
    const isMissing = new Set(unreached)
    const later = stalled.some(({ before }) => before <= first.seq)
      ? undefined
      : entries.find((entry) => entry.seq > first.seq && isReached(run, entry) && !isMissing.has(entry))
    return differs(first, later === undefined ? place : describeEvent(later))
  }
  const sleep = entries.find((entry) =>
    entry.kind === "timer" && entry.name.startsWith("sleep/") && !run.names.has(entry.name) &&
    !entries.some(({ kind, name }) => kind === "fired" && name === entry.name)
  )
  if (sleep !== undefined) return differs(sleep, place)
  const mayAsk = next?.kind === "step" || next?.kind === "once"
  const question = openQuestions.find((key) => !run.names.has(`question/${key}`))
  if (question !== undefined && !mayAsk) return differs(undefined, place, `question "${question}"`)
  if (outcome !== undefined) {
    if (!hasEnded) return differs(undefined, place)
    if (exit._tag === "Failure") {
      return outcome._tag === "Error" || isErrorResult(outcome) ? matches(undefined) : differs(undefined, place)
    }
    return compareEnds(outcome, exit.value, withValues) ?? matches(undefined)
  }
  if (failure !== undefined && !isFinal(run.task)) return differs(undefined, place, "nothing further")
  return matches(next === undefined ? undefined : describeEvent(next))
}

const matches = (next: string | undefined): Replay => ({ _tag: "Matches", next })

/** Whether the code has come to a recorded event, or to the timer of a sleep that has not ended. */
const isReached = (run: Run, { kind, name }: LogEntry): boolean => kind !== "timer" || run.names.has(name)

/**
 * Compares an exported task with the handlers of a process. Fails with `UnknownTool` if it has none for the tool.
 */
export const replayExported = Effect.fnUntraced(function*(
  store: TaskStore["Service"],
  engine: EngineContext | undefined,
  value: unknown
): Effect.fn.Return<Replay, TaskError> {
  const exported = yield* readExported(value)
  const { task } = exported
  const found = engine?.handlers.find(task.tool)
  if (engine === undefined || found === undefined) {
    return yield* Effect.fail(withoutHandler(task.tool))
  }
  const recorded = recordedOf(exported)
  const log = new TaskLog(recorded.entries)
  if (!found.handler.durable) {
    const first = recorded.entries[0]
    return log.isOfDurable && first !== undefined
      ? { _tag: "Differs", seq: first.seq, recorded: describeEvent(first), code: "a plain tool" }
      : matches(undefined)
  }
  const { id, owner, pool, tool, args, caller, createdAt, status } = task
  const stored: StoredTask = {
    ...{ id, owner, pool, tool, args, createdAt, status, statusMessageCount: 0, waitsForWorker: false },
    caller: { ...caller, info: caller.info, principal: caller.principal }
  }
  // The records of an export are not encrypted.
  const plain = { ...engine, store: { ...store, decrypt: Effect.succeed } }
  const { exit, run } = yield* replay(plain, stored, log, recorded.answers, found)
  if (Option.isNone(exit)) {
    const pending = recorded.entries.find(({ seq }) => seq === log.firstPending)
    return {
      _tag: "Differs",
      seq: pending?.seq,
      recorded: pending === undefined ? endOfTask : describeEvent(pending),
      code: `code that takes more than ${maxReplayMs / 1000} seconds`
    }
  }
  if (run.ending !== undefined && run.ending !== "suspended") {
    return yield* Effect.fail(invalidOption("the replay has ended, because the handlers of this process were removed"))
  }
  return compareRun(run, exit.value, recorded, !exported.redacted)
})
