/**
 * Schedules: tasks that start at the times of a cron expression in a time zone. Each time has one task, however many
 * processes run, and a time that comes while all of them are down is not forgotten.
 *
 * The layers of the engines provide the service beside `TaskEngine`. A schedule is stored until it is removed. Every
 * process with an engine on the store looks for due schedules, also one that runs no tasks.
 *
 * - The expression has five fields (minute, hour, day of the month, month, day of the week), or six with the second
 *   first: `0 2 * * 1-5`, `0 9 1 jan,jul *`, `0-59/10 * * * * *`. The parser is `effect/Cron`.
 * - A local time that a change of the clocks skips starts its task after the gap: where 02:00 becomes 03:00, 02:30 is
 *   03:30. A local time that occurs twice starts one task by default: see `onDstOverlap`.
 * - The clock is that of the process that looks. The first process whose clock has reached a time starts its task.
 *
 * `TaskSchedule.layer` stores a schedule with the program. This service is for schedules that come and go, and for
 * operators.
 *
 * @example
 * const pauseAll = Effect.gen(function*() {
 *   const schedules = yield* TaskSchedules.TaskSchedules
 *   for (const { name } of yield* schedules.list()) yield* schedules.pause(name)
 * })
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { TaskError } from "./TaskError.ts"
import type { NewTask, Owner, State } from "./TaskState.ts"

/** When a schedule starts tasks. */
export interface TimeOptions {
  /** The cron expression, of five or six fields. */
  readonly cron: string
  /** The time zone of the expression, by its IANA name or as an offset such as `+02:00`. Default `UTC`. */
  readonly timeZone?: string | undefined
  /**
   * Which of the two occurrences starts a task when a change of the clocks repeats a local time. Default `earlier`. With
   * `earlier` and `later` an expression such as `0-59/15 * * * *` starts nothing in one of the two hours: use `both` for it,
   * or `UTC`.
   */
  readonly onDstOverlap?: "earlier" | "later" | "both" | undefined
  /**
   * Whether times start tasks that are over by more than a minute when a process looks, for instance because all
   * processes were down.
   *
   * - `once`, the default: the latest of them does.
   * - `skip`: none of them does.
   * - `all`: the latest 1,000 of them do, the earliest first.
   *
   * Times that are over by less are not missed: each of them starts a task.
   */
  readonly missed?: "once" | "skip" | "all" | undefined
  /**
   * Whether a time starts a task while the last task of the schedule has not ended: `start`, the default; or `skip`,
   * which starts no task for this time.
   */
  readonly overlap?: "start" | "skip" | undefined
}

/** The options for times, with their defaults. */
export type Times = { readonly [Option in keyof TimeOptions]-?: NonNullable<TimeOptions[Option]> }

/** The members of a new task that have a default in a schedule. */
type TaskOptions = {
  readonly [Member in Exclude<keyof NewTask, "tool" | "args" | "key">]?: NewTask[Member] | undefined
}

/** A task that a schedule starts: a `NewTask` with defaults. A schedule chooses its `key`. */
export interface ScheduledTask extends TaskOptions {
  /** The name of the tool. */
  readonly tool: string
  /** The arguments, as a client sends them. Default `{}`. They are encrypted like those of tasks. */
  readonly args?: JsonObject | undefined
}

/** A schedule to store. */
export interface Definition extends TimeOptions {
  /**
   * The task. Defaults: the pool `default`, no owner, a time to live of 24 hours, a client that cannot be asked for
   * input, and the default limits of `Tasks.layer`.
   */
  readonly task: ScheduledTask
  /**
   * The name of an argument that receives the time for which a task is started, as an ISO 8601 text in UTC, in place of
   * the value in `args`. Default: no argument.
   */
  readonly timeArgument?: string | undefined
}

