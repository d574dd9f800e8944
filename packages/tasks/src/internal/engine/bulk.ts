/**
 * Changes of many tasks by an operator, one page at a time.
 */
import type { TaskStatus } from "@skein/protocol/Task"
import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import type { BulkChange, BulkPage, ListedTask, TaskAdmin, TaskFilter } from "../../TaskAdmin.ts"
import type { TaskError } from "../../TaskError.ts"
import type { State } from "../../TaskState.ts"
import { toPageSize } from "../base/bounds.ts"
import type { TaskStore } from "../store/store.ts"

type SkipReason = BulkPage["skipped"][number]["reason"]

const live: ReadonlyArray<TaskStatus> = ["working", "input_required"]
const final: ReadonlyArray<TaskStatus> = ["completed", "failed", "cancelled"]

/** The tasks of a filter that are in a state for a change. */
const narrow = (filter: TaskFilter, action: BulkChange["action"] | undefined): TaskFilter => {
  if (action === undefined) return filter
  const allowed = action === "rerun" || action === "delete" ? final : live
  return { ...filter, status: filter.status?.filter((status) => allowed.includes(status)) ?? allowed }
}

/** The outcome of each task of a page: `undefined` if it has changed. */
type Outcomes = ReadonlyMap<string, SkipReason | undefined>

const idsOf = (tasks: ReadonlyArray<ListedTask>): ReadonlyArray<string> => tasks.map(({ state }) => state.id)

/** How a task runs again. */
export interface RerunOptions {
  readonly from?: string | undefined
  readonly by?: string | undefined
}

/** Runs a task again. Returns `undefined` if it is deleted, or has no step `from`. */
type Rerun = (found: ListedTask, options: RerunOptions) => Effect.Effect<State | undefined, TaskError>

/**
 * How many tasks run again in one transaction. Each end and start of another task waits for it, because it holds the
 * counters; and each commit takes as long as the disk does.
 */
const rerunsTogether = 20

/** The operations on many tasks. */
export const makeBulk = (
  store: TaskStore["Service"],
  cancel: TaskAdmin["Service"]["cancel"],
  rerun: Rerun
): Pick<TaskAdmin["Service"], "count" | "changeMany"> => {
  const { bulk } = store

  /** Changes some tasks, and stores who did it, in one transaction. The others have a reason. */
  const noted = (
    action: "wake" | "priority" | "move",
    by: string | undefined,
    change: Effect.Effect<ReadonlyArray<string>, TaskError>,
    tasks: ReadonlyArray<ListedTask>,
    reason: SkipReason,
    detail?: string
  ): Effect.Effect<Outcomes, TaskError> =>
    store.transaction(Effect.gen(function*() {
      const changed = yield* change
      if (changed.length > 0) yield* bulk.note(changed, { action, by, detail })
      const set = new Set(changed)
      return new Map(idsOf(tasks).map((id) => [id, set.has(id) ? undefined : reason]))
    }))

  /** Cancels each task in a transaction of its own: other ends of tasks wait for it. */
  const cancelAll = (
    ids: ReadonlyArray<string>,
    statusMessage: string | undefined,
    by: string | undefined
  ): Effect.Effect<Outcomes, TaskError> =>
    Effect.map(
      Effect.forEach(ids, (id) =>
        Effect.map(
          cancel(id, statusMessage, { by }),
          (isDone): readonly [string, SkipReason | undefined] => [id, isDone ? undefined : "ended"]
        )),
      (outcomes) => new Map(outcomes)
    )

  const remove = Effect.fnUntraced(function*(
    tasks: ReadonlyArray<ListedTask>
  ): Effect.fn.Return<Outcomes, TaskError> {
    const settled = idsOf(tasks.filter(({ place }) => place._tag === "Settled"))
    yield* store.remove(settled)
    const removed = new Set(settled)
    return new Map(idsOf(tasks).map((id) => [id, removed.has(id) ? undefined : "compensating"]))
  })

  const rerunAll = Effect.fnUntraced(function*(
    tasks: ReadonlyArray<ListedTask>,
    from: string | undefined,
    by: string | undefined
  ): Effect.fn.Return<Outcomes, TaskError> {
    const before = yield* bulk.findRerun(idsOf(tasks))
    const rerunOne = Effect.fnUntraced(
      function*(task: ListedTask): Effect.fn.Return<SkipReason | undefined, TaskError> {
        const { id } = task.state
        if (before.has(id)) return "rerun"
        if (task.place._tag !== "Settled") return "compensating"
        if ((yield* rerun(task, { from, by })) !== undefined) return undefined
        return (yield* store.admin.find(id)) === undefined ? "gone" : "noStep"
      }
    )
    const reasons = yield* Effect.forEach(
      Arr.chunksOf(tasks, rerunsTogether),
      (some) =>
        store.transaction(
          Effect.forEach(some, (task) => Effect.map(rerunOne(task), (reason) => [task.state.id, reason] as const))
        )
    )
    return new Map(reasons.flat())
  })

  const apply = (
    tasks: ReadonlyArray<ListedTask>,
    change: BulkChange,
    by: string | undefined
  ): Effect.Effect<Outcomes, TaskError> => {
    const ids = idsOf(tasks)
    switch (change.action) {
      case "cancel":
        return cancelAll(ids, change.statusMessage, by)
      case "wake":
        return noted("wake", by, store.wakeTasks(ids), tasks, "notWaiting")
      case "priority": {
        const { priority } = change
        return noted("priority", by, bulk.setPriority(ids, priority), tasks, "ended", String(priority))
      }
      case "move": {
        const { pool } = change
        return noted("move", by, bulk.setPool(ids, pool), tasks, "ended", pool)
      }
      case "delete":
        return remove(tasks)
      case "rerun":
        return rerunAll(tasks, change.from, by)
    }
  }

  return {
    count: (filter, { action } = {}) => bulk.count(narrow(filter, action)),
    changeMany: Effect.fnUntraced(function*(filter, change, { after, by, limit } = {}) {
      const size = toPageSize(limit)
      const tasks = yield* store.admin.list(narrow(filter, change.action), after, size)
      const outcomes = tasks.length === 0 ? new Map() : yield* apply(tasks, change, by)
      const skipped = [...outcomes].flatMap(([id, reason]) => reason === undefined ? [] : [{ id, reason }])
      const last = tasks.at(-1)?.state
      return {
        changed: outcomes.size - skipped.length,
        skipped,
        after: last === undefined || tasks.length < size ? undefined : { createdAt: last.createdAt, id: last.id }
      }
    })
  }
}
