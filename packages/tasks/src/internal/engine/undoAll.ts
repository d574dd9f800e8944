/**
 * Runs the compensations of a task.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { UndoReason } from "../../CurrentTask.ts"
import { messageOf } from "../base/text.ts"
import { awaitStore } from "./engineContext.ts"
import type { Run } from "./run.ts"

/**
 * Runs the compensations, the last one first. A failed compensation is logged and stored, and the others run. The reason of
 * the first run that compensates is that of all: a task may be cancelled while it compensates because it has failed.
 */
export const undoAll = (run: Run, reason: UndoReason): Effect.Effect<void> =>
  run.compensations.length === 0 ? Effect.void : Effect.flatMap(run.beginUndo(reason), (reason) => {
    run.undoReason = reason
    return Effect.forEach(
      run.compensations.toReversed(),
      (compensation, index) =>
        Effect.catchCause(Effect.asVoid(compensation(reason)), (cause) =>
          // The next run continues with a compensation that was interrupted from outside.
          Cause.hasInterruptsOnly(cause) && run.isEnding
            ? Effect.interrupt
            : Effect.andThen(
              Effect.logError(`task ${run.task.tool}: a compensation failed`, cause),
              awaitStore(run.engine.store.bulk.noteFailedCompensation(
                run.task.id,
                run.compensations.length - index,
                messageOf(Cause.squash(cause))
              ))
            )),
      { discard: true }
    )
  })
