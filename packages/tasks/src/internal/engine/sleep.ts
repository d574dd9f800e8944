/**
 * Durable sleeps: `Step.sleep`, and the long pauses between the attempts of a step.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { maxMemoryPauseMs } from "./engineContext.ts"
import { claimName, misplacedInStep } from "./placement.ts"
import type { Run } from "./run.ts"
import type { EventKey } from "./taskLog.ts"

/** The latest end of a timer, in milliseconds of Unix time: it must be a valid date. */
const maxTimerEnd = 8.64e15

export const firedEvent = (name: string): EventKey => ({ kind: "fired", name, attempt: 1 })
const timerEvent = (name: string): EventKey => ({ kind: "timer", name, attempt: 1 })

/** The end of a timer, in milliseconds of Unix time. Sets it if it is not set. */
export const timerEnd = (run: Run, name: string, milliseconds: number): Effect.Effect<number> =>
  Effect.suspend(() => {
    const timer = run.log.find(timerEvent(name))
    if (timer !== undefined) return Effect.succeed(timer.at)
    return Effect.flatMap(run.now, (now) => {
      const end = Math.min(now + milliseconds, maxTimerEnd)
      return Effect.as(run.storeUnobserved(timerEvent(name), end), end)
    })
  })

/** Waits until a time, durably, under a name that is unique in the task. */
export const sleepUntil = (run: Run, name: string, end: number): Effect.Effect<void> =>
  Effect.withFiber((fiber) =>
    run.observe({
      events: [firedEvent(name)],
      dueAt: () => run.isCollecting && !run.goesOnIn(fiber) ? Infinity : end,
      arrive: Effect.succeed(firedEvent(name)),
      next: () => Effect.void
    })
  )

/** Whether a sleep has ended in an earlier run. */
export const hasFired = (run: Run, name: string): boolean => run.log.find(firedEvent(name)) !== undefined

/** Implements `Step.sleep`. */
export const sleep = (run: Run, given: string, duration: Duration.Input): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const problem = misplacedInStep(fiber, `sleep "${given}"`) ?? claimName(run, "sleep", given, fiber)
    // Retries and questions have timers too.
    const name = `sleep/${given}`
    if (problem !== undefined) return problem
    // Programs without types may leave out the name.
    if (duration === undefined) {
      return Effect.die(new TypeError(`sleep needs a name and a duration: sleep("rest", ${JSON.stringify(given)})`))
    }
    const milliseconds = Math.ceil(Duration.toMillis(duration))
    if (milliseconds <= 0) return Effect.void
    if (run.undoReason !== undefined) return run.preventSuspension(Effect.sleep(milliseconds))
    if (milliseconds <= maxMemoryPauseMs) {
      return run.record(
        { kind: "fired", name, attempt: 1, decode: () => Effect.void, passed: Effect.void },
        (restore) => restore(Effect.as(Effect.sleep(milliseconds), { text: "", failed: false }))
      )
    }
    run.noteFiber(fiber)
    if (hasFired(run, name)) return sleepUntil(run, name, 0)
    const timed = Effect.flatMap(
      run.preventSuspension(timerEnd(run, name, milliseconds)),
      (end) => sleepUntil(run, name, end)
    )
    return run.log.find(timerEvent(name)) === undefined ? run.startNew(firedEvent(name), timed, Effect.void) : timed
  })
