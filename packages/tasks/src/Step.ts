/**
 * Steps, durable sleeps and compensations: the parts of a task that must not run twice.
 *
 * The handler of a task may run many times: it starts from its beginning after its process has ended, and after each
 * question, event and long sleep. A step that has ended does not run again: its result is recorded under its name. So
 * every effect on the outside world must be in a step. Code between steps should be fast, and do the same in each run.
 *
 * - The name of a step is unique in its task. In a loop, each iteration needs its own name (`charge/${order}`). Two
 *   steps with one name are a defect. A step that is renamed in a new version of the code runs again in existing tasks.
 * - A step runs *at least* once: a process may end after the step has acted and before its result is recorded.
 *   `execute` receives an idempotency key, which is the same in each attempt of this step in this task, and differs
 *   from all others. A step that does nothing but SQL can be `transactional`, and runs exactly once.
 * - A step must not contain another step, a sleep, a compensation, a question or `Task.awaitEvent`: each of them is a defect
 *   there.
 * - `Effect.timeout` around a question, an event or a sleep ends with the process. For a durable limit, use its own
 *   `timeout`, or race it with `Step.sleep`.
 *
 * @example
 * const pay = Task.layer(order, ({ amount }) =>
 *   Effect.gen(function*() {
 *     const id = yield* Step.run("charge", { success: Schema.String }, (key) => charge(amount, key)).pipe(
 *       Step.withCompensation((id) => Step.run("refund", {}, (key) => refund(id, key)))
 *     )
 *     yield* Step.sleep("cooling off", "3 days")
 *     return `Paid: ${id}`
 *   }))
 */
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import { CurrentTask, type StepOptions, type UndoReason } from "./CurrentTask.ts"
import type { StepTimeout } from "./TaskError.ts"

export type { StepOptions, UndoReason } from "./CurrentTask.ts"
export type { Retry } from "./internal/base/retry.ts"

/**
 * Runs a step, or returns its recorded result. Fails with the step's own failure, or with `StepTimeout` at its limit, after
 * the retries of `retry`. The message of a defect is recorded too, and later runs die with that message.
 *
 * Without a `success` schema no value is recorded or returned. A step that can fail needs an `error` schema. A member that
 * is `undefined` is left out of the record, as JSON has no `undefined`. A value that the schema cannot encode, or that the
 * database refuses, is a defect: the task fails, and the compensation of the step runs (`withCompensation`), because the
 * effect has happened.
 *
 * @example
 * const flour = Step.run("flour", {
 *   success: Schema.String,
 *   error: Schema.Union([NoFlour, Refused]),
 *   timeout: "30 seconds",
 *   retry: { times: 5, while: (error) => error._tag !== "Refused" }
 * }, (key) => orderFlour(2, key))
 */
export const run = <
  A = void,
  E = never,
  R = never,
  T extends Duration.Input | undefined = undefined,
  H extends Duration.Input | undefined = undefined
>(
  name: string,
  options:
    & StepOptions<A, E, NoInfer<E | TimeoutOf<T | H>>>
    & { readonly timeout?: T; readonly heartbeatTimeout?: H }
    & RequiresErrorSchema<E>,
  execute: (key: string) => Effect.Effect<StepValue<NoInfer<A>>, E, R>
): Effect.Effect<A, E | TimeoutOf<T | H>, R | CurrentTask> => {
  // A value without a schema is dropped, so its type does not matter; a step without a limit does not exceed it.
  const executed = execute as (key: string) => Effect.Effect<A, E, R>
  const given = options as StepOptions<A, E, E | StepTimeout>
  const step = (undo?: Undo<A>) => Effect.flatMap(CurrentTask, (task) => task.step(name, given, executed, undo))
  const plain = step()
  compensated.set(plain, (undo: Undo<never>) => step(undo as Undo<A>))
  return plain as Effect.Effect<A, E | TimeoutOf<T | H>, R | CurrentTask>
}

/** The failure of a step with limits; `never` for one without any. */
export type TimeoutOf<T> = [T] extends [undefined] ? never : StepTimeout

