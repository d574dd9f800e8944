/**
 * Durable timers and `Step.sleep`.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as DurableClock from "effect/workflow/DurableClock"
import { WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { escape } from "../store/storedText.ts"
import { retryStoreDefects } from "./activities.ts"
import { maxMemoryPauseMs } from "./engineContext.ts"
import { claimName, misplacedInStep, type Run } from "./run.ts"
import { TaskRun } from "./workflow.ts"

/** The longest duration of a timer in milliseconds, in place of longer ones: its end must be a valid date. */
const maxTimerMs = 8e15

/** The name of the deferred of a timer. */
export const timerName = (name: string): string => `DurableClock/${escape(name)}`

/** The durable timer of the workflow engine with this name in an execution. It fires once. */
export const timerOf = (
  run: Pick<Run, "engine" | "instance" | "executionId">,
  name: string,
  milliseconds: number
) => {
  const clock = DurableClock.make({ name: escape(name), duration: Math.min(milliseconds, maxTimerMs) })
  const { rank, workflowEngine } = run.engine
  return {
    /** The deferred that is done when the timer fires. */
    name: timerName(name),
    hasFired: Effect.map(
      Effect.provideService(
        retryStoreDefects(workflowEngine.deferredResult(clock.deferred)),
        WorkflowInstance,
        run.instance
      ),
      Option.isSome
    ),
    /** The position among the events of the execution. */
    rank: rank(run.executionId, clock.deferred.name),
    /** Starts the timer unless it has started. */
    set: retryStoreDefects(workflowEngine.scheduleClock(TaskRun, { executionId: run.executionId, clock }))
  }
}

/** The check of a sleep that is over. */
const elapsed = Effect.succeed(Effect.void)

/**
 * Sleeps durably, under a name that is unique in the task. A sleep that ended in an earlier run still waits for its
 * turn: it may have lost a race, which it must lose again.
 */
export const sleepDurably = (run: Run, name: string, milliseconds: number): Effect.Effect<void> => {
  const timer = timerOf(run, name, milliseconds)
  const events = { events: [timer.name], rank: timer.rank }
  return Effect.flatMap(
    run.preventSuspension(timer.hasFired),
    (hasFired) =>
      hasFired ? run.suspension.wait({ ...events, deferreds: [], check: elapsed }) : Effect.andThen(
        run.preventSuspension(timer.set),
        run.suspension.wait({
          ...events,
          deferreds: [timer.name],
          check: Effect.map(timer.hasFired, (hasFired) => hasFired ? Effect.void : undefined)
        })
      )
  )
}

/** Implements `Step.sleep`. */
export const sleep = (run: Run, name: string, duration: Duration.Input): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const problem = misplacedInStep(fiber, `sleep "${name}"`) ?? claimName(run, "sleep", name)
    if (problem !== undefined) return problem
    const milliseconds = Math.ceil(Duration.toMillis(duration))
    if (milliseconds <= 0) return Effect.void
    if (run.undoReason !== undefined) return run.preventSuspension(Effect.sleep(milliseconds))
    return milliseconds > maxMemoryPauseMs
      ? sleepDurably(run, `sleep/${name}`, milliseconds)
      : run.record(
        { name: `sleep/${name}`, attempt: 1, decode: () => Effect.void },
        (restore) => restore(Effect.as(Effect.sleep(milliseconds), ""))
      )
  })
