/**
 * The execution of a task: the body of its workflow, from the stored task to its end.
 *
 * The stored status decides. A task that is completed or failed needs no execution. For a cancelled task the execution
 * replays a durable handler up to the point that it had reached, because only the handler knows its compensations, and
 * then runs these. The workflow engine is interrupted as well, so no step starts again meanwhile.
 */
import * as McpError from "@skein/protocol/McpError"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as RpcSchema from "effect/rpc/RpcSchema"
import type * as Scope from "effect/Scope"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import { WorkflowInstance } from "effect/workflow/WorkflowEngine"
import type { UndoReason } from "../../CurrentTask.ts"
import type { Outcome } from "../../TaskState.ts"
import type { StoredTask } from "../store/store.ts"
import { isPermanent } from "../store/storedText.ts"
import { isErrorResult, shortTaskId } from "../text.ts"
import { makeCurrentTask, makeTaskRequest } from "./currentTask.ts"
import { awaitStore, type EngineContext, moveCheckMs } from "./engineContext.ts"
import { type EngineServices, Run } from "./run.ts"
import { timerOf } from "./sleep.ts"
import { maxGapMs } from "./suspension.ts"
import type { FoundHandler } from "./workers.ts"
import { abandonRun, interruptSignal } from "./workflow.ts"

type ExecutionEffect<A> = Effect.Effect<A, never, EngineServices | Scope.Scope>

/**
 * Milliseconds that an execution waits in memory for a handler. A process without any handlers is starting or ending,
 * so the wait is longer there.
 */
const handlerWaitMs = { withoutHandlers: 30_000, withHandlers: 500 }

/** Milliseconds between two checks for a handler while the execution is suspended: they double, up to the longest. */
const handlerPollMs = { first: 1000, longest: 15_000 }

/** Milliseconds between two checks whether the replay of a cancelled task makes progress. */
const replayCheckMs = 100

/** Whether a task has nothing left to run or to compensate. */
const isFinished = ({ settled, status }: StoredTask): boolean =>
  status === "completed" || status === "failed" || (status === "cancelled" && settled)

/** Runs a task until it ends, is suspended, or continues in another process. */
export const runExecution = (engine: EngineContext, taskId: string, executionId: string): ExecutionEffect<void> =>
  Effect.flatMap(awaitStore(engine.store.load(taskId)), (task) => {
    if (task === undefined || isFinished(task)) return Effect.void
    const run = Effect.flatMap(WorkflowInstance, (instance) => runWithHandler(engine, task, executionId, instance))
    return Effect.annotateLogs(
      task.status === "cancelled" ? Effect.andThen(DurableDeferred.await(interruptSignal), run) : run,
      logAnnotations(task)
    )
  })

/** The annotations of all log lines of a task, those of its handler included. */
const logAnnotations = ({ id, owner, tool }: StoredTask): Record<string, unknown> => ({
  task: shortTaskId(id),
  tool,
  ...(owner === null ? undefined : { owner })
})

const runWithHandler = (
  engine: EngineContext,
  task: StoredTask,
  executionId: string,
  instance: WorkflowInstance["Service"]
): ExecutionEffect<void> =>
  Effect.gen(function*() {
    const { store, workers } = engine
    const context = yield* Effect.context<EngineServices>()
    const scope = yield* Effect.scope
    const isCancelled = task.status === "cancelled"
    while (true) {
      const found = workers.find(task.tool) ?? (yield* waitForHandler(engine, task, executionId, instance, isCancelled))
      const hasWaited = workers.stopWaiting(executionId)
      if (found === undefined) return
      if (isCancelled && !found.handler.durable) return yield* awaitStore(store.settle(task.id))
      if (hasWaited || task.waitsForWorker) yield* awaitStore(store.setWaitsForWorker(task.id, false))
      const { handler: { durable }, handlers } = found
      const run = new Run({ engine, task, executionId, instance, context, scope, handlers, durable })
      workers.activeRuns.add(run)
      const wasReleased = yield* Effect.ensuring(
        isCancelled ? replayCancelled(run, found) : runForward(run, found),
        Effect.sync(() => workers.activeRuns.delete(run))
      )
      if (!wasReleased) return
    }
  })

/**
 * Waits for a handler: first in memory, then suspended, with checks that become rarer. It also ends when a worker adds
 * handlers in this process. The execution of a cancelled task must not be suspended: the workflow engine would end it,
 * and nothing would be compensated. It waits in memory until the task is deleted.
 */
