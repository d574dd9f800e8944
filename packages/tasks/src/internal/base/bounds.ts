/**
 * The bounds that have no option, because no deployment has a reason to change them. Tests provide other ones.
 */
import * as Context from "effect/Context"

/** The bounds, by name. */
export interface Bounds {
  /** Milliseconds between two writes of a task's progress. The last report is always written. */
  readonly progressInterval: number
  /** How many unsettled tasks a worker reads when handlers are added, to compare them with its code. */
  readonly maxCheckedTasks: number
  /** How many tasks of each tool it replays. */
  readonly maxCheckedTasksPerTool: number
  /** How many tasks one `subscriptions/listen` may watch. */
  readonly maxWatchedTasks: number
  /** How many pairs of a tool and a pool have metrics of their own. */
  readonly maxMeasuredTools: number
  /** How many pairs of a tool and the label of a step have metrics of their own. */
  readonly maxMeasuredSteps: number
  /** Milliseconds between two reads of the queue for its gauges. */
  readonly queueInterval: number
}

/** The number of rows of a page of an operator: 100 by default, and at most 1,000. */
export const toPageSize = (limit = 100): number => Math.min(Math.max(Math.floor(limit), 0), 1000)

/** The defaults. */
export const defaults: Bounds = {
  progressInterval: 100,
  maxCheckedTasks: 1000,
  maxCheckedTasksPerTool: 20,
  maxWatchedTasks: 100,
  maxMeasuredTools: 200,
  maxMeasuredSteps: 500,
  queueInterval: 15_000
}

/** The bounds of the layers that it is provided to. */
export const TaskBounds = /* @__PURE__ */ Context.Reference<Bounds>("@skein/tasks/TaskBounds", {
  defaultValue: () => defaults
})
