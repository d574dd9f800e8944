/**
 * The execution of a task that this worker has claimed: from the stored task to its end, or until the run is suspended
 * or another worker continues it.
 *
 * The stored status decides. For a cancelled task, a run replays a durable handler up to the point that it had reached,
 * because only the handler knows its compensations, and then runs these.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Backoff from "@skein/runtime/Backoff"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { TaskError } from "../../TaskError.ts"
import { isFinal, type Outcome } from "../../TaskState.ts"
import type { Claim, LogEntry, Questions, StoredTask } from "../store/store.ts"
import { isPermanent } from "../store/storedText.ts"
import type { RunTrace } from "../telemetry/taskObserver.ts"
import { isErrorResult, logAnnotations, truncateLine } from "../base/text.ts"
import { cancelChildren } from "./children.ts"
import { describeEvent, describeEvents } from "./codeChanges.ts"
import { makeCurrentTask, makeTaskRequest } from "./currentTask.ts"
import { awaitStore, type EngineContext, isKeyError } from "./engineContext.ts"
import type { FoundHandler } from "./handlerRegistry.ts"
import { pin } from "./pinning.ts"
import { Run } from "./run.ts"
import { hasActed } from "./steps.ts"
import { type EventKey, isUnobserved, TaskLog } from "./taskLog.ts"
import { retryTask } from "./taskRetries.ts"
import { undoAll } from "./undoAll.ts"

/** Milliseconds that a task waits for a handler before it waits in the queue. */
const handlerWaitMs = 500

/** The pauses between two checks for a handler. */
const handlerPauses: Backoff.Backoff = { initialDelay: 1000, maxDelay: 15_000 }

/** How often a stop lets the next replay of a cancelled task wait longer for slow code, since it keeps a place of its worker. */
const maxPatientStops = 2

/** Milliseconds between two checks whether the replay of a cancelled task makes progress. */
const replayCheckMs = 100

/** A task that this worker runs. */
export interface Execution extends Omit<Claim, "signals"> {
  /** The worker that has claimed it. */
  readonly workerId: string
  /** The number of signals whose events are loaded. */
  signals: number
  /** Whether a signal has come since the task was loaded. */
  hasSignal: boolean
  /** The run in progress. */
  run: Run | undefined
  /** The position of the first event that this worker stores; `undefined` before it has read the log. */
  firstSeq?: number
}

/** The action after a run. */
type Next =
  /** The task has ended, waits, or belongs to another worker. */
  | "done"
  /** The handler runs again, for instance to collect the compensations of a task that was cancelled. */
  | "again"
  /** The handler runs again if the task still belongs to this worker, with the events that are stored. */
  | "reload"
  /** The claim ends: this process has no handler for it any more. */
  | "release"

/** Runs a task until it ends, is suspended, or another worker must continue it. */
export const runExecution = (engine: EngineContext, execution: Execution): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { id, workerId } = execution
    const { store } = engine
    const loaded = yield* awaitStore(
      Effect.catchIf(execution.task, isKeyError, (error) => releaseUntilKey(engine, execution, error))
    )
    if (loaded === undefined) return
    let task: StoredTask | undefined = loaded
    let log = new TaskLog(execution.isFirst ? [] : yield* awaitStore(store.readLog(id)))
    execution.firstSeq = log.nextSeq
    let questions: Questions = execution.isFirst
      ? { answers: new Map(), openQuestions: [] }
      : yield* awaitStore(store.readQuestions(id))
    // The task was read before its log, and may have been continued with other arguments in between.
    if (log.continuation > 0) task = yield* awaitStore(store.load(id))
    if (task === undefined) return
    if (execution.attempts >= engine.maxAttempts && !(yield* giveUp(engine, task, log, execution.attempts))) {
      return void (yield* awaitStore(store.release(id, workerId)))
    }
    let isFirst = execution.isFirst
    while (true) {
      if (task.status === "completed" || task.status === "failed") return
      // Its children end before its compensations begin.
      if (task.status === "cancelled" || log.givenUpAfter !== undefined) yield* cancelChildren(store, id)
      const known: FoundHandler | undefined = engine.handlers.find(task.tool)
      const found: FoundHandler | undefined = known ?? (yield* waitForHandler(engine, task))
      if (found !== undefined) task = yield* pin(engine, task, log, found.handler)
      const next: Next = found === undefined
        ? yield* releaseUntilHandled(engine, execution, task)
        // It may have been cancelled meanwhile.
        : known === undefined && execution.hasSignal
        ? "reload"
        : yield* Effect.annotateLogs(
          observed(engine, execution, task, isFirst, runOnce(engine, execution, { task, log, questions }, found)),
          logAnnotations(task)
        )
      isFirst = false
      if (next === "done") return
      if (next === "release") return void (yield* awaitStore(store.release(id, workerId)))
      if (next === "reload") {
        const now = yield* awaitStore(store.readSignals(id))
        if (now?.worker !== workerId) return
        execution.signals = now.signals
        log = new TaskLog(yield* awaitStore(store.readLog(id)))
        questions = yield* awaitStore(store.readQuestions(id))
      } else log = new TaskLog(log.entries)
      execution.hasSignal = false
      task = yield* awaitStore(store.load(id))
      if (task === undefined) return
    }
  })

