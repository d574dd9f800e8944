/**
 * The events that a run waits for and that may take long: answers, and the ends of sleeps. Once every fiber of a run
 * waits for such an event, the run is suspended and takes no memory until an event arrives.
 *
 * The workflow engine interrupts a run, steps included, when an awaited deferred is done. So the run names its
 * deferreds to the workflow engine only when it is about to be suspended. While steps still execute, it checks for
 * events at intervals instead.
 */
import type * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Latch from "effect/Latch"
import type * as Scope from "effect/Scope"
import type { WorkflowEngine, WorkflowInstance } from "effect/workflow/WorkflowEngine"
import type { History } from "./history.ts"

type EngineServices = WorkflowEngine | WorkflowInstance

/** The part of `Run` that suspension needs. */
export interface SuspendableRun {
  /** `pollInterval` is in milliseconds. */
  readonly engine: { readonly pollInterval: number }
  readonly history: History
  readonly instance: WorkflowInstance["Service"]
  readonly context: Context.Context<EngineServices>
  readonly scope: Scope.Scope
  /** Whether fibers run beside the root fiber, which the run may not know yet. */
  readonly hasBranches: boolean
  /** Whether the run continues although all of its known parts wait. */
  readonly runsToEnd: boolean
  /** Whether the workflow engine is looking up the result of a step. */
  readonly isLookingUp: boolean
  /** Records that a fiber has reached a part of the task. */
  readonly noteFiber: (fiber: Fiber.Fiber<unknown, unknown>) => void
  /** Interrupts the root fiber and the calling fiber. */
  readonly interruptSelf: Effect.Effect<never>
}

/** The waiting fibers of a run. */
export interface Suspension {
  /** Whether a fiber waits. */
  readonly isWaiting: boolean
  /** Whether an event has arrived whose fiber must still wait for earlier events. */
  readonly hasUndelivered: boolean
  /** Records that another fiber started something, so that the run is not suspended now. */
  readonly noteActivity: () => void
  /** Checks for events now. */
  readonly checkNow: () => void
  /**
   * Waits until `check` returns an effect, and continues with that. Of several events that have arrived, the fibers
   * continue in the order of their ranks; each one continues after the fiber before it waits again or has received its
   * next event. So a branch that has lost a race loses it in each later run too, even if its own event has arrived
   * meanwhile.
   */
  readonly wait: <A, E>(wait: Wait<A, E>) => Effect.Effect<A, E>
}

/** The event that a fiber waits for. */
export interface Wait<A, E> {
  /** The names of its events in the history of the run. */
  readonly events: ReadonlyArray<string>
  /** The deferreds that are done when `check` may return an effect; none for an event that has already arrived. */
  readonly deferreds: ReadonlyArray<string>
  /** The effect to continue with; `undefined` while the event has not arrived. */
  readonly check: Effect.Effect<Effect.Effect<A, E> | undefined>
  /** The position of the event among those that have arrived. */
  readonly rank: Effect.Effect<bigint>
}

/**
 * Milliseconds that code between two steps may take while another branch waits. Slower code is suspended together with
 * that branch, and starts again in the next run.
 */
export const maxGapMs = 2000

/** A waiting fiber. */
interface Waiter extends Wait<unknown, unknown> {
  readonly end: Deferred.Deferred<unknown, unknown>
}

type Arrival = readonly [waiter: Waiter, next: Effect.Effect<unknown, unknown>]

const sortByRank = (arrivals: ReadonlyArray<Arrival>) =>
  Effect.map(
    Effect.forEach(arrivals, ([waiter, next]) => Effect.map(waiter.rank, (rank) => ({ waiter, next, rank }))),
    (all) => all.toSorted((a, b) => a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : 0)
  )

