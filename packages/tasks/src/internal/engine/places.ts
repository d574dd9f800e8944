/**
 * Where the parts of a task may stand, and that each has a name of its own.
 */
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { InStep, type Run } from "./run.ts"

/** What is wrong with a part of a task where it stands; `undefined` where it may stand there. */
export const misplaced = (fiber: Fiber.Fiber<unknown, unknown>, what: string): Effect.Effect<never> | undefined => {
  const within = fiber.getRef(InStep)
  return within === undefined
    ? undefined
    : Effect.die(new Error(`${what} inside of step "${within}": it belongs before it or after it`))
}

/** Takes a name; a defect where it is taken. */
export const take = (run: Run, kind: string, name: string): Effect.Effect<never> | undefined => {
  const full = `${kind}/${name}`
  if (run.names.has(full)) {
    return Effect.die(new Error(`Two of this task have the name "${name}": give each ${kind} its own`))
  }
  run.names.add(full)
  return undefined
}
