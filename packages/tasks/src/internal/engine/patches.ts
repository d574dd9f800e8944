/**
 * Changes of the code that their author has marked (`Task.patched`): each task decides once whether it runs with a change.
 */
import * as Effect from "effect/Effect"
import * as Iterable from "effect/Iterable"
import { misplacedInStep } from "./placement.ts"
import { neverEnds, type Run } from "./run.ts"
import type { EventKey } from "./taskLog.ts"

/**
 * Implements `Task.patched`. A task runs with a change if it reaches it with nothing recorded behind it. The log has the
 * decision, because the task records more behind it.
 */
export const patched = (run: Run, name: string): Effect.Effect<boolean> =>
  Effect.withFiber((fiber) => {
    const problem = misplacedInStep(fiber, `Task.patched("${name}")`)
    if (problem !== undefined) return problem
    run.noteFiber(fiber)
    return run.lock(`patched/${name}`)(Effect.suspend(() => decide(run, name)))
  })

/** Whether earlier runs have recorded more than this run has reached: an event, a sleep that began, or a question. */
const hasRecordedMore = ({ answers, hasUnaskedQuestions, log, names }: Run): boolean =>
  log.hasPending || hasUnaskedQuestions ||
  Iterable.some(answers.keys(), (key) => !names.has(`question/${key}`)) ||
  Iterable.some(log.entries, ({ kind, name }) => kind === "timer" && name.startsWith("sleep/") && !names.has(name))

const decide = (run: Run, name: string): Effect.Effect<boolean> => {
  const eventOf = (isPatched: boolean): EventKey => ({ kind: isPatched ? "patched" : "unpatched", name, attempt: 1 })
  for (const decision of [true, false]) {
    if (run.log.find(eventOf(decision)) !== undefined) return Effect.succeed(decision)
  }
  const isPatched = !hasRecordedMore(run)
  // A run that only replays has come to its end if nothing is recorded behind, and decides nothing.
  if (run.isCollecting && run.undoReason === undefined) {
    return isPatched ? run.observe(neverEnds) : Effect.succeed(false)
  }
  const stored = Effect.flatMap(run.now, (at) => run.storeUnobserved(eventOf(isPatched), at))
  return Effect.as(run.preventSuspension(stored), isPatched)
}
