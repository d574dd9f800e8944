/**
 * The part of a store that the console reads at a longer interval than the running tasks: the numbers of all tasks, the tools,
 * the workers, and the newest failed tasks. The numbers cost a query over all tasks.
 */
import type { ListedTask, Statistics, TaskAdmin, ToolState, WorkerState } from "@skein/tasks/TaskAdmin"
import type { TaskError } from "@skein/tasks/TaskError"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** The last state that was read. */
export interface Overview {
  /** Milliseconds of Unix time. */
  readonly at: number
  readonly statistics: Statistics
  readonly tools: ReadonlyArray<ToolState>
  readonly workers: ReadonlyArray<WorkerState>
  /** The newest failed tasks, at most `limit`. */
  readonly failed: ReadonlyArray<ListedTask>
  /** The newest tasks that need attention, at most `limit`. */
  readonly stoppedTasks: ReadonlyArray<ListedTask>
  readonly limit: number
}

/** The shortest time between two reads, in milliseconds. A test lowers it. */
export const OverviewInterval: Context.Reference<number> = /* @__PURE__ */ Context.Reference(
  "@skein/console/OverviewInterval",
  { defaultValue: () => 5_000 }
)

/** Reads overviews, and keeps the last one. */
export const makeOverviews = (admin: TaskAdmin["Service"], intervalMs: number) => {
  let latest: Overview | undefined
  // Grows with each change by an operator. An overview that was read during a change may have the state before it.
  let changes = 0
  return {
    /**
     * The overview, at most one interval old, with at least `limit` failed tasks if there are so many. A failure is not
     * stored. Two consoles may share a source: the largest limit of them is kept.
     */
    read: (limit: number): Effect.Effect<Overview, TaskError> =>
      Effect.flatMap(Clock.currentTimeMillis, (now) => {
        if (latest !== undefined && limit <= latest.limit && now - latest.at < intervalMs) return Effect.succeed(latest)
        const most = Math.max(limit, latest?.limit ?? 0)
        const before = changes
        const { list, statistics, tools, workers } = admin
        const failed = list({ hasFailed: true }, { limit: most })
        const stoppedTasks = list({ needsAttention: true }, { limit: most })
        // One after the other, so that the console takes one connection of the pool.
        return Effect.map(Effect.all({ statistics, tools, workers, failed, stoppedTasks }), (read) => {
          const overview = { at: now, limit: most, ...read }
          if (before === changes) latest = overview
          return overview
        })
      }),
    /** Forgets the last overview, because an operator has changed the store: the next read asks the store. */
    expire: (): void => {
      changes++
      latest = undefined
    }
  }
}
