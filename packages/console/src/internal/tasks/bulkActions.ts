/**
 * Actions on many tasks: on those of a group, or of a tool.
 */
import type { BulkChange, TaskAdmin, TaskFilter } from "@skein/tasks/TaskAdmin"
import type { TaskError } from "@skein/tasks/TaskError"
import type { ListPosition } from "@skein/tasks/TaskState"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Action, ActionResult } from "../../ConsoleSource.ts"

/** Cancels tasks that have not ended. */
export const cancelAll: Action = {
  name: "cancelAll",
  label: "Cancel all",
  confirm:
    "All tasks here that have not ended are cancelled, also those that are not shown, and their finished steps are undone."
}

/** Lets workers check the tasks that wait. */
export const wakeAll: Action = { name: "wakeAll", label: "Check all now" }

/** Runs failed tasks again. */
export const rerunAll: Action = {
  name: "rerunAll",
  label: "Run all again",
  confirm:
    "For each failed task here a new one begins, also for those that are not shown. The steps have new idempotency keys: their " +
    "effects happen again. Tasks that were run again before are left out."
}

/** The change that an action makes, and the filter that it adds. */
const changes: Readonly<Record<string, readonly [BulkChange, TaskFilter, done: string]>> = {
  [cancelAll.name]: [{ action: "cancel", statusMessage: "Cancelled by an operator" }, {}, "cancelled"],
  [wakeAll.name]: [{ action: "wake" }, {}, "checked now"],
  [rerunAll.name]: [{ action: "rerun" }, { hasFailed: true }, "run again"]
}

/** Tasks that change together, and the milliseconds after which the viewer is asked to go on. */
const pageSize = 500
const maxMillis = 20_000

/** Whether an action is one on many tasks. */
export const isBulk = (action: string): boolean => Object.hasOwn(changes, action)

/** Runs an action on the tasks of a filter. */
export const changeAll = (
  admin: TaskAdmin["Service"],
  action: string,
  filter: TaskFilter,
  by: string | undefined
): Effect.Effect<ActionResult, TaskError> =>
  Effect.gen(function*() {
    const [change, added, done] = changes[action]!
    const begin = yield* Clock.currentTimeMillis
    let after: ListPosition | undefined
    let changed = 0
    let skipped = 0
    do {
      const page = yield* admin.changeMany({ ...filter, ...added }, change, { after, by, limit: pageSize })
      changed += page.changed
      skipped += page.skipped.length
      after = page.after
    } while (after !== undefined && (yield* Clock.currentTimeMillis) - begin < maxMillis)
    const left = [
      ...skipped === 0 ? [] : [`${skipped === 1 ? "1 is" : `${skipped.toLocaleString("en")} are`} left out`],
      ...after === undefined ? [] : ["there are more: do it again"]
    ]
    const tasks = changed === 1 ? "1 task is" : `${changed.toLocaleString("en")} tasks are`
    return { isDone: changed > 0, message: [`${tasks} ${done}`, ...left].join("; ") }
  })
