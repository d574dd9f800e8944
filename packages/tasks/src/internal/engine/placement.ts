/**
 * The allowed places of the parts of a task: no step, sleep, question or compensation is in a step, and each name occurs
 * once.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Compensation } from "../../CurrentTask.ts"

/** The name of the step that a fiber runs in; `undefined` between steps. */
export const CurrentStep = Context.Reference<string | undefined>("@skein/tasks/CurrentStep", {
  defaultValue: () => undefined
})

/** Whether a fiber runs in a section that a cancellation waits for. */
export const CurrentSection = Context.Reference<boolean>("@skein/tasks/CurrentSection", { defaultValue: () => false })

/** The compensations of each branch that a fiber runs in: of its own, and of those around it. */
export const CurrentBranches = Context.Reference<ReadonlyArray<Array<Compensation>>>("@skein/tasks/CurrentBranches", {
  defaultValue: () => []
})

/** The names of the parts of the compensation that a fiber runs because its branch is cancelled. */
export const CurrentUndo = Context.Reference<Set<string> | undefined>("@skein/tasks/CurrentUndo", {
  defaultValue: () => undefined
})

/** A defect if the fiber runs in a step; `undefined` elsewhere. `part` names the part of the task that starts. */
export const misplacedInStep = (
  fiber: Fiber.Fiber<unknown, unknown>,
  part: string
): Effect.Effect<never> | undefined => {
  const step = fiber.getRef(CurrentStep)
  return step === undefined
    ? undefined
    : Effect.die(new Error(`${part} is not allowed inside step "${step}": move it before or after the step`))
}

/** A defect if the fiber runs in a step, or in a section, which must come to its end alone. */
export const misplacedWait = (fiber: Fiber.Fiber<unknown, unknown>, part: string): Effect.Effect<never> | undefined =>
  fiber.getRef(CurrentSection)
    ? Effect.die(
      new Error(`${part} is not allowed inside Task.nonCancellable: a cancellation would wait for it without an end`)
    )
    : misplacedInStep(fiber, part)

/** Claims a name for the run; a defect if another part of this kind has it. */
export const claimName = (
  run: { readonly names: Set<string> },
  kind: string,
  name: string,
  fiber?: Fiber.Fiber<unknown, unknown>
): Effect.Effect<never> | undefined => {
  const key = `${kind}/${name}`
  if (run.names.has(key)) {
    return Effect.die(new Error(`duplicate ${kind} name "${name}" in this task: give each ${kind} its own name`))
  }
  run.names.add(key)
  fiber?.getRef(CurrentUndo)?.add(key)
  return undefined
}
