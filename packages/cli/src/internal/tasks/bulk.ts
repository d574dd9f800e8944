/**
 * Runs the commands of `skein tasks` that change many tasks of a store.
 */
import type { BulkChange, BulkPage, TaskCount } from "@skein/tasks/TaskAdmin"
import type { ListPosition } from "@skein/tasks/TaskState"
import * as Effect from "effect/Effect"
import type { Colors } from "../base/colors.ts"
import { operatorName } from "../base/nodeProgram.ts"
import { type CommandFailed, Process } from "../base/process.ts"
import { cell, table } from "../base/textTable.ts"
import { cancelledMessage, cursorOf, type FilterLine, filterOf, nothing, onStore, print } from "./tasks.ts"

/** A change of the tasks of a filter. */
export interface BulkLine extends FilterLine {
  /** Whether the tasks change. Otherwise they are only counted. */
  readonly yes: boolean
  readonly cursor?: ListPosition | undefined
}

type Skipped = BulkPage["skipped"][number]

/** Tasks that are changed together. */
const pageSize = 500

/** Skipped tasks that are listed with their ids, at most. */
const maxListed = 20

const reasons: Readonly<Record<Skipped["reason"], string>> = {
  ended: "it has ended in the meantime",
  compensating: "its compensations run",
  notWaiting: "it does not wait",
  rerun: "it was run again before",
  noStep: "it has no such step",
  gone: "it is deleted"
}

/** The effect on the tasks, after "are". */
const doneOf = (change: BulkChange): string => {
  switch (change.action) {
    case "cancel":
      return "cancelled; their compensations run"
    case "rerun":
      return "run again"
    case "wake":
      return "checked by workers"
    case "delete":
      return "deleted"
    case "priority":
      return `given the priority ${change.priority}`
    case "move":
      return `moved to the pool ${cell(change.pool)}`
  }
}

const numberOf = (count: number): string => count === 1 ? "1 task" : `${count.toLocaleString("en")} tasks`

const describeCounts = (counts: ReadonlyArray<TaskCount>, change: BulkChange, colors?: Colors): string => {
  const total = counts.reduce((sum, { count }) => sum + count, 0)
  const rows = counts.map(({ count, status, tool }) => [cell(tool), status, String(count)])
  return `${table(["TOOL", "STATUS", "TASKS"], rows, colors)}\n\nWith --yes, ${numberOf(total)} would be ${
    doneOf(change)
  }.`
}

const describeResult = (changed: number, skipped: ReadonlyArray<Skipped>, change: BulkChange): string => {
  const done = `${numberOf(changed)} ${changed === 1 ? "is" : "are"} ${doneOf(change)}.`
  if (skipped.length === 0) return done
  const listed = skipped.slice(0, maxListed).map(({ id, reason }) => `  ${id}  ${reasons[reason]}`)
  const rest = skipped.length > maxListed ? [`  and ${skipped.length - maxListed} more: --json lists all`] : []
  return [`${done} ${numberOf(skipped.length)} skipped:`, ...listed, ...rest].join("\n")
}

/** Changes the tasks of a filter, or counts them. */
export const changeMany = (line: BulkLine, given: BulkChange): Effect.Effect<void, CommandFailed, Process> =>
  onStore(line, function*(admin) {
    const change = given.action === "cancel"
      ? { ...given, statusMessage: given.statusMessage ?? cancelledMessage }
      : given
    const filter = filterOf(line)
    if (!line.yes) {
      const tasks = yield* admin.count(filter, { action: change.action })
      if (tasks.length === 0) return yield* nothing("there are no such tasks")
      return yield* print(line, { dryRun: true, tasks }, (colors) => describeCounts(tasks, change, colors))
    }
    const { console: { showStatus, warn } } = yield* Process
    const by = operatorName()
    const skipped: Array<Skipped> = []
    let after = line.cursor
    let changed = 0
    const changeAll = Effect.gen(function*() {
      do {
        const page: BulkPage = yield* admin.changeMany(filter, change, { after, by, limit: pageSize })
        changed += page.changed
        skipped.push(...page.skipped)
        after = page.after
        showStatus?.(after === undefined ? "" : `${numberOf(changed)} of the command are done`)
      } while (after !== undefined)
    })
    yield* Effect.onError(changeAll, () =>
      Effect.sync(() => {
        showStatus?.("")
        const next = after === undefined ? "repeat the command" : `add --cursor ${cursorOf(after)} to go on`
        warn(`${numberOf(changed)} of the command are done: ${next}`)
      }))
    if (changed === 0 && skipped.length === 0) return yield* nothing("there are no such tasks")
    yield* print(line, { changed, skipped }, () => describeResult(changed, skipped, change))
  })
