/**
 * How the execution of a cancelled task is interrupted.
 *
 * The engine is told in two ways: by a signal, which is kept, and wakes an execution that is suspended; and by a message that cuts
 * off one that runs. Of one that has just been woken the message cuts off the run that was to act on the signal, and nobody wakes it
 * again. So the message goes only to one that runs, and whoever interrupts looks after it, until it is over.
 */
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import { type WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { interruption, TaskRun } from "./workflow.ts"

type Engine = WorkflowEngine["Service"]

/** Where an execution stands: without a reply it runs, or was never begun. */
const standing = (engine: Engine, execution: string): Effect.Effect<"Complete" | "Suspended" | undefined> =>
  Effect.map(engine.poll(TaskRun, execution), (result) => Option.getOrUndefined(result)?._tag)

/** Whether the signal is kept. It is so once, whoever sends it again. */
const isSignalled = (engine: Engine, execution: string): Effect.Effect<boolean> =>
  Effect.map(
    Effect.provideService(
      engine.deferredResult(interruption),
      WorkflowInstance,
      WorkflowInstance.initial(TaskRun, execution)
    ),
    Option.isSome
  )

/** Interrupts an execution, or wakes one that was interrupted and sleeps on. Gives whether it is over. */
export const interrupt = (engine: Engine, execution: string): Effect.Effect<boolean> =>
  Effect.gen(function*() {
    const stands = yield* standing(engine, execution)
    if (stands === "Complete") return true
    const signalled = yield* isSignalled(engine, execution)
    if (stands === "Suspended") {
      yield* signalled ? engine.resume(TaskRun, execution) : engine.interrupt(TaskRun, execution)
    } else if (!signalled) yield* engine.interruptUnsafe(TaskRun, execution)
    return false
  })

/** Milliseconds between two looks at what was interrupted. Later on the sweep looks. */
const pauses = [1000, 2000, 4000, 8000]

/** Looks after an execution that was interrupted. */
export const seeThrough = (engine: Engine, execution: string): Effect.Effect<void> =>
  Effect.gen(function*() {
    for (const [look, pause] of pauses.entries()) {
      yield* Effect.sleep(pause)
      if (yield* interrupt(engine, execution)) return
      // Something else had woken it when it was told, and it runs since.
      if (look === 1 && (yield* standing(engine, execution)) === undefined) {
        yield* engine.interruptUnsafe(TaskRun, execution)
      }
    }
  })
