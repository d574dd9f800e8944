/**
 * Starts the tasks of schedules. Each process looks for due schedules: when the next one is due, and at least once a
 * minute. One transaction moves a schedule from a time to the next one and creates the task of that time.
 */
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { TaskError } from "../../TaskError.ts"
import type { Backfilled, Definition, Schedule, TaskSchedules, Times } from "../../TaskSchedules.ts"
import { isFinal, type NewTask, type State } from "../../TaskState.ts"
import { toPageSize } from "../base/bounds.ts"
import { isUnreachable, maxTime } from "../store/database.ts"
import type { ScheduleRow } from "../store/schedules.ts"
import type { TaskStore } from "../store/store.ts"
import { fromJson, permanentError, toJson } from "../store/storedText.ts"
import { Alarm } from "./alarm.ts"
import { checkSchedule, findDue, parseTimes, timeAfter, timesOf, withDefaults } from "./scheduleTimes.ts"
import type { ClockCheck } from "./clockCheck.ts"
import type { StoreOutage } from "./storeOutage.ts"

/** The parts of an engine that start the tasks of schedules. */
export interface ScheduleOptions {
  readonly store: TaskStore["Service"]
  readonly outage: StoreOutage
  readonly clockCheck: ClockCheck
  readonly submit: (task: NewTask) => Effect.Effect<State, TaskError>
}

/** Milliseconds between two looks for due schedules, at most: another process may have added one. */
const lookIntervalMs = 60_000

/** Milliseconds between two looks for next times that are too late. */
const repairIntervalMs = 900_000

/** Milliseconds by which the time of another process may be ahead of that of this one. */
const maxLeadMs = 60_000

/** Milliseconds until the next attempt to start a task that could not be created. */
const retryMs = 1000

/** Schedules that are read together. */
const pageSize = 100

/** The defaults of the task of a schedule, which are those of `Tasks.layer`. */
export const defaults = {
  ttlMs: 86_400_000,
  pollIntervalMs: 1000,
  limits: {
    all: { live: 10_000, retained: 100_000 },
    client: { live: 100, retained: 1000 },
    tool: { live: 1000, retained: 10_000 }
  }
} as const

/** The stored parts of a definition, besides its rule and arguments. */
interface Stored extends Pick<Times, "missed" | "overlap"> {
  readonly task: Omit<NewTask, "args" | "key">
  readonly timeArgument?: string | undefined
}

const associatedData = (name: string): string => `schedule/${name}`

const ruleOf = ({ cron, onDstOverlap, timeZone }: Times): string => JSON.stringify([cron, timeZone, onDstOverlap])

const decode = ({ definition, rule }: ScheduleRow) =>
  Effect.map(
    Effect.all([fromJson<[string, string, Times["onDstOverlap"]]>(rule), fromJson<Stored>(definition)]),
    ([[cron, timeZone, onDstOverlap], { missed, overlap, task, timeArgument }]) => ({
      times: { cron, timeZone, onDstOverlap, missed, overlap } satisfies Times,
      task,
      timeArgument
    })
  )

const toSchedule = (row: ScheduleRow): Effect.Effect<Schedule, TaskError> =>
  Effect.map(decode(row), ({ task, timeArgument, times }) => ({
    ...times,
    name: row.name,
    tool: row.tool,
    pool: task.pool,
    owner: task.owner,
    timeArgument,
    isPaused: row.isPaused,
    nextAt: row.nextAt >= maxTime ? undefined : row.nextAt,
    lastAt: row.lastAt,
    lastTask: row.lastTask
  }))

const toCron = (name: string, times: Times) => {
  const parsed = parseTimes(times)
  return Result.isSuccess(parsed)
    ? Effect.succeed(parsed.success)
    : Effect.fail(permanentError(`the stored schedule "${name}" is invalid: ${parsed.failure.message}`))
}

/** The task of a definition, with defaults. JSON has no `Infinity`, which means that there is no limit. */
const storedTask = ({ task }: Definition): Stored["task"] => {
  const { args: _, ...given } = task
  const owner = given.owner ?? null
  const ttlMs = given.ttlMs === undefined ? defaults.ttlMs : given.ttlMs
  return {
    ...given,
    pool: given.pool ?? "default",
    owner,
    ttlMs: ttlMs === Infinity ? null : ttlMs,
    pollIntervalMs: given.pollIntervalMs ?? defaults.pollIntervalMs,
    caller: given.caller ?? { revision: "2026-07-28", capabilities: {}, info: undefined, principal: undefined },
    limits: given.limits ?? (owner === null ? { ...defaults.limits, client: {} } : defaults.limits)
  }
}

