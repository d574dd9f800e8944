/**
 * What a run gives to its handler.
 */
import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { CurrentTask, Undoing } from "../../CurrentTask.ts"
import { ask } from "./questions.ts"
import { TaskExchange } from "./exchange.ts"
import { patiently } from "./engineContext.ts"
import { line } from "../text.ts"
import { misplaced } from "./places.ts"
import { InStep, type Run } from "./run.ts"
import { sleep } from "./sleep.ts"
import { once, step } from "./steps.ts"

/** The task, for `Step`. */
export const currentOf = (run: Run): CurrentTask["Service"] => ({
  id: run.work.id,
  say: (message) => say(run, message),
  step: (name, options, execute) => step(run, name, options, execute),
  sleep: (name, duration) => sleep(run, name, duration),
  compensate: (undo) => compensate(run, undo)
})

/** The call, for everything else. */
export const exchangeOf = (run: Run, current: CurrentTask["Service"]): TaskExchange => {
  const asked = (...[method, params, options]: Parameters<TaskExchange["request"]>) => ask(run, method, params, options)
  const exchange = new TaskExchange(run.work, {
    current,
    ask: asked,
    progress: (progress) => run.progressing.report(progress)
  })
  exchange.round = { ask: asked, once: (key, effect) => once(run, key, effect) }
  return exchange
}

/**
 * What stands between steps is said again in each run: so these are counted, and only those beyond the last one are written. In a
 * step they need no count. There, what cannot be written must not spoil the step, which may be a transaction.
 */
const say = (run: Run, said: string): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const message = line(said)
    const { host: { store }, work } = run
    if (fiber.getRef(InStep) !== undefined) {
      return Effect.catch(store.say(work.id, message), (error) =>
        Effect.logWarning(`Task ${work.tool}: a status message was lost`, error))
    }
    run.said++
    return run.said <= work.said ? Effect.void : run.hold(patiently(store.say(work.id, message, run.said)))
  })

const compensate = <E, R>(
  run: Run,
  undo: (why: Undoing) => Effect.Effect<unknown, E, R>
): Effect.Effect<void, never, R> =>
  Effect.withFiber((fiber) => {
    const problem = misplaced(fiber, "A compensation")
    if (problem !== undefined) return problem
    const context = fiber.context as Context.Context<R>
    run.undos.push((why) => Effect.provideContext(Effect.suspend(() => undo(why)), context))
    return Effect.void
  })
