/**
 * Runs the commands of `skein tasks` on the schedules of a store.
 */
import { type Backfilled, type Schedule, TaskSchedules } from "@skein/tasks/TaskSchedules"
import * as Clock from "effect/Clock"
import type * as Effect from "effect/Effect"
import { quoteName } from "../base/format.ts"
import type { CommandFailed, Process } from "../base/process.ts"
import { nothing, print, type StoreLine, withStore } from "./tasks.ts"
import type { Colors } from "../base/colors.ts"
import { cell, table } from "../base/textTable.ts"
import { formatAge } from "../base/columns.ts"

/** A command about one schedule. */
export interface ScheduleLine extends StoreLine {
  readonly schedule: string
}

/** The most schedules that are listed. */
const maxListed = 1000

const describe = (schedules: ReadonlyArray<Schedule>, now: number, colors?: Colors): string =>
  schedules.length === 0 ? "There are no schedules." : table(
    ["SCHEDULE", "TOOL", "TIMES", "ZONE", "NEXT", "LAST", "LAST TASK"],
    schedules.map(({ cron, isPaused, lastAt, lastTask = "", name, nextAt, timeZone, tool }) => [
      cell(name),
      cell(tool),
      cell(cron),
      cell(timeZone),
      isPaused ? "paused" : nextAt === undefined ? "never" : `in ${formatAge(Math.max(nextAt - now, 0))}`,
      lastAt === undefined ? "" : `${formatAge(now - lastAt)} ago`,
      lastTask
    ]),
    colors
  )

/** `skein tasks schedules`. */
export const list = (line: StoreLine): Effect.Effect<void, CommandFailed, Process> =>
  withStore(line, function*() {
    const { list } = yield* TaskSchedules
    const schedules = yield* list({ limit: maxListed })
    const now = yield* Clock.currentTimeMillis
    yield* print(line, schedules, (colors) => describe(schedules, now, colors))
  })

/** A command that changes a schedule: `refused` says why nothing has changed, unless the schedule does not exist. */
const change = (
  use: "pause" | "resume" | "remove",
  changed: (name: string) => string,
  refused: (name: string) => string
) =>
(line: ScheduleLine): Effect.Effect<void, CommandFailed, Process> =>
  withStore(line, function*() {
    const schedules = yield* TaskSchedules
    const name = line.schedule
    if (yield* schedules[use](name)) {
      return yield* print(line, { schedule: name, done: use }, () => changed(quoteName(name)))
    }
    return yield* (yield* schedules.get(name)) === undefined ? unknown(name) : nothing(refused(quoteName(name)))
  })

const unknown = (name: string) => nothing(`there is no schedule ${quoteName(name)}`)

const trigger = (line: ScheduleLine): Effect.Effect<void, CommandFailed, Process> =>
  withStore(line, function*() {
    const { trigger } = yield* TaskSchedules
    const state = yield* trigger(line.schedule)
    if (state === undefined) return yield* unknown(line.schedule)
    return yield* print(line, { schedule: line.schedule, task: state.id }, () => `The task is ${state.id}`)
  })

const describeTimes = (times: ReadonlyArray<Backfilled>, dryRun: boolean, colors?: Colors): string => {
  const rows = times.map(({ at, isStarted, task }) => [
    new Date(at).toISOString(),
    isStarted ? "started" : task === undefined ? "would start" : "exists",
    task ?? ""
  ])
  const count = times.filter(({ isStarted, task }) => isStarted || task === undefined).length
  const done = `${count} of ${times.length} times ${dryRun ? "would start" : "have started"} a task.`
  return times.length === 0 ? "The span has no times." : `${table(["TIME", "", "TASK"], rows, colors)}\n\n${done}`
}

/** `skein tasks backfill`. */
export const backfill = (
  line: ScheduleLine & { readonly from: number; readonly to: number | undefined; readonly dryRun: boolean }
): Effect.Effect<void, CommandFailed, Process> =>
  withStore(line, function*() {
    const { backfill } = yield* TaskSchedules
    const { dryRun, from, schedule, to } = line
    const times = yield* backfill(schedule, { from, to, dryRun })
    if (times === undefined) return yield* unknown(schedule)
    return yield* print(line, { schedule, dryRun, times }, (colors) => describeTimes(times, dryRun, colors))
  })

/** The commands that change one schedule. */
export const changes = {
  trigger,
  pause: change("pause", (name) => `${name} is paused.`, (name) => `${name} is paused already`),
  resume: change("resume", (name) => `${name} goes on.`, (name) => `${name} is not paused`),
  remove: change("remove", (name) => `${name} is removed.`, (name) => `${name} is not removed`)
} as const