const waitForHandler = (
  engine: EngineContext,
  task: StoredTask,
  executionId: string,
  instance: WorkflowInstance["Service"],
  isCancelled: boolean
): ExecutionEffect<FoundHandler | undefined> =>
  Effect.gen(function*() {
    const { closing, store, workers } = engine
    while (true) {
      const milliseconds = isCancelled
        ? handlerPollMs.longest
        : workers.hasNoHandlers
        ? handlerWaitMs.withoutHandlers
        : handlerWaitMs.withHandlers
      const hasChanged = yield* Effect.raceFirst(
        Effect.as(workers.changed, true),
        Effect.raceFirst(closing, Effect.as(Effect.sleep(milliseconds), false))
      )
      const found = workers.find(task.tool)
      if (found !== undefined) return found
      if (hasChanged) continue
      if (isCancelled) {
        const now = yield* awaitStore(store.load(task.id))
        if (now === undefined || isFinished(now)) return undefined
        continue
      }
      const checks = workers.noteMissingHandler(executionId)
      if (checks === 0) yield* awaitStore(store.setWaitsForWorker(task.id, true))
      const now = yield* Clock.currentTimeMillis
      const pause = Math.min(handlerPollMs.longest, handlerPollMs.first * 2 ** checks)
      const timer = timerOf({ engine, instance, executionId }, `handler/${now}`, pause)
      instance.awaitedDeferreds.set(timer.name, 1)
      yield* timer.set
      return yield* suspend(instance)
    }
  })

const suspend = (instance: WorkflowInstance["Service"]): Effect.Effect<never> =>
  Effect.suspend(() => {
    instance.suspended = true
    return Effect.interrupt
  })

/** Suspends a run that has reached the point where it waits. */
const suspendAtEnd = (run: Run): Effect.Effect<never> => {
  run.reachedEnd = true
  return suspend(run.instance)
}

/**
 * Runs the handler to its end and stores its outcome. Returns `true` if another worker of this process must run it
 * again.
 */
const runForward = (run: Run, { handler }: FoundHandler): ExecutionEffect<boolean> =>
  Effect.gen(function*() {
    const { instance } = run
    yield* undoWhenCancelled(run)
    const exit = yield* run.supervise(callHandler(run, handler))
    if (instance.suspended && Exit.isFailure(exit)) return yield* suspendAtEnd(run)
    if (Exit.isSuccess(exit)) return yield* conclude(run, handler, exit.value)
    if (run.isMoved) return yield* abandonRun
    if (run.isReleased) return true
    return yield* conclude(run, handler, yield* defectOutcome(run, exit.cause))
  })

/** Compensates a failed task, and stores the outcome. */
const conclude = (run: Run, handler: FoundHandler["handler"], outcome: Outcome): ExecutionEffect<boolean> =>
  Effect.gen(function*() {
    const { engine: { settleSoon, store }, instance, task } = run
    if (hasFailed(outcome) && run.compensations.length > 0 && run.undoReason === undefined) {
      const undone = yield* run.supervise(undoAll(run, "failed"))
      if (Exit.isFailure(undone)) {
        if (run.isMoved) return yield* abandonRun
        return run.isReleased ? true : yield* suspend(instance)
      }
    }
    yield* run.progress.flush
    const finished = yield* Effect.catchDefect(
      awaitStore(store.finish(task.id, { status: outcome._tag === "Result" ? "completed" : "failed", outcome })),
      (defect) => isPermanent(defect) ? Effect.succeed(defect) : Effect.die(defect)
    )
    // A handler that returns a value without a JSON form has a defect.
    if (finished !== true && finished !== false) {
      return yield* conclude(run, handler, yield* defectOutcome(run, Cause.die(finished)))
    }
    if (finished) {
      settleSoon(task.id)
      // "Log task creation, completion, and retrieval events": creation and retrieval are requests, for an audit log.
      yield* Effect.logDebug("task ended:", outcome._tag === "Error" ? "failed" : "completed")
      return false
    }
    const now = yield* awaitStore(store.load(task.id))
    if (now?.status !== "cancelled") return false
    if (!handler.durable) {
      yield* awaitStore(store.settle(task.id))
      return false
    }
    // The task was cancelled after its handler had ended: everything is compensated.
    yield* DurableDeferred.await(interruptSignal)
    return yield* suspendAtEnd(run)
  })

