/**
 * The times of schedules: their rules, their options with defaults, and the times that are due.
 */
import * as Clock from "effect/Clock"
import * as Cron from "effect/Cron"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { TaskError } from "../../TaskError.ts"
import type { TimeOptions, Times } from "../../TaskSchedules.ts"
import { invalidOption, maxTime } from "../store/database.ts"

/** Milliseconds after which a time that has no task yet is missed. */
const missedAfterMs = 60_000

/** Characters of the name of a schedule, which is a part of the keys of its tasks. */
const maxNameLength = 200

/** How many missed times start a task with `missed: "all"`. */
const maxMissed = 1000

/** The options with their defaults. */
export const withDefaults = (options: TimeOptions): Times => ({
  cron: options.cron,
  timeZone: options.timeZone ?? "UTC",
  onDstOverlap: options.onDstOverlap ?? "earlier",
  missed: options.missed ?? "once",
  overlap: options.overlap ?? "start"
})

const invalid = (message: string) => Effect.fail(invalidOption(message))

/** The time that a search finds, in milliseconds of Unix time. `Cron` throws if there is none. */
const find = (search: () => Date): number | undefined => {
  try {
    return search().getTime()
  } catch {
    return undefined
  }
}

/** The first time after another one, in milliseconds of Unix time; `maxTime` if there is none. */
export const timeAfter = (cron: Cron.Cron, after: number): number => find(() => Cron.next(cron, after)) ?? maxTime

/** The last time before another one; `undefined` if there is none. */
const timeBefore = (cron: Cron.Cron, before: number): number | undefined => find(() => Cron.prev(cron, before))

/** Parses an expression. */
export const parseTimes = ({ cron, onDstOverlap, timeZone }: Times): Result.Result<Cron.Cron, Cron.CronParseError> =>
  Cron.parse(cron, timeZone, { onDstOverlap })

/** The parsed expression of a schedule. Fails with `InvalidOption` if the name or an option is invalid. */
export const checkSchedule = (name: string, options: TimeOptions): Effect.Effect<Cron.Cron, TaskError> =>
  Effect.suspend(() => {
    const times = withDefaults(options)
    const { cron, missed, onDstOverlap, overlap, timeZone } = times
    if (name.length < 1 || name.length > maxNameLength) {
      return invalid(`the name of a schedule has ${name.length} characters: it must have 1 to ${maxNameLength}`)
    }
    const choices = [
      ["missed", missed, ["once", "skip", "all"]],
      ["overlap", overlap, ["start", "skip"]],
      ["onDstOverlap", onDstOverlap, ["earlier", "later", "both"]]
    ] as const
    for (const [option, value, values] of choices) {
      if (!(values as ReadonlyArray<string>).includes(value)) {
        return invalid(
          `${option} of the schedule "${name}" is ${JSON.stringify(value)}: it must be one of ${values.join(", ")}`
        )
      }
    }
    const parsed = parseTimes(times)
    if (Result.isFailure(parsed)) {
      const { input, message } = parsed.failure
      return invalid(
        `the schedule "${name}" has cron "${cron}" and timeZone "${timeZone}": ${message} ("${input ?? ""}")`
      )
    }
    return Effect.flatMap(Clock.currentTimeMillis, (now) =>
      timeAfter(parsed.success, now) === maxTime
        ? invalid(`cron of the schedule "${name}" is "${cron}": it has no time in the coming years`)
        : Effect.succeed(parsed.success))
  })

/** The times of a span that `TaskSchedules.backfill` starts tasks for. */
const maxBackfilled = 1000

/** The times of a schedule in a span. Fails with `InvalidOption` for a span that is not over, and for too many times. */
export const timesOf = (
  cron: Cron.Cron,
  { from, now, to = now }: { readonly from: number; readonly to?: number | undefined; readonly now: number }
): Effect.Effect<ReadonlyArray<number>, TaskError> =>
  Effect.suspend(() => {
    if (!(from <= to && to <= now)) {
      return invalid("the span of a backfill must begin before it ends, and must not end in the future")
    }
    const times: Array<number> = []
    for (let time = timeAfter(cron, from - 1); time < to; time = timeAfter(cron, time)) {
      if (times.push(time) > maxBackfilled) {
        return invalid(`the span has more than ${maxBackfilled} times: backfill shorter ones, one after the other`)
      }
    }
    return Effect.succeed(times)
  })

/** The times that are due. */
export interface DueTimes {
  /** The times that start tasks, in their order. */
  readonly times: ReadonlyArray<number>
  /** The first time that is not due. */
  readonly next: number
  /** Whether times were missed. */
  readonly hasMissed: boolean
}

/** The due times of a schedule whose next time is `nextAt`. */
export const findDue = (cron: Cron.Cron, { missed }: Times, nextAt: number, now: number): DueTimes => {
  const since = now - missedAfterMs
  const hasMissed = nextAt < since
  const times: Array<number> = []
  const count = missed === "skip" || !hasMissed ? 0 : missed === "once" ? 1 : maxMissed
  for (let before = since; times.length < count;) {
    const time = timeBefore(cron, before)
    if (time === undefined || time < nextAt) break
    times.push(before = time)
  }
  times.reverse()
  let next = hasMissed ? timeAfter(cron, since - 1) : nextAt
  for (; next <= now; next = timeAfter(cron, next)) times.push(next)
  return { times, next, hasMissed }
}