/** Lets the observer see a run, if there is one. */
const observed = (
  { observer, store }: EngineContext,
  { attempts, workerId }: Execution,
  task: StoredTask,
  isFirst: boolean,
  run: (trace: RunTrace | undefined) => Effect.Effect<Next>
): Effect.Effect<Next> => {
  const { caller: { traceparent }, status } = task
  return observer === undefined
    ? run(undefined)
    : Effect.flatMap(store.clock.now, (now) =>
      observer.run({
        ...{ ...task, ageMs: now - task.createdAt, traceparent, worker: workerId, lostWorkers: attempts },
        isFirst: isFirst && status !== "cancelled"
      }, run))
}

/**
 * Gives up a task whose workers have died too often while they ran it. Its log records that, and later runs only
 * compensate. Returns whether to run it: a task that is given up again, while it compensates, ends without the rest.
 */
const giveUp = (engine: EngineContext, task: StoredTask, log: TaskLog, attempts: number): Effect.Effect<boolean> =>
  Effect.gen(function*() {
    if (log.givenUpAfter !== undefined) {
      yield* Effect.logError(
        `The compensations of a task were given up: ${attempts} workers have ended while they ran them`
      )
      yield* task.status === "cancelled" ? settle(engine, task, log) : finishGivenUp(engine, task, log)
      return false
    }
    yield* Effect.logError(givenUpMessage(attempts))
    const at = yield* engine.store.clock.now
    const plain = { attempt: 1, value: null, startedAt: undefined }
    const entry: LogEntry = { ...plain, seq: log.nextSeq, kind: "giveUp", name: String(attempts), at }
    const result = yield* awaitStore(engine.store.append(task.id, entry, true, log.lastAt))
    if (result === "appended") log.add(entry)
    return result === "appended"
  }).pipe(Effect.annotateLogs(logAnnotations(task)))

const givenUpMessage = (attempts: number) => `The task was given up: ${attempts} workers have ended while they ran it`

/** Stores the failure of a task that was given up. */
const finishGivenUp = ({ store }: EngineContext, { id }: StoredTask, log: TaskLog): Effect.Effect<boolean> => {
  const error = { code: -32603, message: givenUpMessage(log.givenUpAfter ?? 0) }
  return awaitStore(store.finish(id, { status: "failed", outcome: { _tag: "Error", error }, isGivenUp: true }, log))
}

/** Waits a moment for a handler: a process adds its handlers one after the other. */
const waitForHandler = (engine: EngineContext, task: StoredTask): Effect.Effect<FoundHandler | undefined> =>
  Effect.flatMap(
    Effect.raceFirst(Effect.as(engine.handlers.changed, true), Effect.as(Effect.sleep(handlerWaitMs), false)),
    (hasChanged) => {
      const found = engine.handlers.find(task.tool)
      return found !== undefined || !hasChanged ? Effect.succeed(found) : waitForHandler(engine, task)
    }
  )

