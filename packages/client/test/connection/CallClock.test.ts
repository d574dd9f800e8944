/** The clock of a client's timeouts. */
import { assert, describe, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { CallClock, monotonicMillis } from "../../src/internal/base/callClock.ts"

const millis = Schema.Int.pipe(Schema.check(Schema.isBetween({ minimum: 0, maximum: 1_000 })))
const waits = Schema.Array(Schema.Struct({ from: millis, millis }))

describe("the clock of calls", () => {
  it.effect.prop("stands still while at least one wait lasts", [waits], ([waits]) =>
    Effect.gen(function*() {
      const clock = new CallClock()
      const now = Effect.map(Clock.Clock, monotonicMillis)
      const start = yield* now
      for (const { from, millis } of waits) {
        const wait = Effect.andThen(Effect.sleep(from), clock.stoppedDuring(Effect.sleep(millis)))
        yield* Effect.forkChild(wait, { startImmediately: true })
      }
      const covered = new Set(waits.flatMap(({ from, millis }) => Array.from({ length: millis }, (_, n) => from + n)))
      let expected = 0
      for (let time = 0; time <= 2_000; time += 250) {
        if (time > 0) yield* TestClock.adjust(250)
        for (let n = time - 250; n >= 0 && n < time; n++) if (!covered.has(n)) expected++
        assert.strictEqual(clock.at(yield* now) - start, expected)
      }
    }), { arbitrary: { runs: 30 } })

  it.effect("does not wake a timer more than ten times in a second while it stands still", () =>
    Effect.gen(function*() {
      const clock = new CallClock()
      let reads = 0
      const counted = new Proxy(clock, {
        get: (target, name) => {
          if (name === "at") reads++
          const value = Reflect.get(target, name, target)
          return typeof value === "function" ? value.bind(name === "sleep" ? counted : target) : value
        }
      })
      const waiting = yield* Effect.forkChild(clock.stoppedDuring(Effect.sleep("1 minute")), { startImmediately: true })
      const timer = yield* Effect.forkChild(counted.sleep(1), { startImmediately: true })
      for (let n = 0; n < 6_000; n++) yield* TestClock.adjust(10)
      assert.isBelow(reads, 605)
      yield* Fiber.join(waiting)
      yield* TestClock.adjust(100)
      yield* Fiber.join(timer)
    }))

  it.effect("goes on after a wait that was interrupted, and times an effect out in its own time", () =>
    Effect.gen(function*() {
      const clock = new CallClock()
      const waiting = yield* Effect.forkChild(clock.stoppedDuring(Effect.never), { startImmediately: true })
      const timed = yield* Effect.forkChild(clock.timeoutOption(Effect.never, "5 seconds"), { startImmediately: true })
      yield* TestClock.adjust("1 hour")
      assert.strictEqual(timed.pollUnsafe(), undefined)
      yield* Fiber.interrupt(waiting)
      yield* TestClock.adjust("6 seconds")
      assert.deepStrictEqual(yield* Fiber.join(timed), Option.none())
    }))
})
