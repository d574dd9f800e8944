/**
 * Lets a task begin again with other arguments and an empty log.
 *
 * The positions of the log continue: the first event of the new log is after the last one of the old log, which is
 * deleted in the same transaction. So a worker that has read the old log cannot append to the new one.
 */
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import { currentMillis } from "./database.ts"
import { associatedData, live, type StoreContext } from "./rows.ts"
import type { Store } from "./store.ts"
import { toJson } from "./storedText.ts"

/** The failure of a transaction whose task has ended, or was continued by another worker. It rolls it back. */
const conflict = { _tag: "Conflict" } as const
type Conflict = typeof conflict

/** The operation of `TaskStore`. */
export const make = ({ changes, database, texts }: StoreContext, append: Store["append"]) => {
  const beginTask = changes.prepare(
    `UPDATE skein_tasks SET args = ?, said = 0, open_questions = 0, status = 'working', version = version + 1,
       updated_at = ${database.greatest}(updated_at, ?)
     WHERE id = ? AND ${live} RETURNING id`
  )
  const deleteQuestions = database.prepare("DELETE FROM skein_task_questions WHERE task_id = ?")
  const deleteEvents = database.prepare("DELETE FROM skein_task_log WHERE task_id = ? AND seq < ?")

  const continueWith: Store["continueWith"] = (id, seq, args) =>
    Effect.flatMap(
      Effect.flatMap(toJson(args), (text) => texts.encrypt(text, associatedData.args(id))),
      (args) => {
        const continued: Effect.Effect<boolean, TaskError | Conflict> = Effect.gen(function*() {
          const at = yield* currentMillis
          if ((yield* beginTask(args, at, id)) === undefined) return yield* Effect.fail(conflict)
          const event = { seq, kind: "continued", name: "", attempt: 1, value: null, startedAt: undefined, at } as const
          if ((yield* append(id, event)) !== "appended") return yield* Effect.fail(conflict)
          yield* deleteQuestions(id)
          yield* deleteEvents(id, seq)
          return true
        })
        return Effect.catchIf(
          database.transaction(continued),
          (error): error is Conflict => error === conflict,
          () => Effect.succeed(false)
        )
      }
    )

  return { continueWith }
}