/** Ends the claim of a task for some milliseconds. */
const releaseFor = ({ store }: EngineContext, { id, workerId }: Execution, pause: number): Effect.Effect<unknown> =>
  Effect.flatMap(store.clock.now, (now) => awaitStore(store.release(id, workerId, now + pause)))

/** Ends the claim of a task without a handler. Its next check comes later. */
const releaseUntilHandled = Effect.fnUntraced(function*(
  engine: EngineContext,
  execution: Execution,
  { id, waitsForWorker }: StoredTask
): Effect.fn.Return<Next> {
  const { handlers, store } = engine
  if (handlers.isEmpty) return "release"
  const checks = handlers.noteMissingHandler(id)
  if (checks === 0 && !waitsForWorker) yield* awaitStore(store.setWaitsForWorker(id, true))
  yield* releaseFor(engine, execution, Backoff.delay(handlerPauses, checks + 1))
  return "done"
})

/** Ends the claim of a task that this worker cannot read: another worker may have its encryption key. */
const releaseUntilKey = (engine: EngineContext, execution: Execution, error: TaskError): Effect.Effect<undefined> =>
  Effect.gen(function*() {
    if (engine.handlers.noteMissingHandler(execution.id) === 0) {
      yield* Effect.logError("waiting for the encryption key of a task", error)
    }
    yield* releaseFor(engine, execution, handlerPauses.maxDelay)
    return undefined
  })

/**
 * Stops a task whose code has changed, until other handlers are added, and at growing intervals: another worker may have
 * the code that the task has run with. Its log has the reason once, for an operator.
 */
const releaseUntilCode = Effect.fnUntraced(function*(
  { alerts, codeChanges, handlers, store }: EngineContext,
  { hasSignal, id, workerId }: Execution,
  { pool, tool }: StoredTask,
  log: TaskLog,
  reason: string
): Effect.fn.Return<Next> {
  handlers.noteMissingHandler(id)
  if (codeChanges.stopsOf(id) === 0) yield* Effect.logError(`task ${tool} stops, because ${reason}`)
  const stopped: EventKey = { kind: "stopped", name: truncateLine(reason), attempt: 1 }
  if (log.find(stopped) === undefined) {
    const entry = { ...stopped, seq: log.nextSeq, value: null, startedAt: undefined, at: yield* store.clock.now }
    // An operator may have settled it in between.
    if ((yield* awaitStore(store.append(id, entry, true, log.lastAt))) !== "appended") return "reload"
    alerts?.report({ _tag: "NeedsAttention", task: { id, tool, pool }, message: reason })
  }
  yield* awaitStore(store.setWaitsForWorker(id, "code"))
  const pause = codeChanges.noteStop(id)
  // A cancellation that came during the run is not delayed.
  const wakeAt = hasSignal ? undefined : (yield* store.clock.now) + pause
  yield* awaitStore(store.release(id, workerId, wakeAt))
  return "done" as const
})

