/** The timer for the expiry of all sessions. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { ExpiryTimer } from "../../../src/internal/http/limits/expiryTimer.ts"

/** A timer on the test clock, the times of its checks, and the number of fibers that it has started. */
const make = (next: (now: number) => number) =>
  Effect.gen(function*() {
    const clock = yield* Effect.clockWith(Effect.succeed)
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
    const start = now()
    const checks: Array<number> = []
    let timers = 0
    const timer = new ExpiryTimer(
      now,
      (effect) => {
        timers++
        return run(effect)
      },
      (now) => {
        checks.push(now - start)
        return next(now)
      }
    )
    return { timer, checks, in: (millis: number) => now() + millis, timers: () => timers }
  })

describe("ExpiryTimer", () => {
  it.effect("wakes at the earliest of all deadlines, and does not run without a deadline", () =>
    Effect.gen(function*() {
      const { checks, in: after, timer, timers } = yield* make(() => Infinity)
      for (let n = 0; n < 1_000; n++) timer.arm(after(60_000 + n))
      expect(timers()).toBe(1)
      timer.arm(after(30_000))
      expect(timers()).toBe(2)
      yield* TestClock.adjust("29999 millis")
      expect(checks).toEqual([])
      yield* TestClock.adjust("1 millis")
      expect(checks).toEqual([30_000])
      expect(timer.wakeAt).toBe(Infinity)
      yield* TestClock.adjust("1 day")
      expect(checks).toEqual([30_000])
      expect(timers()).toBe(2)
    }))

  it.effect("checks at most once a second, however close the deadlines are", () =>
    Effect.gen(function*() {
      const { checks, in: after, timer } = yield* make((now) => now + 1)
      timer.arm(after(10))
      yield* TestClock.adjust("3010 millis")
      expect(checks).toEqual([10, 1010, 2010, 3010])
      timer.disarm()
      yield* TestClock.adjust("1 minute")
      expect(checks).toHaveLength(4)
    }))

  it.effect("meets a deadline beyond the longest delay of a timer", () =>
    Effect.gen(function*() {
      const month = 30 * 24 * 3_600_000
      let due = Infinity
      const { checks, in: after, timer } = yield* make((now) => now >= due ? Infinity : due)
      due = after(month)
      timer.arm(due)
      yield* TestClock.adjust("40 days")
      expect(checks.at(-1)).toBe(month)
    }))
})
