/** The one timer of all sessions. */
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as TestClock from "effect/testing/TestClock"
import { Sweeper } from "../../../src/internal/http/sessionExpiry.ts"

/** A sweeper on the test's clock, the times at which it swept, and how many timers there have been. */
const make = (next: (now: number) => number) =>
  Effect.gen(function*() {
    const clock = yield* Effect.clockWith(Effect.succeed)
    const run = Effect.runForkWith(yield* Effect.context<never>())
    const now = () => Number(clock.monotonicTimeNanosUnsafe() / 1_000_000n)
    const start = now()
    const swept: Array<number> = []
    let timers = 0
    const sweeper = new Sweeper(
      now,
      (effect) => {
        timers++
        return run(effect)
      },
      (now) => {
        swept.push(now - start)
        return next(now)
      }
    )
    return { sweeper, swept, in: (millis: number) => now() + millis, timers: () => timers }
  })

describe("the timer", () => {
  it.effect("one for all deadlines: it wakes at the earliest, and is told the next; none when there is none", () =>
    Effect.gen(function*() {
      const { in: after, sweeper, swept, timers } = yield* make(() => Infinity)
      for (let n = 0; n < 1_000; n++) sweeper.arm(after(60_000 + n))
      expect(timers()).toBe(1)
      sweeper.arm(after(30_000))
      expect(timers()).toBe(2)
      yield* TestClock.adjust("29999 millis")
      expect(swept).toEqual([])
      yield* TestClock.adjust("1 millis")
      expect(swept).toEqual([30_000])
      expect(sweeper.wakeAt).toBe(Infinity)
      yield* TestClock.adjust("1 day")
      expect(swept).toEqual([30_000])
      expect(timers()).toBe(2)
    }))

  it.effect("however close the deadlines are, it sweeps once a second at most", () =>
    Effect.gen(function*() {
      const { in: after, sweeper, swept } = yield* make((now) => now + 1)
      sweeper.arm(after(10))
      yield* TestClock.adjust("3010 millis")
      expect(swept).toEqual([10, 1010, 2010, 3010])
      sweeper.disarm()
      yield* TestClock.adjust("1 minute")
      expect(swept).toHaveLength(4)
    }))

  it.effect("a deadline beyond what a timer can wait for is met all the same", () =>
    Effect.gen(function*() {
      const month = 30 * 24 * 3_600_000
      let due = Infinity
      const { in: after, sweeper, swept } = yield* make((now) => now >= due ? Infinity : due)
      due = after(month)
      sweeper.arm(due)
      yield* TestClock.adjust("40 days")
      expect(swept.at(-1)).toBe(month)
    }))
})
