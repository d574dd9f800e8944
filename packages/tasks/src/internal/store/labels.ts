/**
 * The labels of tasks, by which operators find them. They are not encrypted.
 */
import * as Effect from "effect/Effect"
import { InvalidOption, LimitExceeded, TaskError } from "../../TaskError.ts"
import type { Labels } from "../../TaskState.ts"
import type { Database } from "./database.ts"
import type { LabelStore } from "./store.ts"
import { escape, unescape } from "./storedText.ts"

/** Labels of a task. */
export const maxLabels = 10

/** Characters of the name of a label, and of its value. */
export const maxLabelChars = 200

const tooMany = () =>
  new TaskError({ reason: new LimitExceeded({ message: `a task has at most ${maxLabels} labels` }) })

/** Fails for a label out of bounds. */
const check = (name: string, value: string): Effect.Effect<void, TaskError> => {
  if (name !== "" && name.length <= maxLabelChars && value.length <= maxLabelChars) return Effect.void
  const message = `the name of a label has 1 to ${maxLabelChars} characters, and its value at most ${maxLabelChars}`
  return Effect.fail(new TaskError({ reason: new InvalidOption({ message }) }))
}

/** The condition for tasks with a label. */
export const hasLabel = "skein_tasks.id IN (SELECT task_id FROM skein_task_labels WHERE name = ? AND value = ?)"

/** The labels of a task as JSON: an expression. */
export const labelsOf = (isPostgres: boolean): string =>
  `(SELECT ${isPostgres ? "CAST(json_object_agg(name, value) AS TEXT)" : "json_group_object(name, value)"}
    FROM skein_task_labels WHERE task_id = skein_tasks.id)`

/** Decodes `labelsOf`. */
export const toLabels = (json: string | undefined): Labels =>
  Object.fromEntries(
    Object.entries(JSON.parse(json ?? "{}") as Labels).map(([name, value]) => [unescape(name), unescape(value)])
  )

/** Makes the operations. */
export const make = (database: Database): LabelStore => {
  const upsert = database.prepare(
    `INSERT INTO skein_task_labels (task_id, name, value)
     SELECT id, CAST(? AS TEXT), CAST(? AS TEXT) FROM skein_tasks WHERE id = ? AND
       (SELECT COUNT(*) FROM skein_task_labels WHERE task_id = skein_tasks.id AND name <> CAST(? AS TEXT)) < ${maxLabels}
     ON CONFLICT (task_id, name) DO UPDATE SET value = excluded.value RETURNING name`
  )
  const selectTask = database.prepare("SELECT id FROM skein_tasks WHERE id = ?")
  const set: LabelStore["set"] = (id, name, value) =>
    Effect.flatMap(
      Effect.andThen(check(name, value), upsert(escape(name), escape(value), id, escape(name))),
      (rows) =>
        rows.length > 0
          ? Effect.void
          // The labels of a deleted task do not matter.
          : Effect.flatMap(selectTask(id), (found) => found.length === 0 ? Effect.void : Effect.fail(tooMany()))
    )
  return {
    set,
    check: (labels) =>
      Object.keys(labels).length > maxLabels
        ? Effect.fail(tooMany())
        : Effect.forEach(Object.entries(labels), ([name, value]) => check(name, value), { discard: true }),
    setAll: (id, labels) =>
      Effect.forEach(Object.entries(labels), ([name, value]) => set(id, name, value), { discard: true })
  }
}
