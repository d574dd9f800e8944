/**
 * Runs the compensations of a task.
 */
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type { UndoReason } from "../../CurrentTask.ts"
import { messageOf } from "../base/text.ts"
import { awaitStore } from "./engineContext.ts"
import type { Run } from "./run.ts"

/** Logs and stores that a compensation has failed, with its place among those of the task. */
export const noteFailed = (run: Run, place: number, cause: Cause.Cause<unknown>): Effect.Effect<void> =>
  Effect.andThen(
    Effect.logError(`task ${run.task.tool}: a compensation failed`, cause),
    Effect.asVoid(
      awaitStore(run.engine.store.bulk.noteFailedCompensation(run.task.id, place, messageOf(Cause.squash(cause))))
    )
  )

/**
 * Runs the compensations, the last one first. A failed compensation is logged and stored, and the others run. The reason of
 * the first run that compensates is that of all: a task may be cancelled while it compensates because it has failed.
 */
export const undoAll = (run: Run, reason: UndoReason): Effect.Effect<void> =>
  run.compensations.length === 0 ? Effect.void : Effect.flatMap(run.beginUndo(reason), (reason) => {
    run.undoReason = reason
    // Those that a branch has begun go on: their parts have the names that they had there.
    for (const names of run.begunUndos.values()) for (const name of names) run.names.delete(name)
    return Effect.forEach(
      run.compensations.toReversed(),
      (compensation, index) =>
        Effect.catchCause(Effect.asVoid(compensation(reason)), (cause) =>
          // The next run continues with a compensation that was interrupted from outside.
          Cause.hasInterruptsOnly(cause) && run.isEnding
            ? Effect.interrupt
            : noteFailed(run, run.compensations.length - index, cause)),
      { discard: true }
    )
  })
