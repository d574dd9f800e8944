/**
 * Interrupts the execution of a cancelled task.
 *
 * The workflow engine has two ways: a durable signal, which also wakes a suspended execution, and a message that cuts
 * off a running one. If the execution has just been resumed, the message cuts off the run that was about to process the
 * signal, and nothing resumes it again. So the message is only sent to a running execution, and the execution is
 * checked until it has ended.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { interruptSignal, TaskRun } from "./workflow.ts"

type Engine = WorkflowEngine["Service"]

/** The result of an execution; `undefined` while it runs, and if it was never started. */
const resultOf = (engine: Engine, execution: string): Effect.Effect<"Complete" | "Suspended" | undefined> =>
  Effect.map(engine.poll(TaskRun, execution), (result) => Option.getOrUndefined(result)?._tag)

/** Whether the signal is stored. It is stored once, however often it is sent. */
const isInterruptRequested = (engine: Engine, execution: string): Effect.Effect<boolean> =>
  Effect.map(
    Effect.provideService(
      engine.deferredResult(interruptSignal),
      WorkflowInstance,
      WorkflowInstance.initial(TaskRun, execution)
    ),
    Option.isSome
  )

/**
 * Interrupts an execution, or resumes one that was interrupted and is still suspended. Returns whether it has ended.
 */
export const interruptExecution = (engine: Engine, execution: string): Effect.Effect<boolean> =>
  Effect.gen(function*() {
    const result = yield* resultOf(engine, execution)
    if (result === "Complete") return true
    const isRequested = yield* isInterruptRequested(engine, execution)
    if (result === "Suspended") {
      yield* isRequested ? engine.resume(TaskRun, execution) : engine.interrupt(TaskRun, execution)
    } else if (!isRequested) yield* engine.interruptUnsafe(TaskRun, execution)
    return false
  })

/** Milliseconds between the checks of an interrupted execution. After the last one the sweeper checks it. */
const recheckPausesMs = [1000, 2000, 4000, 8000]

/** Checks an interrupted execution until it has ended, and interrupts it again if necessary. */
export const ensureInterrupted = (engine: Engine, execution: string): Effect.Effect<void> =>
  Effect.gen(function*() {
    for (const [check, pause] of recheckPausesMs.entries()) {
      yield* Effect.sleep(pause)
      if (yield* interruptExecution(engine, execution)) return
      // Another event had resumed the execution when the signal was sent, and it has been running since.
      if (check === 1 && (yield* resultOf(engine, execution)) === undefined) {
        yield* engine.interruptUnsafe(TaskRun, execution)
      }
    }
  })