/** Runs the handler once, from its beginning. */
const runOnce = (
  engine: EngineContext,
  execution: Execution,
  { log, questions, task }: { readonly log: TaskLog; readonly questions: Questions; readonly task: StoredTask },
  { handler, handlers }: FoundHandler
) =>
(trace: RunTrace | undefined): Effect.Effect<Next> =>
  Effect.scoped(Effect.gen(function*() {
    const { codeChanges, store } = engine
    const stop = (reason: string) => releaseUntilCode(engine, execution, task, log, reason)
    const isCollecting = task.status === "cancelled" || log.givenUpAfter !== undefined
    if (!handler.durable && log.isOfDurable && !(isCollecting && log.isToSettle)) {
      // It has no steps, so that it would do everything again and could not compensate.
      return yield* stop("its tool is a plain one here: it continues with a handler of Task.layer")
    }
    const hasWaited = engine.handlers.stopWaiting(task.id)
    const stopCount = codeChanges.stopsOf(task.id)
    if (isCollecting && !handler.durable) return yield* endUncompensated(engine, task, log)
    // A task that only compensates waits for other code until it is settled: the sweeper leaves it alone.
    if (stopCount === 0 && !isCollecting && (hasWaited || task.waitsForWorker)) {
      yield* awaitStore(store.setWaitsForWorker(task.id, false))
    }
    const context = yield* Effect.context<never>()
    const scope = yield* Effect.scope
    const { durable } = handler
    const run = new Run({
      ...{
        engine,
        execution,
        task,
        log,
        ...questions,
        stops: isCollecting ? Math.min(stopCount, maxPatientStops) : stopCount,
        trace,
        context,
        scope,
        handlers,
        durable,
        isCollecting
      }
    })
    execution.run = run
    run.hasChildren = !execution.isFirst || log.continuation > 0
    if (execution.hasSignal) yield* run.fork(run.refresh)
    engine.handlers.activeRuns.add(run)
    const next = yield* Effect.ensuring(
      isCollecting ? collect(run, handler) : runForward(run, handler),
      Effect.sync(() => {
        engine.handlers.activeRuns.delete(run)
        trace?.conclude(run.ending ?? (isCollecting ? "compensated" : "ended"))
      })
    )
    return run.stopReason === undefined ? next : yield* stop(run.stopReason)
  }))

const settle = (engine: EngineContext, { id }: StoredTask, log: TaskLog): Effect.Effect<Next> =>
  Effect.map(awaitStore(engine.store.settle(id, log)), (isSettled) => isSettled ? "done" : "reload")

/** Ends a task that is cancelled or given up, and has nothing to compensate. */
const endUncompensated = (engine: EngineContext, task: StoredTask, log: TaskLog): Effect.Effect<Next> =>
  task.status === "cancelled"
    ? settle(engine, task, log)
    : Effect.map(finishGivenUp(engine, task, log), (isFinished) => isFinished ? "done" : "reload")

/** The action after a run that has ended before its handler. */
const nextOf = (run: Run): Next => {
  switch (run.ending) {
    case "suspended":
    case "stopped":
    case "changed":
      return "done"
    case "lost":
    case "continued":
      return "reload"
    default:
      return "again"
  }
}

/** Runs the handler to its end and stores its outcome. */
const runForward = (run: Run, handler: FoundHandler["handler"]): Effect.Effect<Next> =>
  Effect.flatMap(run.supervise(callHandler(run, handler)), (exit): Effect.Effect<Next> => {
    // The result of a handler that has ended counts, also if the run was to end. Compensations are left to the next run.
    if (Exit.isSuccess(exit)) {
      return run.mayUndo || !hasFailed(exit.value)
        ? conclude(run, handler, exit.value, hasDeclined(run))
        : Effect.succeed(nextOf(run))
    }
    if (run.ending !== undefined) return Effect.succeed(nextOf(run))
    return Effect.flatMap(defectOutcome(run, exit.cause), (outcome) => conclude(run, handler, outcome))
  })

