/**
 * The task that a handler runs in.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"

/** How a step is run and remembered. */
export interface StepOptions<A, E> {
  /** What is remembered of its success, as JSON; nothing by default. */
  readonly success?: Schema.Codec<A, unknown> | undefined
  /** What is remembered of its failure; a step without it has none. */
  readonly error?: Schema.Codec<E, unknown> | undefined
  /** When it is tried again after a failure. What was tried is remembered, and long pauses are durable. */
  readonly retry?: Schedule.Schedule<unknown, E> | undefined
  /** Whether what it writes to the engine's database is committed together with the memory of it. */
  readonly transactional?: boolean | undefined
}

/** What `Step` and `Task` are made of. Provided to the handlers of `Task.layer`. */
export class CurrentTask extends Context.Service<CurrentTask, {
  /** The id that the client knows. */
  readonly id: string
  /** Says where the task stands, for people and models. */
  readonly say: (message: string) => Effect.Effect<void>
  readonly step: <A, E, R>(
    name: string,
    options: StepOptions<A, E>,
    execute: (key: string) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  readonly sleep: (name: string, duration: Duration.Input) => Effect.Effect<void>
  readonly compensate: <R>(undo: Effect.Effect<void, never, R>) => Effect.Effect<void, never, R>
}>()("@skein/tasks/CurrentTask") {}

/** The id of the task. */
export const id: Effect.Effect<string, never, CurrentTask> = /* @__PURE__ */ Effect.map(CurrentTask, ({ id }) => id)
