/** The time of the database between two reads of its clock. */
import { describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { afterEach, beforeEach, expect, vi } from "vitest"
import { ClockCheck } from "../../src/internal/engine/clockCheck.ts"
import { storeFailure } from "../../src/internal/store/database.ts"
import { DatabaseClock } from "../../src/internal/store/databaseClock.ts"
import { day, machine } from "../engine/machine.ts"

let monotonic = 0

beforeEach(() => {
  monotonic = 5000
  vi.spyOn(performance, "now").mockImplementation(() => monotonic)
})
afterEach(() => void vi.restoreAllMocks())

/** A database whose time is given; a read of it takes some milliseconds before and after it has read its clock. */
const database = () => {
  const given = { offset: 1_000_000, before: 0, after: 0, reads: 0, isAway: false }
  const select = Effect.suspend(() => {
    given.reads++
    monotonic += given.before
    const time = given.offset + monotonic
    monotonic += given.after
    return given.isAway ? Effect.fail(storeFailure("no connection")) : Effect.succeed(time)
  })
  return Object.assign(given, { clock: new DatabaseClock(select) })
}

describe("the clock of the database", () => {
  it.effect("continues by the monotonic clock, whatever the clock of the machine does", () => {
    const wrong = machine(400 * day)
    return Effect.gen(function*() {
      const given = database()
      yield* given.clock.read
      monotonic += 7000
      wrong.ahead = -day
      expect(yield* given.clock.now).toBe(1_012_000)
      expect(given.reads).toBe(1)
    }).pipe(Effect.provide(wrong.layer))
  })

  it.effect("is read again after ten seconds, and continues while it cannot be read", () =>
    Effect.gen(function*() {
      const given = database()
      yield* given.clock.read
      given.offset += 3000
      monotonic += 9999
      expect(yield* given.clock.now).toBe(1_014_999)
      monotonic += 1
      expect(yield* given.clock.now).toBe(1_018_000)
      given.isAway = true
      monotonic += 10_000
      expect(yield* given.clock.now).toBe(1_028_000)
      expect(yield* given.clock.now).toBe(1_028_000)
      expect(given.reads).toBe(3)
    }).pipe(Effect.provide(machine(0).layer)))

  it.effect("does not jump within the time that a read takes", () =>
    Effect.gen(function*() {
      const given = Object.assign(database(), { before: 10, after: 10 })
      yield* given.clock.read
      const first = (yield* given.clock.now) - monotonic
      expect(first).toBe(given.offset - 10)
      Object.assign(given, { before: 500, after: 500 })
      yield* given.clock.read
      expect((yield* given.clock.now) - monotonic).toBe(first)
      Object.assign(given, { before: 0, after: 0 })
      yield* given.clock.read
      expect((yield* given.clock.now) - monotonic).toBe(given.offset)
    }).pipe(Effect.provide(machine(0).layer)))

  it.effect("is that of the program if it has a clock of its own, and that of the process on SQLite", () =>
    Effect.gen(function*() {
      const given = database()
      yield* given.clock.read
      yield* TestClock.setTime(42)
      expect(yield* given.clock.now).toBe(42)
      expect(given.clock.difference).toBe(0)
      const wrong = machine(day)
      const { now, read } = new DatabaseClock(undefined)
      yield* read
      const before = Date.now()
      expect(yield* Effect.provide(now, wrong.layer)).toBeGreaterThanOrEqual(before + day)
    }))

  it.effect("differs from that of the machine by what the time of a read does not explain", () => {
    const { clock, layer } = machine(0)
    return Effect.gen(function*() {
      const given = Object.assign(database(), { after: 4000 })
      /** Reads the clock of the database while that of the machine is ahead. */
      const read = (ahead: number) => {
        vi.spyOn(clock, "currentTimeMillisUnsafe").mockImplementation(() => given.offset + monotonic + ahead)
        return Effect.map(given.clock.read, () => given.clock.difference)
      }
      expect(yield* read(0)).toBe(0)
      expect(yield* read(-3000)).toBe(0)
      expect(yield* read(5000)).toBe(5000)
      expect(yield* read(-5000)).toBe(-1000)
      expect(yield* read(400 * day)).toBe(400 * day)
    }).pipe(Effect.provide(layer), Effect.provideService(Clock.Clock, clock))
  })
})

it.effect("a difference is reported above a second, and stops the process above a minute", () => {
  const { layer, lines } = machine(0)
  return Effect.gen(function*() {
    const clock = { now: Effect.succeed(0), difference: 0 }
    const { check } = new ClockCheck({ store: { clock } })
    const checked = (difference: number) => {
      lines.length = 0
      clock.difference = difference
      return Effect.map(
        Effect.repeat(check, { times: 2 }),
        (isRight) => [isRight, ...lines.map((line) => line.slice(0, 50))]
      )
    }
    expect(yield* checked(1000)).toEqual([true])
    expect(yield* checked(-1001)).toEqual([true, "Warn the clock of this machine is 1s behind that o"])
    expect(yield* checked(0)).toEqual([true])
    expect(yield* checked(60_000)).toEqual([true])
    expect(yield* checked(60_001)).toEqual([false, "Error the clock of this machine is 1m ahead of tha"])
    expect(yield* checked(-400 * day)).toEqual([false])
    expect(yield* checked(60_000)).toEqual([true, "Info the clock of this machine agrees with that of"])
    expect(yield* checked(-90_500)).toEqual([false, "Error the clock of this machine is 1m 30s 500ms be"])
  }).pipe(Effect.provide(layer))
})