/** Makes the suspension of a run. */
export const makeSuspension = (run: SuspendableRun): Suspension => {
  const waiters = new Set<Waiter>()
  const hasActivity = Latch.makeUnsafe()
  const checkRequested = Latch.makeUnsafe()
  let isWatching = false
  let hasUndelivered = false
  /** The deferreds that the workflow engine currently waits for. */
  let registered: ReadonlyArray<string> = []

  const register = (): void => {
    const { awaitedDeferreds } = run.instance
    registered = [...waiters].flatMap(({ deferreds }) => deferreds)
    for (const name of registered) awaitedDeferreds.set(name, (awaitedDeferreds.get(name) ?? 0) + 1)
  }

  const unregister = (): void => {
    const { awaitedDeferreds } = run.instance
    const names = registered
    registered = []
    for (const name of names) {
      const count = awaitedDeferreds.get(name) ?? 0
      if (count > 1) awaitedDeferreds.set(name, count - 1)
      else awaitedDeferreds.delete(name)
    }
  }

  /** The deferreds of a suspended run stay registered. */
  const noteActivity = (): void => {
    if (run.instance.suspended) return
    hasActivity.openUnsafe()
    unregister()
  }

  const checkNow = (): void => {
    checkRequested.openUnsafe()
    noteActivity()
  }

  /**
   * Resumes fibers whose event has arrived: all fibers before whose event no other event is expected, or only the first
   * one if the run is otherwise idle (`isIdle`). With `skipMissing` the earlier events are not expected to arrive, and
   * the first fiber is resumed without them.
   */
  const deliver = (isIdle: boolean, skipMissing: boolean) =>
    Effect.gen(function*() {
      const arrivals: Array<Arrival> = []
      for (const waiter of waiters) {
        const next = yield* waiter.check
        if (next !== undefined) arrivals.push([waiter, next])
      }
      if (arrivals.length > 0 && run.hasBranches) yield* run.history.load
      let isResumed = false
      for (const { next, rank, waiter } of yield* sortByRank(arrivals)) {
        if (skipMissing) run.history.skipBefore(rank)
        if (run.history.hasPendingBefore(rank)) break
        yield* yieldToResumed
        // It may have lost a race to the fiber before.
        if (!waiters.delete(waiter)) continue
        isResumed = true
        run.history.markReached(waiter.events)
        Deferred.doneUnsafe(waiter.end, next)
        if (isIdle || skipMissing) break
      }
      hasUndelivered = arrivals.length > 0 && !isResumed
      return arrivals.length === 0 ? "nothing" : isResumed ? "resumed" : "blocked"
    })

  /**
   * Suspends the run. The waiting fibers are children of the run's root fiber, except for detached ones. The run is
   * marked as suspended before any of them ends: the first one may end the run, and the workflow engine could then take
   * it for interrupted.
   */
  const suspend = Effect.suspend(() => {
    run.instance.suspended = true
    for (const { end } of waiters) Deferred.doneUnsafe(end, run.interruptSelf)
    return run.interruptSelf
  })

  /**
   * Waits for activity for up to `maxGapMs`: code between two steps takes time, and does not announce its next step.
   */
  const startsSoon = Effect.raceFirst(
    Effect.as(hasActivity.await, true),
    Effect.as(Effect.sleep(maxGapMs), false)
  )

  const watch = Effect.gen(function*() {
    let skipMissing = false
    while (waiters.size > 0) {
      const isIdle = yield* Effect.raceFirst(
        Effect.as(awaitIdle(run.instance.activityState), true),
        Effect.as(Effect.raceFirst(checkRequested.await, Effect.sleep(run.engine.pollInterval)), false)
      )
      hasActivity.closeUnsafe()
      checkRequested.closeUnsafe()
      if (isIdle) register()
      const found = yield* deliver(isIdle, skipMissing)
      skipMissing = false
      if (found === "blocked") {
        unregister()
        skipMissing = !(yield* startsSoon) && !run.isLookingUp
        continue
      }
      if (isIdle && found === "nothing" && waiters.size > 0) {
        if (run.runsToEnd) {
          unregister()
          break
        }
        if (!(run.hasBranches && (yield* startsSoon))) return yield* suspend
      }
      unregister()
    }
    isWatching = false
  })

  const startWatching = Effect.suspend(() => {
    if (isWatching) return Effect.void
    isWatching = true
    return Effect.asVoid(Effect.forkIn(Effect.setContext(watch, run.context), run.scope))
  })

  return {
    get isWaiting() {
      return waiters.size > 0
    },
    get hasUndelivered() {
      return hasUndelivered
    },
    noteActivity,
    checkNow,
    wait: <A, E>(wait: Wait<A, E>) =>
      Effect.withFiber((fiber) => {
        run.noteFiber(fiber)
        const end = Deferred.makeUnsafe<A, E>()
        const waiter: Waiter = { ...wait, end: end as Waiter["end"] }
        waiters.add(waiter)
        if (wait.deferreds.length === 0) checkNow()
        else noteActivity()
        return Effect.ensuring(
          Effect.andThen(startWatching, Deferred.await(end)),
          Effect.sync(() => {
            waiters.delete(waiter)
            if (waiters.size === 0) hasUndelivered = false
            run.history.markReached(wait.events)
            noteActivity()
          })
        )
      })
  }
}

/**
 * Lets the fiber that was resumed before continue, and win a race or interrupt others if that takes no more than these
 * turns.
 */
export const yieldToResumed = Effect.repeat(Effect.yieldNow, { times: 3 })

const yieldTwice = Effect.andThen(Effect.yieldNow, Effect.yieldNow)

/**
 * Waits until no activity is running. Yields twice first, so that fibers that were already runnable can start an
 * activity or begin to wait. Unlike the workflow engine's own wait, it can be interrupted.
 */
const awaitIdle = (state: WorkflowInstance["Service"]["activityState"]): Effect.Effect<void> =>
  Effect.andThen(
    yieldTwice,
    Effect.suspend(() => state.count === 0 ? Effect.void : Effect.andThen(state.latch.await, awaitIdle(state)))
  )
