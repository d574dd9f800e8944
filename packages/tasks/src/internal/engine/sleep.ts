/**
 * Durable sleep.
 */
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as DurableClock from "effect/workflow/DurableClock"
import { WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { steadily } from "./activities.ts"
import { shortPause } from "./engineContext.ts"
import { misplaced, take } from "./places.ts"
import type { Run } from "./run.ts"
import { escape } from "../store/stored.ts"
import { TaskRun } from "./workflow.ts"

/** A clock of the engine. */
export interface Clock {
  /** The deferred that it tells. */
  readonly name: string
  /** Whether its time has come. */
  readonly rang: Effect.Effect<boolean>
  /** Where it stands among those that rang. */
  readonly rank: Effect.Effect<bigint>
  /** Sets it, unless it is set. */
  readonly set: Effect.Effect<void>
}

/** Milliseconds that a clock is set to at most, where it is to ring later, or never: its time has to be a date. */
const longest = 8e15

/** The deferred that the clock of this name tells. */
export const clockName = (name: string): string => `DurableClock/${escape(name)}`

/** The clock of this name: it rings once. */
export const clockOf = (
  run: Pick<Run, "host" | "instance" | "executionId">,
  name: string,
  milliseconds: number
): Clock => {
  const clock = DurableClock.make({ name: escape(name), duration: Math.min(milliseconds, longest) })
  const { engine, rank } = run.host
  return {
    name: clockName(name),
    rang: Effect.map(
      Effect.provideService(steadily(engine.deferredResult(clock.deferred)), WorkflowInstance, run.instance),
      Option.isSome
    ),
    rank: rank(run.executionId, clock.deferred.name),
    set: steadily(engine.scheduleClock(TaskRun, { executionId: run.executionId, clock }))
  }
}

/** How a wait ends that is over. */
const over = Effect.succeed(Effect.void)

/**
 * Sleeps durably, under a name that is not used twice. One that was over before waits until all is known of what stands beside it: it
 * may have lost a race, and has to lose it again.
 */
export const sleepUntil = (run: Run, name: string, milliseconds: number): Effect.Effect<void> => {
  const clock = clockOf(run, name, milliseconds)
  const waits = { events: [clock.name], rank: clock.rank }
  return Effect.flatMap(
    run.hold(clock.rang),
    (rang) =>
      rang ? run.parking.wait({ ...waits, awaits: [], look: over }) : Effect.andThen(
        run.hold(clock.set),
        run.parking.wait({
          ...waits,
          awaits: [clock.name],
          look: Effect.map(clock.rang, (rang) => rang ? Effect.void : undefined)
        })
      )
  )
}

/** See `Step.sleep`. */
export const sleep = (run: Run, name: string, duration: Duration.Input): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const problem = misplaced(fiber, `Sleep "${name}"`) ?? take(run, "sleep", name)
    if (problem !== undefined) return problem
    const milliseconds = Math.ceil(Duration.toMillis(duration))
    if (milliseconds <= 0) return Effect.void
    if (run.undoing !== undefined) return run.hold(Effect.sleep(milliseconds))
    return milliseconds > shortPause
      ? sleepUntil(run, `sleep/${name}`, milliseconds)
      : run.remember(
        { name: `sleep/${name}`, attempt: 1, open: () => Effect.void },
        (restore) => restore(Effect.as(Effect.sleep(milliseconds), ""))
      )
  })
