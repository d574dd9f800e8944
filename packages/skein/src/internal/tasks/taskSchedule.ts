/**
 * Schedules: tasks that start at the times of a cron expression.
 */
import * as Core from "@skein/tasks/TaskSchedule"
import { define, type Definition } from "../base/definition.ts"
import type { JsonObject } from "../base/messages.ts"
import type { TaskDefinition } from "./task.ts"
import type { TaskOwner, TaskState } from "./taskState.ts"

/** When a schedule starts tasks. */
export interface ScheduleTimes {
  /** The cron expression, of five fields or, with seconds first, of six. */
  readonly cron: string
  /** The time zone of the expression, by its IANA name or as an offset such as `+02:00`. Default `UTC`. */
  readonly timeZone?: string | undefined
  /**
   * Which of the two occurrences starts a task when a change of the clocks repeats a local time. Default `earlier`. An
   * expression of several times an hour needs `both`, or `UTC`.
   */
  readonly onDstOverlap?: "earlier" | "later" | "both" | undefined
  /**
   * Whether times start tasks that are over by more than a minute when a process looks, for instance because all
   * processes were down: the latest of them (`once`, the default), none (`skip`), or the latest 1,000 (`all`).
   */
  readonly missed?: "once" | "skip" | "all" | undefined
  /** Whether a time starts a task while the last one has not ended: `start`, the default, or `skip`. */
  readonly overlap?: "start" | "skip" | undefined
}

/** A schedule among the definitions of a server. */
export interface ScheduleOptions<Args = JsonObject> extends ScheduleTimes {
  /** The arguments of the task, as a client sends them. Default `{}`. */
  readonly args?: Args | undefined
  /** The owner of its tasks. Default `null`: every caller that has the id of a task sees it. */
  readonly owner?: TaskOwner | undefined
  /**
   * The name of an argument that receives the time for which a task is started, as an ISO 8601 text in UTC. Default: no
   * argument.
   */
  readonly timeArgument?: string | undefined
}

/** A schedule to store while the program runs. */
export interface ScheduleDefinition extends ScheduleTimes {
  /** The task that it starts. */
  readonly task: {
    /** The name of the task, as in `task(name, …)`. */
    readonly tool: string
    /** The arguments, as a client sends them. Default `{}`. */
    readonly args?: JsonObject | undefined
    /** The owner of its tasks. Default `null`: every caller that has the id of a task sees it. */
    readonly owner?: TaskOwner | undefined
    /** The pool of workers that run it. Default `default`. */
    readonly pool?: string | undefined
    /** A whole number. Waiting tasks with a higher priority start first. Default 0. */
    readonly priority?: number | undefined
    /** Milliseconds from its creation until it is cancelled and deleted; `null`: never. Default 24 hours. */
    readonly ttlMs?: number | null | undefined
  }
  /** The name of an argument that receives the time for which a task is started. Default: no argument. */
  readonly timeArgument?: string | undefined
}

/** A stored schedule. */
export interface Schedule {
  /** Its name, of 1 to 200 characters. */
  readonly name: string
  readonly cron: string
  readonly timeZone: string
  readonly onDstOverlap: "earlier" | "later" | "both"
  readonly missed: "once" | "skip" | "all"
  readonly overlap: "start" | "skip"
  readonly tool: string
  readonly pool: string
  readonly owner: TaskOwner
  readonly timeArgument: string | undefined
  readonly isPaused: boolean
  /** The next time, in milliseconds of Unix time; `undefined` if there is none. */
  readonly nextAt: number | undefined
  /** The time for which the last task was started, in milliseconds of Unix time. */
  readonly lastAt: number | undefined
  /** The id of the last task, which may have been deleted. */
  readonly lastTask: string | undefined
}

/** A time of a schedule that was backfilled. */
export interface BackfilledTime {
  /** The time, in milliseconds of Unix time. */
  readonly at: number
  /** The id of its task; `undefined`: it would start one (`dryRun`). */
  readonly task: string | undefined
  /** Whether the task was started now. */
  readonly isStarted: boolean
}

/** The schedules of a store. Promises reject with a `TaskError`. */
export interface TaskSchedules {
  /**
   * Creates or replaces a schedule. A paused one stays paused. Rejects with `InvalidOption` for an invalid name,
   * expression or time zone.
   *
   * @example
   * await shop.schedules.set("report of Acme", {
   *   cron: "0 7 * * mon-fri",
   *   timeZone: "America/New_York",
   *   task: { tool: "report", args: { customer: "Acme" } }
   * })
   */
  readonly set: (name: string, definition: ScheduleDefinition) => Promise<Schedule>
  /** Removes a schedule. Its tasks continue. Returns `false` for an unknown name. */
  readonly remove: (name: string) => Promise<boolean>
  /** A schedule; `undefined` for an unknown name. */
  readonly get: (name: string) => Promise<Schedule | undefined>
  /** Schedules by their names: 100 by default, at most 1,000. `after` is the last name of the previous page. */
  readonly list: (
    options?: { readonly after?: string | undefined; readonly limit?: number | undefined }
  ) => Promise<ReadonlyArray<Schedule>>
  /** Pauses a schedule: its times start no tasks. Returns `false` for an unknown name and for a paused schedule. */
  readonly pause: (name: string) => Promise<boolean>
  /** Continues a paused schedule with the next time from now. Returns `false` if it is unknown or not paused. */
  readonly resume: (name: string) => Promise<boolean>
  /** Starts a task of a schedule now. Returns the task; `undefined` for an unknown name. */
  readonly trigger: (name: string) => Promise<TaskState | undefined>
  /**
   * Starts the tasks of the times of a span, from `from` until before `to`, in milliseconds of Unix time; `to` is now by default.
   * A time that has a task already starts none, so that a call can be repeated while the tasks exist. `dryRun`: it starts nothing.
   * Returns the times with their tasks; `undefined` for an unknown name. Rejects with `InvalidOption` for more than 1,000
   * times, and for a span that ends in the future or before it begins; with `LimitExceeded` at a limit.
   *
   * @example
   * await shop.schedules.backfill("nightly report", { from: Date.parse("2026-03-01"), to: Date.parse("2026-03-08") })
   */
  readonly backfill: (
    name: string,
    span: { readonly from: number; readonly to?: number | undefined; readonly dryRun?: boolean | undefined }
  ) => Promise<ReadonlyArray<BackfilledTime> | undefined>
}

/**
 * Schedules a task: a definition beside the task in `tasks(store, […])`. It is stored when the server starts, and replaces
 * the stored schedule of this name. The server fails to start with `InvalidOption` for an invalid expression or time zone. A
 * schedule that is left out later stays stored: remove it with `schedules.remove`.
 *
 * The task has no client that it can ask, unless its `inputFrom` is `"anyone"`.
 *
 * @example
 * const nightly = taskSchedule("nightly report", report, { cron: "0 2 * * *", timeZone: "Europe/Berlin" })
 * server.use(tasks(sqliteTasks({ filename: "tasks.db" }), [report, nightly]))
 */
export const taskSchedule = <Args>(
  name: string,
  task: TaskDefinition<Args>,
  options: ScheduleOptions<NoInfer<Args>>
): Definition =>
  define(
    Core.layer(name, { name: task.name, options: {}, input: undefined, output: undefined }, options as Core.Options)
  )