/** The key of the task of a time: the time has one task. */
const keyOf = (name: string, time: number): string => `schedule/${name}/${toText(time)}`

/** The arguments with the time for which a task is started. */
const withTime = (args: NewTask["args"], timeArgument: string | undefined, time: number): NewTask["args"] =>
  timeArgument === undefined ? args : { ...args, [timeArgument]: toText(time) }

/** Makes the service, and the effect that looks for due schedules forever. */
export const makeSchedules = ({ clockCheck, outage, store, submit }: ScheduleOptions) => {
  const { schedules } = store
  const alarm = new Alarm({ now: store.clock.now })
  /** The schedules that could not start a task in the last look, with their times, which are logged once. */
  let failures = new Map<string, number>()
  let repairAt: number | undefined

  const argsOf = (row: ScheduleRow): Effect.Effect<NewTask["args"], TaskError> =>
    Effect.flatMap(store.decrypt(row.args ?? "", associatedData(row.name)), fromJson<NewTask["args"]>)

  const isLive = (task: string | undefined): Effect.Effect<boolean, TaskError> =>
    task === undefined
      ? Effect.succeed(false)
      : Effect.map(store.get(task), (state) => state !== undefined && !isFinal(state))

  /** Starts the tasks of the due times. Returns the next time. */
  const start = Effect.fnUntraced(function*(row: ScheduleRow, now: number): Effect.fn.Return<number, TaskError> {
    const { name, nextAt } = row
    const { task, timeArgument, times } = yield* decode(row)
    const cron = yield* toCron(name, times)
    const due = findDue(cron, times, nextAt, now)
    const args = due.times.length === 0 ? {} : yield* argsOf(row)
    if (due.hasMissed && failures.get(name) !== nextAt) {
      yield* Effect.logInfo(
        `times of the schedule "${name}" were missed since ${toText(nextAt)}: missed is "${times.missed}"`
      )
    }
    if (due.times.length === 0) yield* schedules.move(row, nextAt, due.next)
    let from = nextAt
    let last = row.lastTask
    for (const [index, time] of due.times.entries()) {
      const to = due.times[index + 1] ?? due.next
      const started = Effect.gen(function*() {
        if (!(yield* schedules.move(row, from, to))) return "moved"
        if (times.overlap === "skip" && (yield* isLive(last))) return "skipped"
        const { id } = yield* submit({
          ...task,
          args: withTime(args, timeArgument, time),
          key: keyOf(name, time)
        })
        yield* schedules.noteTask(name, time, id)
        last = id
        return "started"
      })
      const outcome = yield* store.transaction(started)
      // Another process has started it, or the schedule has changed.
      if (outcome === "moved") return due.next
      if (outcome === "skipped") {
        yield* Effect.logInfo(
          `the schedule "${name}" started no task for ${toText(time)}: its last task has not ended`
        )
      }
      from = to
    }
    return due.next
  })

  /** Starts the tasks of a schedule. A failure that concerns only this schedule is logged, and retried later. */
  const tryStart = (row: ScheduleRow, now: number, failed: Map<string, number>): Effect.Effect<number, TaskError> =>
    Effect.catch(start(row, now), (error) => {
      // No other schedule can start a task either.
      if (isUnreachable(error)) return Effect.fail(error)
      const isKnown = failures.get(row.name) === row.nextAt
      failed.set(row.name, row.nextAt)
      return Effect.as(
        isKnown
          ? Effect.void
          : Effect.logWarning(
            `the schedule "${row.name}" could not start a task for ${toText(row.nextAt)}; it is retried`,
            error
          ),
        now + retryMs
      )
    })

  /** Starts the tasks of all due schedules. Returns when to look again. */
  const look: Effect.Effect<number, TaskError> = Effect.gen(function*() {
    const now = yield* store.clock.now
    let wakeAt = now + lookIntervalMs
    const failed = new Map<string, number>()
    let page: ReadonlyArray<ScheduleRow> = []
    do {
      page = yield* schedules.readNext(now, pageSize, page.at(-1))
      for (const row of page) {
        const nextAt = row.nextAt > now ? row.nextAt : yield* tryStart(row, now, failed)
        wakeAt = Math.min(wakeAt, nextAt)
      }
    } while (page.length === pageSize && page.at(-1)!.nextAt <= now)
    failures = failed
    return wakeAt
  })

  /**
   * Sets the next times that are later than the next time from now. A clock that was ahead has moved these schedules, and
   * nothing else would start their tasks before that time.
   */
  const repair = Effect.gen(function*() {
    const now = yield* store.clock.now
    if (repairAt !== undefined && now < repairAt && now >= repairAt - repairIntervalMs) return
    let page: ReadonlyArray<ScheduleRow> = []
    do {
      page = yield* schedules.list(page.at(-1)?.name ?? "", pageSize)
      for (const row of page) {
        if (row.isPaused) continue
        const cron = yield* Effect.orElseSucceed(
          Effect.flatMap(decode(row), ({ times }) => toCron(row.name, times)),
          () => undefined
        )
        // Another process may have started the task of a time that is just due.
        if (cron === undefined || row.nextAt <= timeAfter(cron, now + maxLeadMs)) continue
        const nextAt = timeAfter(cron, now)
        if (!(yield* schedules.move(row, row.nextAt, nextAt))) continue
        yield* Effect.logWarning(
          `the next time of the schedule "${row.name}" was too late, because a clock was wrong: it is ${
            toText(nextAt)
          } ` +
            `instead of ${row.nextAt >= maxTime ? "never" : toText(row.nextAt)}`
        )
      }
    } while (page.length === pageSize)
    repairAt = now + repairIntervalMs
  })

  const loop = Effect.gen(function*() {
    const looked = Effect.flatMap(clockCheck.check, (isRight) => isRight ? Effect.andThen(repair, look) : unknownTime)
    const wakeAt = yield* outage.guard(looked)
    const now = yield* store.clock.now
    yield* alarm.sleep(wakeAt === undefined ? retryMs : Math.max(wakeAt - now, 0))
  })

  const service: TaskSchedules["Service"] = {
    set: Effect.fnUntraced(function*(name, definition) {
      const cron = yield* checkSchedule(name, definition)
      const times = withDefaults(definition)
      const task = storedTask(definition)
      const { missed, overlap } = times
      const stored: Stored = { missed, overlap, task, timeArgument: definition.timeArgument }
      const args = yield* Effect.flatMap(
        toJson(definition.task.args ?? {}),
        (text) => store.encrypt(text, associatedData(name))
      )
      const row = yield* schedules.save({
        name,
        tool: task.tool,
        rule: ruleOf(times),
        definition: JSON.stringify(stored, (_, value: unknown) => value === Infinity ? undefined : value),
        args,
        nextAt: timeAfter(cron, yield* store.clock.now)
      })
      alarm.wakeBefore(row.nextAt)
      return yield* toSchedule(row)
    }),
    remove: schedules.remove,
    get: (name) =>
      Effect.flatMap(schedules.find(name), (row) => row === undefined ? Effect.undefined : toSchedule(row)),
    list: ({ after = "", limit } = {}) =>
      Effect.flatMap(schedules.list(after, toPageSize(limit)), (rows) => Effect.forEach(rows, toSchedule)),
    pause: schedules.pause,
    resume: Effect.fnUntraced(function*(name) {
      const row = yield* schedules.find(name)
      if (row === undefined) return false
      const cron = yield* toCron(name, (yield* decode(row)).times)
      const nextAt = timeAfter(cron, yield* store.clock.now)
      const isResumed = yield* schedules.resume(row, nextAt)
      if (isResumed) alarm.wakeBefore(nextAt)
      return isResumed
    }),
    trigger: (name) =>
      store.transaction(Effect.gen(function*() {
        // Like a look: first the schedule, then the task.
        const row = (yield* schedules.lock(name)) ? yield* schedules.find(name) : undefined
        if (row === undefined) return undefined
        const { task, timeArgument } = yield* decode(row)
        const now = yield* store.clock.now
        const state = yield* submit({ ...task, args: withTime(yield* argsOf(row), timeArgument, now) })
        yield* schedules.noteTask(name, now, state.id)
        return state
      })),
    backfill: Effect.fnUntraced(function*(name, { dryRun = false, from, to }) {
      const row = yield* schedules.find(name)
      if (row === undefined) return undefined
      const { task, timeArgument, times } = yield* decode(row)
      const spanned = yield* timesOf(yield* toCron(name, times), { from, to, now: yield* store.clock.now })
      const args = yield* argsOf(row)
      return yield* Effect.forEach(spanned, (at) => {
        const key = keyOf(name, at)
        const started: Effect.Effect<Backfilled, TaskError> = dryRun
          ? Effect.succeed({ at, task: undefined, isStarted: false })
          : Effect.map(
            submit({ ...task, args: withTime(args, timeArgument, at), key }),
            ({ id }) => ({ at, task: id, isStarted: true })
          )
        return Effect.flatMap(
          store.findKey({ ...task, key }),
          (found) => found === undefined ? started : Effect.succeed({ at, task: found, isStarted: false })
        )
      })
    })
  }
  return { service, loop }
}

/** When to look again is not known. */
const unknownTime = Effect.undefined

const toText = (time: number): string => new Date(time).toISOString()
