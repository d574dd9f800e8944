/**
 * The bounds that have no option, because no deployment has a reason to change them. Tests provide other ones.
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Option from "effect/Option"
import * as Result from "effect/Result"

/** The number of rows of a page of an operator: 100 by default, and at most 1,000. */
export const toPageSize = (limit = 100): number => Math.min(Math.max(Math.floor(limit), 0), 1000)

/** The milliseconds of a limit that an option sets, or the problem with it. */
export const toLimitMillis = (input: Duration.Input): Result.Result<number, string> => {
  const milliseconds = Option.match(Duration.fromInput(input), { onNone: () => NaN, onSome: Duration.toMillis })
  return milliseconds > 0 && milliseconds < Infinity
    ? Result.succeed(milliseconds)
    : Result.fail(`is ${String(input)}: it must be finite, and more than 0`)
}

/** The fixed bounds. */
export const defaults = {
  /** Milliseconds between two writes of a task's progress. The last report is always written. */
  progressInterval: 100,
  /** Milliseconds between two writes of the details that steps report. */
  heartbeatInterval: 2000,
  /** How many unsettled tasks a worker reads when handlers are added, to compare them with its code. */
  maxCheckedTasks: 1000,
  /** How many tasks of each tool it replays. */
  maxCheckedTasksPerTool: 20,
  /** Bytes of an item of output, as JSON in UTF-8. */
  maxOutputItemBytes: 262_144,
  /** Items of the output of a task. */
  maxOutputItems: 10_000,
  /** Bytes of the output of a task. */
  maxOutputBytes: 16_777_216,
  /** Milliseconds between two notifications about the output of a task, or two reads of it where no process is notified. */
  outputInterval: 250,
  /** How many items `Task.forEach` has, at most. */
  maxForEachItems: 10_000,
  /** How many tasks one `subscriptions/listen` may watch. */
  maxWatchedTasks: 100,
  /** How many pairs of a tool and a pool have metrics of their own. */
  maxMeasuredTools: 200,
  /** How many pairs of a tool and the label of a step have metrics of their own. */
  maxMeasuredSteps: 500,
  /** Milliseconds between two reads of the queue for its gauges. */
  queueInterval: 15_000
}

export type Bounds = Readonly<typeof defaults>

/** The bounds of the layers that it is provided to. */
export const TaskBounds = /* @__PURE__ */ Context.Reference<Bounds>("@skein/tasks/TaskBounds", {
  defaultValue: () => defaults
})