/**
 * Reports that a step makes progress: before its `heartbeatTimeout` ends, and with details such as a position in a list. The
 * next attempt of the step reads the last details (`lastHeartbeat`), also on another worker, and operators see them
 * (`TaskAdmin.inspect`, `skein tasks show --values`) until the step ends.
 *
 * - The details are JSON, of up to 8,192 characters. Without them it only resets the `heartbeatTimeout`.
 * - They are written at most once in two seconds, and when an attempt fails or is interrupted. A process that dies loses
 *   those of its last two seconds.
 * - It is a defect outside of a step, and for details out of bounds (`InvalidOption`).
 *
 * @example
 * const imported = Step.run("import", { heartbeatTimeout: "1 minute", retry: { times: 3 } }, () =>
 *   Effect.gen(function*() {
 *     const from = (yield* Step.lastHeartbeat) as number | undefined ?? 0
 *     for (let line = from; line < lines.length; line++) {
 *       yield* importLine(lines[line])
 *       yield* Step.heartbeat(line + 1)
 *     }
 *   }))
 */
export const heartbeat = (details?: unknown): Effect.Effect<void, never, CurrentTask> =>
  Effect.flatMap(CurrentTask, (task) => task.heartbeat(details))

/**
 * The last details that this step has reported with `heartbeat`, in this attempt or an earlier one, as JSON makes them.
 * `undefined`: there are none. It is a defect outside of a step.
 */
export const lastHeartbeat: Effect.Effect<unknown, never, CurrentTask> = /* @__PURE__ */ Effect.flatMap(
  CurrentTask,
  (task) => task.lastHeartbeat
)

/** Undoes a step. Its services are those of the effect that `withCompensation` returns. */
type Undo<A> = (value: A, reason: UndoReason) => Effect.Effect<unknown, unknown, unknown>

/** Runs a step with its compensation. */
type Compensated = (undo: Undo<never>) => Effect.Effect<unknown, unknown, unknown>

/** The steps that `run` has made. `withCompensation` finds them here. */
const compensated = new WeakMap<object, Compensated>()

/** The value that a step may return: the type of its `success` schema, and any value without one. */
export type StepValue<A> = [A] extends [void] ? unknown : A

/** The options that a step needs if it can fail: an `error` schema. */
export type RequiresErrorSchema<E> = [E] extends [never] ? unknown
  : { readonly error: Schema.ConstraintCodec<E, unknown> }

/**
 * Sleeps, across restarts. It ends when the time has passed by the clock of the machine, at most one `pollInterval` of
 * the engine later. The task takes no memory meanwhile. A sleep of up to 5 seconds is in memory, and starts again after
 * a restart. In a compensation all sleeps are in memory.
 *
 * @example
 * const rest = Step.sleep("rest", "12 hours")
 */
export const sleep = (name: string, duration: Duration.Input): Effect.Effect<void, never, CurrentTask> =>
  Effect.flatMap(CurrentTask, (task) => task.sleep(name, duration))

/**
 * Adds a compensation. It runs when the task fails (an error, or a result with `isError`) or is cancelled, after the
 * compensations that were added later. It does not run when a worker stops and the task continues elsewhere.
 *
 * The steps of a compensation are durable: each runs once, even if the process ends meanwhile. A compensation cannot
 * ask for input. A failure of a compensation is logged, and the others run.
 *
 * @example
 * const release = Step.compensate((reason) => Step.run("release", {}, () => releaseVan(reason)))
 */
export const compensate = <E, R>(
  undo: (reason: UndoReason) => Effect.Effect<unknown, E, R>
): Effect.Effect<void, never, R | CurrentTask> => Effect.flatMap(CurrentTask, (task) => task.compensate(undo))

/**
 * Runs an effect, and adds a compensation if it succeeds: see `compensate`. No interruption comes between the two.
 *
 * Apply it to a step itself (`Step.run(…).pipe(Step.withCompensation(…))`), and not to an effect that is made of it. Then
 * the compensation also runs if the effect of the step has happened and its value cannot be recorded. It receives that
 * value; after a restart it receives an excerpt as JSON, in which long texts are cut.
 *
 * @example
 * const van = Step.run("hire", { success: Schema.String }, (key) => hireVan(key)).pipe(
 *   Step.withCompensation((id) => Step.run("release", {}, () => releaseVan(id))))
 */
export const withCompensation =
  <A, E2, R2>(undo: (value: A, reason: UndoReason) => Effect.Effect<unknown, E2, R2>) =>
  <E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | R2 | CurrentTask> => {
    const step = compensated.get(self)
    if (step !== undefined) return step(undo) as Effect.Effect<A, E, R | R2 | CurrentTask>
    return Effect.uninterruptibleMask((restore) =>
      Effect.tap(restore(self), (value) => compensate((reason) => undo(value, reason)))
    )
  }
