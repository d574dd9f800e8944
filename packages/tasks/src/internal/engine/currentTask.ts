/**
 * The services that a run provides to its handler: the task for `Step`, and the request for everything else.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Compensation, CurrentTask, UndoReason } from "../../CurrentTask.ts"
import type { TaskError } from "../../TaskError.ts"
import * as children from "./children.ts"
import { awaitEvent } from "./events.ts"
import { emit } from "./output.ts"
import { ask } from "./questions.ts"
import { type RunningTask, TaskRequestContext } from "./taskRequest.ts"
import { awaitStore, isTemporary } from "./engineContext.ts"
import { truncateLine } from "../base/text.ts"
import { patched } from "./patches.ts"
import { CurrentBranches, CurrentStep, misplacedInStep, misplacedWait } from "./placement.ts"
import { neverEnds, replayEnds, type Run } from "./run.ts"
import { branch, nonCancellable } from "./sections.ts"
import { sleep } from "./sleep.ts"
import { once, step } from "./steps.ts"

/** The `CurrentTask` of a run. */
export const makeCurrentTask = (run: Run): CurrentTask["Service"] => ({
  id: run.task.id,
  setStatusMessage: (message) => setStatusMessage(run, message),
  label: (name, value) => label(run, name, value),
  emit: (value) => emit(run, value),
  step: (name, options, execute, undo) =>
    step(run, name, options, execute, undo && ((value) => compensate(run, (reason) => undo(value, reason)))),
  heartbeat: (details) => inStep(run, "Step.heartbeat", (step) => run.heartbeats.report(step, details)),
  lastHeartbeat: inStep(run, "Step.lastHeartbeat", (step) => run.heartbeats.last(step)),
  sleep: (name, duration) => sleep(run, name, duration),
  awaitEvent: (name, options) => awaitEvent(run, name, options),
  compensate: (undo) => compensate(run, undo),
  patched: (name) => patched(run, name),
  continueWith: (args) => continueWith(run, args),
  nonCancellable: (name, effect) => nonCancellable(run, name, effect),
  branch: (name, effect) => branch(run, name, effect),
  query: (name, answer) =>
    Effect.withFiber((fiber) =>
      misplacedInStep(fiber, `Task.query("${name}")`) ?? Effect.sync(() => void run.queries.set(name, answer))
    ),
  start: (name, make, isDetached) => children.start(run, name, make, isDetached),
  join: (name) => children.join(run, name),
  forEach: (name, group) => children.forEach(run, name, group)
})

/** The request of a run. Input requests of its handler become questions of the task. */
export const makeTaskRequest = (run: Run, current: CurrentTask["Service"]): TaskRequestContext => {
  const askTask: RunningTask["ask"] = (method, params, options) => ask(run, method, params, options)
  const request = TaskRequestContext.make(run.task, {
    isCheck: run.isCheck === true,
    current,
    ask: askTask,
    progress: (progress) => run.progress.report(progress)
  })
  const { exchange } = request
  exchange.runningSteps = () => run.executingSteps.values()
  exchange.traceparent = run.task.caller.traceparent
  exchange.round = { ask: askTask, once: (key, effect) => once(run, key, effect) }
  return request
}

/**
 * Sets the status message. Code between steps sets its messages again in each run, so these are counted, and only
 * messages beyond the stored count are written. Messages in steps are not counted. In a step, a failed write is only
 * logged: the step may be a transaction.
 */
const setStatusMessage = (run: Run, text: string): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const message = truncateLine(text)
    const { engine: { store }, task } = run
    if (fiber.getRef(CurrentStep) !== undefined) {
      return Effect.catch(store.setStatusMessage(task.id, message), (error) =>
        Effect.logWarning(`task ${task.tool}: failed to store a status message`, error))
    }
    const count = ++run.statusMessageCount
    return count <= task.statusMessageCount
      ? Effect.void
      : run.preventSuspension(awaitStore(store.setStatusMessage(task.id, message, count)))
  })

/** Runs an effect for the step that the fiber runs in; a defect outside of steps. */
const inStep = <A>(run: Run, part: string, effect: (step: string) => Effect.Effect<A>): Effect.Effect<A> =>
  Effect.withFiber((fiber) => {
    const step = fiber.getRef(CurrentStep)
    return step === undefined || !run.names.has(`step/${step}`)
      ? Effect.die(new Error(`${part} is only allowed inside a step`))
      : effect(step)
  })

/**
 * Sets a label. Code between steps sets it again in each run. Before a run has reached the recorded events, an earlier one
 * has set it, except in a branch, whose events the others may be ahead of.
 */
const label = (run: Run, name: string, value: string): Effect.Effect<void, TaskError> =>
  Effect.withFiber((fiber) => {
    const { engine: { store }, log, task: { id } } = run
    if (run.isCheck === true) return Effect.void
    const stored = store.labels.set(id, name, value)
    if (fiber.getRef(CurrentStep) !== undefined) return stored
    run.noteFiber(fiber)
    if (run.isCollecting || (log.hasPending && !run.hasBranches)) return Effect.void
    return run.preventSuspension(Effect.catchIf(stored, isTemporary, () => awaitStore(stored)))
  })

const compensate = <E, R>(
  run: Run,
  undo: (reason: UndoReason) => Effect.Effect<unknown, E, R>
): Effect.Effect<void, never, R> =>
  Effect.withFiber((fiber) => {
    const problem = misplacedInStep(fiber, "a compensation")
    if (problem !== undefined) return problem
    if (run.passed !== undefined && run.undoReason === undefined) return run.stall(run.passed)
    const context = fiber.context as Context.Context<R>
    const compensation: Compensation = (reason) => Effect.provideContext(Effect.suspend(() => undo(reason)), context)
    run.compensations.push(compensation)
    for (const branch of fiber.getRef(CurrentBranches)) branch.push(compensation)
    return Effect.void
  })

const refused = (problem: string) => Effect.die(new Error(`Task.continueWith is not allowed ${problem}`))

/**
 * Implements `Task.continueWith`. Ends the run, and lets the next one begin with an empty log. The next run does not depend on the
 * result of the store, and reads the state again: the task may have been cancelled, or continued by another worker.
 */
const continueWith = (run: Run, args: JsonObject): Effect.Effect<never> =>
  Effect.withFiber((fiber) => {
    const problem = misplacedWait(fiber, "Task.continueWith")
    if (problem !== undefined) return problem
    if (run.undoReason !== undefined) return refused("in a compensation")
    run.noteFiber(fiber)
    if (run.isCollecting) return run.observe(neverEnds)
    const count = run.compensations.length
    if (count > 0) {
      return refused(
        `while the task has compensations (${count}), which would never run: do work with compensations in another task`
      )
    }
    const { engine: { store }, log, observations, task: { id } } = run
    const stored = Effect.suspend(() => awaitStore(store.continueWith(id, log, args)))
    const continued = Effect.uninterruptibleMask((restore) =>
      observations.inTurn(restore, Effect.map(stored, () => run.end("continued")))
    )
    const ended = Effect.andThen(
      run.preventSuspension(Effect.andThen(run.progress.flush, continued)),
      run.interruptSelf
    )
    // A branch that continues the task must not get ahead of the events of earlier runs.
    return run.hasBranches && log.hasPending ? Effect.andThen(run.observe(replayEnds), ended) : ended
  })
