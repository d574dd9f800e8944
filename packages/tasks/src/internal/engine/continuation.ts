/**
 * Implements `Task.continueWith`: the task begins again with other arguments and an empty log.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Effect from "effect/Effect"
import { awaitStore } from "./engineContext.ts"
import { misplacedInStep } from "./placement.ts"
import { neverEnds, replayEnds, type Run } from "./run.ts"

const name = "Task.continueWith"

const refused = (problem: string) => Effect.die(new Error(`${name} is not allowed ${problem}`))

/**
 * Ends the run, and lets the next one begin with an empty log. The next run does not depend on the
 * result of the store, and reads the state again: the task may have been cancelled, or continued by another worker.
 */
export const continueWith = (run: Run, args: JsonObject): Effect.Effect<never> =>
  Effect.withFiber((fiber) => {
    const problem = misplacedInStep(fiber, name)
    if (problem !== undefined) return problem
    if (run.undoReason !== undefined) return refused("in a compensation")
    run.noteFiber(fiber)
    if (run.isCollecting) return run.observe(neverEnds)
    const count = run.compensations.length
    if (count > 0) {
      return refused(
        `while the task has compensations (${count}), which would never run: do work with compensations in another task`
      )
    }
    const { engine: { store }, log, observations, task: { id } } = run
    const stored = Effect.suspend(() => awaitStore(store.continueWith(id, log.nextSeq, args)))
    const continued = Effect.uninterruptibleMask((restore) =>
      observations.inTurn(restore, Effect.map(stored, () => run.end("continued")))
    )
    const ended = Effect.andThen(
      run.preventSuspension(Effect.andThen(run.progress.flush, continued)),
      run.interruptSelf
    )
    // A branch that continues the task must not get ahead of the events of earlier runs.
    return run.hasBranches && log.hasPending ? Effect.andThen(run.observe(replayEnds), ended) : ended
  })