/** A stored schedule. */
export interface Schedule extends Times {
  /** Its name, of 1 to 200 characters. */
  readonly name: string
  readonly tool: string
  readonly pool: string
  readonly owner: Owner
  readonly timeArgument: string | undefined
  readonly isPaused: boolean
  /** The next time, in milliseconds of Unix time; `undefined` if there is none. A paused schedule starts nothing then. */
  readonly nextAt: number | undefined
  /** The time for which the last task was started, in milliseconds of Unix time. */
  readonly lastAt: number | undefined
  /** The id of the last task, which may have been deleted. */
  readonly lastTask: string | undefined
}

/** A span of time, in milliseconds of Unix time. */
export interface Span {
  readonly from: number
  /** Times at or after it start no tasks. Default: now. */
  readonly to?: number | undefined
}

/** A time of a schedule that was backfilled. */
export interface Backfilled {
  /** The time, in milliseconds of Unix time. */
  readonly at: number
  /** The id of its task; `undefined`: it would start one (`dryRun`). */
  readonly task: string | undefined
  /** Whether the task was started now. */
  readonly isStarted: boolean
}

/** The schedules of a store. */
export class TaskSchedules extends Context.Service<TaskSchedules, {
  /**
   * Creates or replaces a schedule. One whose times are the same keeps its next time, and a paused one stays paused. With
   * other times the next one counts from now. Fails with `InvalidOption` for an invalid name, expression or time
   * zone, and for an expression without a time.
   *
   * @example
   * const daily = schedules.set("report of Acme", {
   *   cron: "0 7 * * mon-fri",
   *   timeZone: "America/New_York",
   *   task: { tool: "report", args: { customer: "Acme" }, owner: "team:acme" }
   * })
   */
  readonly set: (name: string, definition: Definition) => Effect.Effect<Schedule, TaskError>
  /** Removes a schedule. Its tasks continue. Returns `false` for an unknown name. */
  readonly remove: (name: string) => Effect.Effect<boolean, TaskError>
  /** A schedule; `undefined` for an unknown name. */
  readonly get: (name: string) => Effect.Effect<Schedule | undefined, TaskError>
  /** Schedules by their names: 100 by default, at most 1,000. `after` is the last name of the previous page. */
  readonly list: (
    options?: { readonly after?: string | undefined; readonly limit?: number | undefined }
  ) => Effect.Effect<ReadonlyArray<Schedule>, TaskError>
  /** Pauses a schedule: its times start no tasks. Returns `false` for an unknown name and for a paused schedule. */
  readonly pause: (name: string) => Effect.Effect<boolean, TaskError>
  /**
   * Continues a paused schedule with the next time from now; times of the pause are skipped. Returns `false` for an
   * unknown name and for a schedule that is not paused.
   */
  readonly resume: (name: string) => Effect.Effect<boolean, TaskError>
  /**
   * Starts a task of a schedule now, also of a paused one, and whatever its `overlap`. Its next time stays as it is. A
   * `timeArgument` receives the current time.
   * Returns the task; `undefined` for an unknown name. Fails with `LimitExceeded` at a limit.
   */
  readonly trigger: (name: string) => Effect.Effect<State | undefined, TaskError>
  /**
   * Starts the tasks of the times of a span, from `from` until before `to`, as if the schedule had started them then: those of a
   * new schedule, or of a pause. Times in milliseconds of Unix time. A time that has a task already, of the schedule or of an earlier
   * call, starts none, so that a call can be repeated while the tasks exist. `overlap` does not matter, and the next time stays as it
   * is. `to`: now by default. `dryRun`: it starts nothing. Default `false`.
   *
   * Returns the times with their tasks; `undefined` for an unknown name. Fails with `InvalidOption` for more than 1,000
   * times, and for a span that ends in the future or before it begins; with `LimitExceeded` at a limit, when the times
   * before have their tasks.
   *
   * @example
   * const reports = schedules.backfill("nightly report", { from: Date.parse("2026-03-01"), dryRun: true })
   */
  readonly backfill: (
    name: string,
    span: Span & { readonly dryRun?: boolean | undefined }
  ) => Effect.Effect<ReadonlyArray<Backfilled> | undefined, TaskError>
}>()("@skein/tasks/TaskSchedules") {}