/**
 * Replays the handler of a cancelled task up to the point that it had reached. The workflow engine then runs the
 * finalizer of `undoWhenCancelled`. No step starts again, and code between two steps has `maxGapMs`.
 */
const replayCancelled = (run: Run, { handler }: FoundHandler): ExecutionEffect<boolean> =>
  Effect.gen(function*() {
    yield* undoWhenCancelled(run)
    const stalled = Effect.gen(function*() {
      let knownResults = -1
      for (let idleMs = 0; idleMs < maxGapMs; idleMs += replayCheckMs) {
        // The look-up of a step's result may take a while.
        const { activityState: { count } } = run.instance
        if (run.isBusy || run.suspension.hasUndelivered || count > 0 || run.knownResults !== knownResults) idleMs = 0
        knownResults = run.knownResults
        yield* Effect.sleep(replayCheckMs)
      }
    })
    yield* Effect.raceFirst(run.supervise(callHandler(run, handler)), stalled)
    return run.isReleased ? true : yield* suspendAtEnd(run)
  })

const callHandler = (run: Run, handler: FoundHandler["handler"]): Effect.Effect<Outcome> =>
  Effect.suspend(() => handler.run(makeTaskRequest(run, makeCurrentTask(run))))

/**
 * Adds the finalizer that runs the compensations of a cancelled task; the workflow engine calls it at the end of the
 * execution. A run is also interrupted when its worker stops, and then continues elsewhere: only `instance.interrupted`
 * marks a cancellation. A run that is stopped and cancelled may not know all compensations yet. It leaves them to the
 * sweeper, which starts the execution again.
 */
const undoWhenCancelled = (run: Run): Effect.Effect<void, never, EngineServices> =>
  Workflow.addFinalizer((exit) =>
    Exit.isFailure(exit) && run.instance.interrupted && run.reachedEnd
      // The task is settled before the execution ends: if the execution of an unsettled task has ended, the sweeper
      // assumes that the task has not compensated.
      ? Effect.andThen(whileOwned(run, undoAll(run, "cancelled")), awaitStore(run.engine.store.settle(run.task.id)))
      : Effect.void
  )

/**
 * Runs the compensations for as long as this process owns the execution. The workflow engine does not interrupt
 * finalizers: it would wait for a step that must run in another process, or again in this one, and that step would wait
 * for the end of this run. So this checks whether the run must end; another process or the next run then starts the
 * remaining compensations. An interruption by a client only means that the task is cancelled.
 */
const whileOwned = (run: Run, effect: Effect.Effect<void>): Effect.Effect<void> =>
  Effect.gen(function*() {
    const { engine, executionId } = run
    const fiber = yield* Effect.forkChild(Effect.interruptible(effect))
    const ended = Effect.interruptible(Effect.as(Fiber.await(fiber), true))
    const pause = Effect.interruptible(Effect.as(Effect.sleep(moveCheckMs), false))
    while (!(yield* Effect.raceFirst(ended, pause))) {
      const pending = yield* Effect.exit(Effect.interruptible(Effect.void))
      if (!engine.ownsExecution(executionId) || (Exit.isFailure(pending) && !isClientInterrupt(pending.cause))) {
        yield* run.interruptFiber(fiber)
      }
    }
    return yield* Fiber.join(fiber)
  })

/** Whether only clients have interrupted. */
const isClientInterrupt = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.every((reason) => reason.annotations.has(RpcSchema.ClientAbort.key))

/** Runs the compensations, the last one first. A failed compensation is logged, and the others run. */
const undoAll = (run: Run, reason: UndoReason): Effect.Effect<void> =>
  Effect.suspend(() => {
    run.undoReason = reason
    return Effect.forEach(run.compensations.toReversed(), (compensation) =>
      Effect.catchCause(Effect.asVoid(compensation(reason)), (cause) =>
        Cause.hasInterruptsOnly(cause) && (reason === "failed" ? run.isEnding : isHandedOver(run, cause))
          ? Effect.interrupt
          : Effect.logError(`task ${run.task.tool}: a compensation failed`, cause)), { discard: true })
  })

/**
 * Whether another run continues the compensations of a cancelled task; otherwise a compensation has interrupted itself
 * and has failed.
 */
const isHandedOver = ({ instance, isReleased }: Run, cause: Cause.Cause<unknown>): boolean =>
  isReleased || instance.suspended || instance.abandoned ||
  cause.reasons.some((reason) => reason.annotations.has(ClusterSchema.Abandon.key))

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
