/**
 * What must not run twice in a task: steps, durable sleep, and what undoes them.
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { CurrentTask, type StepOptions } from "./CurrentTask.ts"

export type { StepOptions } from "./CurrentTask.ts"

/** Runs a step, unless it is remembered. */
export const run = <A = void, E = never, R = never>(
  name: string,
  options: StepOptions<A, E>,
  execute: (key: string) => Effect.Effect<A, E, R>
): Effect.Effect<A, E, R | CurrentTask> => Effect.flatMap(CurrentTask, (task) => task.step(name, options, execute))

/** Sleeps, across restarts. */
export const sleep = (name: string, duration: Duration.Input): Effect.Effect<void, never, CurrentTask> =>
  Effect.flatMap(CurrentTask, (task) => task.sleep(name, duration))
