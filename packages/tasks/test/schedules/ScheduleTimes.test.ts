/**
 * The times of schedules around changes of the clocks.
 */
import { describe, expect, it } from "@effect/vitest"
import type * as Cron from "effect/Cron"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { checkSchedule, findDue, parseTimes, timeAfter, withDefaults } from "../../src/internal/engine/scheduleTimes.ts"
import { maxTime } from "../../src/internal/store/database.ts"
import type { TimeOptions, Times } from "@skein/tasks/TaskSchedules"
import * as Result from "effect/Result"

const minute = 60_000
const hour = 60 * minute
const cronOf = (options: TimeOptions): readonly [Cron.Cron, Times] => {
  const times = withDefaults(options)
  return [Result.getOrThrow(parseTimes(times)), times]
}

/** The times of a schedule in an interval, as texts. */
const timesIn = (options: TimeOptions, from: string, to: string): ReadonlyArray<string> => {
  const [cron] = cronOf(options)
  const found: Array<string> = []
  for (let time = timeAfter(cron, Date.parse(from) - 1); time <= Date.parse(to); time = timeAfter(cron, time)) {
    found.push(new Date(time).toISOString().slice(0, 16))
  }
  return found
}

/** Years in which the clocks change, in zones with unusual changes: by half an hour, by a day, and at midnight. */
const zones = [
  "UTC",
  "Europe/Berlin",
  "America/New_York",
  "Australia/Lord_Howe",
  "America/Asuncion",
  "Asia/Beirut",
  "Africa/Casablanca",
  "Pacific/Apia"
] as const
const expressions = [
  "30 2 * * *",
  "0,30 0-3 * * *",
  "0-59/20 * * * *",
  "0 3 1 * *",
  "15 2 * * sun",
  "0 0 29 2 *"
] as const
const policies = ["earlier", "later", "both"] as const
const Any = Schema.Struct({
  zone: Schema.Literals(zones),
  cron: Schema.Literals(expressions),
  onDstOverlap: Schema.Literals(policies),
  day: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 800 })),
  minutes: Schema.Array(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 3000 }))).check(Schema.isMaxLength(6))
})

describe("the times of a schedule", () => {
  it("start after a gap of the local time, and once in an hour that is repeated", () => {
    const berlin = { cron: "30 2 * * *", timeZone: "Europe/Berlin" }
    expect(timesIn(berlin, "2026-03-28T00:00Z", "2026-03-30T12:00Z")).toEqual([
      "2026-03-28T01:30",
      "2026-03-29T01:30",
      "2026-03-30T00:30"
    ])
    expect(timesIn(berlin, "2026-10-24T12:00Z", "2026-10-25T12:00Z")).toEqual(["2026-10-25T00:30"])
    expect(timesIn({ ...berlin, onDstOverlap: "later" }, "2026-10-24T12:00Z", "2026-10-25T12:00Z"))
      .toEqual(["2026-10-25T01:30"])
    expect(timesIn({ ...berlin, onDstOverlap: "both" }, "2026-10-24T12:00Z", "2026-10-25T12:00Z"))
      .toEqual(["2026-10-25T00:30", "2026-10-25T01:30"])
  })

  it("have an hour without a time in a repeated hour, except with `both` and in UTC", () => {
    const often = { cron: "0-59/30 * * * *", timeZone: "Europe/Berlin" }
    const night = ["2026-10-25T00:00Z", "2026-10-25T02:00Z"] as const
    expect(timesIn(often, ...night)).toEqual(["2026-10-25T00:00", "2026-10-25T00:30", "2026-10-25T02:00"])
    expect(timesIn({ ...often, onDstOverlap: "both" }, ...night)).toHaveLength(5)
    expect(timesIn({ ...often, timeZone: "UTC" }, ...night)).toHaveLength(5)
  })

  it("are the same with seconds, names and offsets of a zone", () => {
    expect(timesIn({ cron: "0 30 9 * jan mon", timeZone: "+02:00" }, "2026-01-01T00:00Z", "2026-01-20T00:00Z"))
      .toEqual(["2026-01-05T07:30", "2026-01-12T07:30", "2026-01-19T07:30"])
    expect(timesIn({ cron: "0-59/20 * * * * *" }, "2026-01-01T00:00Z", "2026-01-01T00:01Z")).toHaveLength(4)
  })

  it.prop(
    "start each time once, whenever processes look, also over changes of the clocks",
    [Any],
    ([{ cron, day, minutes, onDstOverlap, zone }]) => {
      const [parsed, times] = cronOf({ cron, timeZone: zone, onDstOverlap, missed: "all" })
      const begin = Date.UTC(2025, 0, 1) + day * 24 * hour
      const looks = minutes.map((minutes) => begin + minutes * minute).sort((a, b) => a - b)
      let nextAt = timeAfter(parsed, begin)
      const started: Array<number> = []
      for (const now of looks) {
        if (nextAt > now) continue
        const due = findDue(parsed, times, nextAt, now)
        started.push(...due.times)
        expect(due.next).toBeGreaterThan(now)
        nextAt = due.next
      }
      const expected: Array<number> = []
      const end = looks.at(-1) ?? begin
      for (let time = timeAfter(parsed, begin); time <= end; time = timeAfter(parsed, time)) expected.push(time)
      expect(started).toEqual(expected)
      expect(new Set(started).size).toBe(started.length)
    },
    { arbitrary: { runs: 150 } }
  )
})