/** Compensates a failed task, and stores the outcome. `wasDeclined`: a failure is that of a person who declined. */
const conclude = (
  run: Run,
  handler: FoundHandler["handler"],
  outcome: Outcome,
  wasDeclined = false
): Effect.Effect<Next> =>
  Effect.gen(function*() {
    const { engine, log, task } = run
    const { store } = engine
    const stopped = hasFailed(outcome) ? yield* stopUnreached(run) : undefined
    if (stopped !== undefined) return stopped
    if (run.hasChildren && run.undoReason === undefined) yield* cancelChildren(store, task.id)
    if (hasFailed(outcome) && run.compensations.length > 0 && run.undoReason === undefined) {
      // A cancellation that came before the failure is the reason, unless an earlier run has begun to compensate.
      const signals = log.undoReason === undefined ? yield* awaitStore(store.readSignals(task.id)) : undefined
      if (signals?.isCancelled === true) return yield* afterEnd(run, handler)
      run.ending = undefined
      const undone = yield* run.supervise(undoAll(run, "failed"))
      if (Exit.isFailure(undone)) return nextOf(run)
    }
    yield* run.progress.flush
    engine.codeChanges.noteProgress(task.id)
    const isDeclined = wasDeclined && isErrorResult(outcome)
    const retried = hasFailed(outcome) && !isDeclined ? yield* retryTask(run, handler, outcome) : "ended"
    if (retried !== "ended") return retried === "begun" ? "done" : yield* afterEnd(run, handler)
    if (log.isReplay && !hasFailed(outcome)) yield* engine.codeChanges.reportUnreached(task.id, log.unreached)
    const status = outcome._tag === "Result" ? "completed" : "failed"
    const finished = yield* Effect.catchDefect(
      awaitStore(store.finish(task.id, { status, outcome, isDeclined }, log)),
      (defect) => isPermanent(defect) ? Effect.succeed(defect) : Effect.die(defect)
    )
    // A handler that returns a value without a JSON form has a defect.
    if (finished !== true && finished !== false) {
      return yield* conclude(run, handler, yield* defectOutcome(run, Cause.die(finished)))
    }
    if (!finished) return yield* afterEnd(run, handler)
    run.trace?.conclude(isDeclined ? "declined" : isErrorResult(outcome) ? "tool_error" : status)
    // "Log task creation, completion, and retrieval events": creation and retrieval are requests, for an audit log.
    yield* Effect.logDebug("task ended:", outcome._tag === "Error" ? "failed" : "completed")
    return "done"
  })

/** The handler has ended, and its outcome cannot be stored: the task has ended, or its log does not end there. */
const afterEnd = (run: Run, handler: FoundHandler["handler"]): Effect.Effect<Next> =>
  Effect.flatMap(awaitStore(run.engine.store.load(run.task.id)), (now): Effect.Effect<Next> => {
    if (now === undefined) return Effect.succeed("done")
    if (!isFinal(now)) return Effect.succeed("reload")
    if (now.status !== "cancelled") return Effect.succeed("done")
    if (!run.mayUndo) return Effect.succeed(nextOf(run))
    // A task that was cancelled while it compensated has compensated.
    return handler.durable && run.undoReason === undefined ? undoCancelled(run) : settle(run.engine, run.task, run.log)
  })

/** Runs the compensations of a cancelled task, and settles it. */
const undoCancelled = Effect.fnUntraced(function*(run: Run): Effect.fn.Return<Next> {
  const stopped = yield* stopUnreached(run)
  if (stopped !== undefined) return stopped
  yield* run.engine.codeChanges.reportUnreached(run.task.id, run.log.unreached)
  run.ending = undefined
  const undone = yield* run.supervise(undoAll(run, "cancelled"))
  return Exit.isSuccess(undone) ? yield* settle(run.engine, run.task, run.log) : nextOf(run)
})

/** Runs the compensations of a task that was given up, and stores its failure. */
const undoGivenUp = Effect.fnUntraced(function*(run: Run): Effect.fn.Return<Next> {
  const { engine, log, task } = run
  const signals = yield* awaitStore(engine.store.readSignals(task.id))
  // Compensations have the reason of a cancellation that came before them.
  if (signals?.isCancelled === true && log.undoReason === undefined) return "again"
  const stopped = yield* stopUnreached(run)
  if (stopped !== undefined) return stopped
  yield* engine.codeChanges.reportUnreached(task.id, log.unreached)
  run.ending = undefined
  const undone = yield* run.supervise(undoAll(run, "failed"))
  if (Exit.isFailure(undone)) return nextOf(run)
  const finished = yield* finishGivenUp(engine, task, log)
  return finished ? "done" : yield* settle(engine, task, log)
})

/** The steps that earlier runs have recorded as done, and that this run has not reached. */
export const unreachedSteps = (run: Run): Effect.Effect<ReadonlyArray<LogEntry>> =>
  Effect.suspend(() => Effect.filter(run.log.unreached, (entry) => hasActed(run, entry)))

