/**
 * The retries of whole tasks (`Task.Options.retry`).
 */
import * as Effect from "effect/Effect"
import type { Outcome } from "../../TaskState.ts"
import { pauseAfter } from "../base/retry.ts"
import { failureMessage } from "../base/text.ts"
import { awaitStore } from "./engineContext.ts"
import type { FoundHandler } from "./handlerRegistry.ts"
import type { Run } from "./run.ts"

/**
 * Lets a failed task begin again after a pause, with an empty log, while its tool allows it. It has compensated, and so nothing
 * of this attempt is left. `ended`: no attempt is left. `refused`: the task has ended meanwhile, or its log does not end there.
 */
export const retryTask = Effect.fnUntraced(function*(
  run: Run,
  { durable, retry }: FoundHandler["handler"],
  outcome: Outcome
): Effect.fn.Return<"begun" | "ended" | "refused"> {
  const { engine: { store }, execution: { workerId }, log, task } = run
  const attempt = log.attempt + 1
  if (!durable || retry === undefined || attempt > retry.times + 1 || !retry.while(outcome)) return "ended"
  const of = Number.isFinite(retry.times) ? ` of ${retry.times + 1}` : ""
  const statusMessage = `Attempt ${log.attempt}${of} has failed: ${failureMessage(outcome) ?? "without a message"}`
  const hasBegun = yield* awaitStore(store.continueWith(task.id, log, task.args, { attempt, statusMessage }))
  if (!hasBegun) return "refused"
  run.ending = "continued"
  const wakeAt = (yield* store.clock.now) + pauseAfter(retry, log.attempt)
  yield* awaitStore(store.release(task.id, workerId, wakeAt))
  return "begun"
})
