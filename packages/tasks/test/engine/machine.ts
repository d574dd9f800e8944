/** Machines whose clocks are wrong. */
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import { IsMachineClock } from "../../src/internal/store/databaseClock.ts"

/** Milliseconds of a day. */
export const day = 86_400_000

/** A machine whose clock is ahead by some milliseconds, and the lines that its process logs. */
export const machine = (milliseconds: number) => {
  const right = Context.get(Context.empty(), Clock.Clock)
  const at = { ahead: milliseconds }
  const millis = () => right.currentTimeMillisUnsafe() + at.ahead
  const nanos = () => right.currentTimeNanosUnsafe() + BigInt(at.ahead) * 1_000_000n
  const clock: Clock.Clock = {
    currentTimeMillisUnsafe: millis,
    currentTimeMillis: Effect.sync(millis),
    currentTimeNanosUnsafe: nanos,
    currentTimeNanos: Effect.sync(nanos),
    monotonicTimeNanosUnsafe: () => right.monotonicTimeNanosUnsafe(),
    monotonicTimeNanos: right.monotonicTimeNanos,
    sleep: (duration) => right.sleep(duration)
  }
  const lines: Array<string> = []
  const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel} ${String(message)}`))
  return Object.assign(at, {
    clock,
    lines,
    layer: Layer.mergeAll(
      Layer.succeed(Clock.Clock, clock),
      Layer.succeed(IsMachineClock, (each: Clock.Clock) => each === clock),
      Logger.layer([logger])
    )
  })
}
