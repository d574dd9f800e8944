/**
 * The functions of the steps of an async handler: what they call of the context of the handler.
 *
 * Such a call is an effect of the handler, in a fiber of its own, which does not know that the step runs.
 */
import * as Effect from "effect/Effect"
import { AsyncLocalStorage } from "node:async_hooks"
import type { CurrentTask } from "../../CurrentTask.ts"
import type { TaskError } from "../../TaskError.ts"
import { CurrentStep } from "./placement.ts"

/** A step whose function runs. */
export interface StepFunction {
  readonly name: string
  readonly isTransaction: boolean
}

const current = new AsyncLocalStorage<StepFunction>()

/** Calls the function of a step. */
export const callInStep = <A>(step: StepFunction, call: () => A): A => current.run(step, call)

/** The `emit` of the context. Must be called in the call of the author. */
export const emit = (task: CurrentTask["Service"], value: unknown): Effect.Effect<void, TaskError> => {
  const step = current.getStore()
  if (step === undefined) return task.emit(value)
  // The connection of the transaction is not free: the task would wait for itself.
  return step.isTransaction
    ? Effect.die(new Error(`emit is not allowed inside the transaction "${step.name}": move it before or after`))
    : Effect.provideService(task.emit(value), CurrentStep, step.name)
}