describe("missed times", () => {
  const at = (text: string) => Date.parse(`2026-05-01T${text}Z`)
  const missed = (options: Partial<TimeOptions>, nextAt: string, now: string) => {
    const [cron, times] = cronOf({ cron: "0 * * * *", ...options })
    const { hasMissed, next, times: found } = findDue(cron, times, at(nextAt), at(now))
    return {
      hasMissed,
      next: new Date(next).toISOString().slice(11, 16),
      times: found.map((time) => new Date(time).toISOString().slice(11, 16))
    }
  }

  it("start a task for the latest, for none, or for the latest 1,000", () => {
    expect(missed({}, "03:00", "08:30")).toEqual({ hasMissed: true, next: "09:00", times: ["08:00"] })
    expect(missed({ missed: "skip" }, "03:00", "08:30")).toEqual({ hasMissed: true, next: "09:00", times: [] })
    expect(missed({ missed: "all" }, "03:00", "08:30").times).toEqual([
      "03:00",
      "04:00",
      "05:00",
      "06:00",
      "07:00",
      "08:00"
    ])
    const { times } = missed({ cron: "0-59/5 * * * * *", missed: "all" }, "03:00", "08:30")
    // Those of the last minute are not missed.
    expect(times).toHaveLength(1000 + 13)
    expect(times[0]).toBe("07:05")
  })

  it("are those of more than a minute ago", () => {
    expect(missed({ missed: "skip" }, "08:00", "08:01")).toEqual({ hasMissed: false, next: "09:00", times: ["08:00"] })
    expect(missed({ missed: "skip" }, "07:00", "08:01").times).toEqual(["08:00"])
    expect(missed({}, "06:00", "08:01").times).toEqual(["07:00", "08:00"])
    expect(missed({ cron: "0-59/20 * * * * *" }, "08:00", "08:00").times).toEqual(["08:00"])
  })

  it("cost the same after a year", () => {
    const [cron, times] = cronOf({ cron: "* * * * * *", missed: "all" })
    const due = findDue(cron, times, Date.UTC(2025, 0, 1), Date.UTC(2026, 0, 1))
    expect(due.times).toHaveLength(1061)
    expect(due.times.at(-1)).toBe(Date.UTC(2026, 0, 1))
  })
})

it.effect("rejects invalid options of a schedule", () =>
  Effect.gen(function*() {
    const problem = (name: string, options: TimeOptions) =>
      Effect.map(Effect.flip(checkSchedule(name, options)), ({ message, reason }) => `${reason._tag}: ${message}`)
    const cron = "0 2 * * *"
    expect(yield* problem("s", { cron: "0 25 * * *" })).toMatch(
      /^InvalidOption: the schedule "s" has cron "0 25 \* \* \*"/
    )
    expect(yield* problem("s", { cron: "@daily" })).toContain("Invalid number of segments")
    expect(yield* problem("s", { cron, timeZone: "Europe/Atlantis" })).toContain("Invalid time zone")
    expect(yield* problem("s", { cron: "0 0 30 2 *" })).toContain("it has no time in the coming years")
    expect(yield* problem("", { cron })).toContain("it must have 1 to 200")
    expect(yield* problem("x".repeat(201), { cron })).toContain("has 201 characters")
    expect(yield* problem("s", { cron, missed: "never" as "skip" })).toContain("once, skip, all")
    expect(yield* checkSchedule("x".repeat(200), { cron })).toBeDefined()
    expect(timeAfter(cronOf({ cron: "0 0 30 2 *" })[0], 0)).toBe(maxTime)
  }))
