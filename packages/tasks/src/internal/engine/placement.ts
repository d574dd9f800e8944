/**
 * The allowed places of the parts of a task: no step, sleep, question or compensation is in a step, and each name occurs
 * once.
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"

/** The name of the step that a fiber runs in; `undefined` between steps. */
export const CurrentStep = Context.Reference<string | undefined>("@skein/tasks/CurrentStep", {
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

/** Claims a name for the run; a defect if another part of this kind has it. */
export const claimName = (
  run: { readonly names: Set<string> },
  kind: string,
  name: string
): Effect.Effect<never> | undefined => {
  const key = `${kind}/${name}`
  if (run.names.has(key)) {
    return Effect.die(new Error(`duplicate ${kind} name "${name}" in this task: give each ${kind} its own name`))
  }
  run.names.add(key)
  return undefined
}