/**
 * The action in place of the compensations, if earlier runs have recorded that steps are done which this run has not
 * reached: the task waits for code that reaches them, which alone knows their compensations. No other one runs before,
 * so that their order stays. An operator can settle the task without them.
 */
const stopUnreached = (run: Run): Effect.Effect<Next | undefined> =>
  Effect.suspend(() => {
    const { ending, log, unstarted } = run
    if (!log.isReplay || log.isToSettle) return Effect.undefined
    return Effect.map(unreachedSteps(run), (steps): Next | undefined => {
      if (steps.length === 0) return undefined
      // The handler was interrupted before it could reach them.
      if (ending === "cancelled") return "again"
      const part = unstarted.at(-1)
      const place = part !== undefined
        ? `stops at ${describeEvent(part)}, which has not begun`
        : ending === undefined
        ? "ends without it"
        : "waits before it"
      run.stopReason =
        `its code has changed: it does not reach what is recorded as done (${describeEvents(steps)}), and ` +
        `${place}; it compensates with code that reaches it, or without that after "skein tasks settle"`
      run.ending ??= "changed"
      return "done"
    })
  })

/**
 * Replays the handler of a task that is cancelled or given up, to the point that it had reached, and compensates. No
 * step starts again, and code between two steps has `Run.gapMs`.
 */
const collect = Effect.fnUntraced(function*(run: Run, handler: FoundHandler["handler"]): Effect.fn.Return<Next> {
  yield* replayToStall(run, handler)
  if (!run.mayUndo && run.ending !== "suspended") return nextOf(run)
  return yield* run.task.status === "cancelled" ? undoCancelled(run) : undoGivenUp(run)
})

/** Replays a handler that starts no step, until it ends or makes no progress for `patience` milliseconds. */
export const replayToStall = (
  run: Run,
  handler: FoundHandler["handler"],
  patience = run.gapMs
): Effect.Effect<Exit.Exit<Outcome>> =>
  Effect.suspend(() => {
    const stalled = Effect.gen(function*() {
      let knownEvents = -1
      // After `gapMs` the run skips events that it does not reach, and may reach others.
      const maxIdleMs = () => run.log.hasPending ? 2 * run.gapMs : patience
      for (let idleMs = 0; idleMs < maxIdleMs(); idleMs += replayCheckMs) {
        if (run.observations.isBusy || run.isInSection || run.knownEvents !== knownEvents) idleMs = 0
        knownEvents = run.knownEvents
        yield* Effect.sleep(replayCheckMs)
      }
      run.end("suspended")
    })
    return Effect.raceFirst(run.supervise(callHandler(run, handler)), Effect.andThen(stalled, Effect.never))
  })

const callHandler = (run: Run, handler: FoundHandler["handler"]): Effect.Effect<Outcome> =>
  Effect.suspend(() => handler.run(makeTaskRequest(run, makeCurrentTask(run))))

/** Whether the last event that the handler has observed is the answer of a person who declined or dismissed a question. */
const hasDeclined = ({ answers, log }: Run): boolean => {
  let last: EventKey | undefined
  for (const entry of log.entries) {
    if (entry.kind === "undo") break
    if (!isUnobserved(entry) && entry.kind !== "emit") last = entry
  }
  const answer = last?.kind === "answer" ? answers.get(last.name) : undefined
  return isObject(answer) && (answer["action"] === "decline" || answer["action"] === "cancel")
}

const hasFailed = (outcome: Outcome): boolean => outcome._tag === "Error" || isErrorResult(outcome)

/** The outcome of a handler that has died. The log has the cause; the client receives only a reference. */
const defectOutcome = (run: Run, cause: Cause.Cause<never>): Effect.Effect<Outcome> =>
  Effect.suspend(() => {
    const reference = globalThis.crypto.randomUUID()
    const error = McpError.toErrorObject(McpError.internal(reference), run.task.caller.revision)
    return Effect.logError(`task ${run.task.tool}: defect ${reference}`, cause).pipe(
      Effect.as<Outcome>({ _tag: "Error", error })
    )
  })
