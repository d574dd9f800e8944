/**
 * What must not run twice in a task: steps, durable sleep, and what undoes them.
 *
 * The handler of a task may run many times: it starts again from its beginning when its process is gone, and after each question
 * and each long sleep. A step that has ended is not run again: its result is remembered, under its name. So everything that acts
 * on the world belongs into a step; what stands between steps should be quick, and come to the same.
 *
 * - A name stands for one step of the task: in a loop, give each turn its own (`charge/${order}`). Two steps with one name are a
 *   defect. A step that is renamed in a new version of the code runs again, in tasks that were under way.
 * - A step runs *at least* once: a process may die after it acted, and before that is remembered. `execute` is given a key, which
 *   is the same in each try of this step in this task, and in no other: hand it to whoever compares such keys. A step that does
 *   nothing but SQL can be `transactional`, and runs exactly once.
 * - In a step there is no other step, no sleep, no compensation and no question: each of them is a defect there.
 * - `Effect.timeout` around a question or a sleep ends with the process. For a limit that lasts, use the question's own `timeout`,
 *   or race it with `Step.sleep`.
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
import { CurrentTask, type StepOptions, type Undoing } from "./CurrentTask.ts"

export type { StepOptions, Undoing } from "./CurrentTask.ts"

/**
 * Runs a step, unless it is remembered: then it ends as it did. Fails with the step's own failure, once its `retry` gives up. A
 * defect of a step is remembered as well, and what is left of it when it is told again is its message.
 *
 * Without a `success` nothing is remembered of what it gives, and so it gives nothing. One that can fail has to say with what: `error`.
 */
export const run = <A = void, E = never, R = never>(
  name: string,
  options: StepOptions<A, E> & Fails<E>,
  execute: (key: string) => Effect.Effect<Gives<NoInfer<A>>, E, R>
): Effect.Effect<A, E, R | CurrentTask> =>
  // What is not remembered is dropped there, whatever it is.
  Effect.flatMap(CurrentTask, (task) => task.step(name, options, execute as (key: string) => Effect.Effect<A, E, R>))

/** What a step may give: what its `success` writes; anything, where it has none. */
export type Gives<A> = [A] extends [void] ? unknown : A

/** What a step that can fail needs among its options. */
export type Fails<E> = [E] extends [never] ? unknown : { readonly error: Schema.ConstraintCodec<E, unknown> }

/**
 * Sleeps, across restarts: until its time has come by the clock of the machine, within the engine's `pollInterval`. The task costs
 * no memory meanwhile. Up to 5 seconds it sleeps in memory, and sleeps them again after a restart. In a compensation it always
 * sleeps in memory.
 */
export const sleep = (name: string, duration: Duration.Input): Effect.Effect<void, never, CurrentTask> =>
  Effect.flatMap(CurrentTask, (task) => task.sleep(name, duration))

/**
 * Says how to undo what was done: it runs when the task fails (an error, or a result with `isError`) or is cancelled, after those
 * that were added later; not when a worker stops, and the task goes on elsewhere.
 *
 * Its own steps are durable: each runs once, also when the process dies meanwhile. It can ask nothing. When it fails, that is
 * logged, and the others run all the same.
 */
export const compensate = <E, R>(
  undo: (why: Undoing) => Effect.Effect<unknown, E, R>
): Effect.Effect<void, never, R | CurrentTask> => Effect.flatMap(CurrentTask, (task) => task.compensate(undo))

/** Runs an effect, and if it succeeds says how to undo it: see `compensate`. Nothing comes in between. */
export const withCompensation =
  <A, E2, R2>(undo: (value: A, why: Undoing) => Effect.Effect<unknown, E2, R2>) =>
  <E, R>(self: Effect.Effect<A, E, R>): Effect.Effect<A, E, R | R2 | CurrentTask> =>
    Effect.uninterruptibleMask((restore) => Effect.tap(restore(self), (value) => compensate((why) => undo(value, why))))
