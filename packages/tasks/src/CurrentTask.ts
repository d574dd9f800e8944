/**
 * The task that a handler runs in: what `Step`s are made of.
 */
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Schedule from "effect/Schedule"
import type * as Schema from "effect/Schema"

/** How a step is run and remembered. */
export interface StepOptions<A, E> {
  /** What is remembered of its success, as JSON; nothing by default. It may only grow while tasks that have it are alive. */
  readonly success?: Schema.ConstraintCodec<A, unknown> | undefined
  /** What is remembered of its failure; a step without it has none. */
  readonly error?: Schema.ConstraintCodec<E, unknown> | undefined
  /**
   * When it is tried again after a failure: not at all by default. Each try is remembered with its time, so that the schedule goes
   * on where it was when the task goes on elsewhere. A pause of more than 5 seconds is durable, and costs no memory; a shorter one
   * begins anew after a restart. A defect is not tried again.
   */
  readonly retry?: Schedule.Schedule<unknown, E> | undefined
  /**
   * Whether what it writes with the engine's `SqlClient` is committed together with the memory of it: exactly once. What it wrote
   * is undone when it fails. Keep it short, and let it do nothing but SQL: on SQLite everything else waits for it. `false` by
   * default: *at least* once.
   */
  readonly transactional?: boolean | undefined
}

/** Why what a task has done is undone. */
export type Undoing = "failed" | "cancelled"

/** The task of a durable handler (`Task.layer`). See `Step`, which says what these do. */
export class CurrentTask extends Context.Service<CurrentTask, {
  /** The id that the client knows. To keep: whoever has it may be able to look at the task. */
  readonly id: string
  /** Says where the task stands, for people and models. */
  readonly say: (message: string) => Effect.Effect<void>
  readonly step: <A, E, R>(
    name: string,
    options: StepOptions<A, E>,
    execute: (key: string) => Effect.Effect<A, E, R>
  ) => Effect.Effect<A, E, R>
  readonly sleep: (name: string, duration: Duration.Input) => Effect.Effect<void>
  readonly compensate: <E, R>(undo: (why: Undoing) => Effect.Effect<unknown, E, R>) => Effect.Effect<void, never, R>
}>()("@skein/tasks/CurrentTask") {}

/** The id of the task. */
export const id: Effect.Effect<string, never, CurrentTask> = /* @__PURE__ */ Effect.map(CurrentTask, ({ id }) => id)

/**
 * Says where the task stands, for people and models: its status message. It is not a promise of the protocol that anybody sees
 * each one: the last one counts. What was said before a restart is not said again. Of more than 4,096 characters the first are said.
 */
export const say = (message: string): Effect.Effect<void, never, CurrentTask> =>
  Effect.flatMap(CurrentTask, (task) => task.say(message))
