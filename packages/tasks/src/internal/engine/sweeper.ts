/**
 * The sweeper: cancels expired tasks, and deletes them after their compensations. Any number of processes may do it.
 */
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import { isFinal } from "../../TaskState.ts"
import type { SweepRow, TaskStore } from "../store/store.ts"
import { logAnnotations } from "../base/text.ts"
import type { Alarm } from "./alarm.ts"
import { cancelChildren } from "./children.ts"
import type { ClockCheck } from "./clockCheck.ts"
import type { StoreOutage } from "./storeOutage.ts"

/** The services and options of the sweeper. Times are in milliseconds. */
export interface SweeperOptions {
  readonly store: TaskStore["Service"]
  /** Between two checks for expired tasks, at most. */
  readonly maxInterval: number
  /** Ends the pause when a task is created that expires earlier. */
  readonly expiryAlarm: Alarm
  readonly outage: StoreOutage
  readonly clockCheck: ClockCheck
  /**
   * The time from the expiry of a task until it is deleted even if its compensations have not completed, unless it waits
   * for other code.
   */
  readonly undoTimeout: number
}

/**
 * The number of tasks that are read and deleted together, and the milliseconds between two such reads, which leave time
 * for other work.
 */
const pageSize = 500
const pagePauseMs = 10

/** Milliseconds between two checks for tasks that have expired. They double while nothing happens. */
const minPauseMs = 1000

/** Cancels or deletes the tasks of a page. Returns whether a task has changed. */
const sweepPage = Effect.fnUntraced(function*(
  { store, undoTimeout }: SweeperOptions,
  page: ReadonlyArray<SweepRow>
): Effect.fn.Return<boolean, TaskError> {
  const now = yield* store.clock.now
  const removable: Array<string> = []
  let hasChanged = false
  for (const row of page) {
    const overdue = now - row.expiresAt - undoTimeout
    if (row.settled) removable.push(row.id)
    else if (!isFinal(row)) {
      hasChanged = true
      const statusMessage = "The task exceeded its time to live"
      yield* store.finish(row.id, { status: "cancelled", statusMessage })
    } else if (overdue >= 0 && !row.waitsForCode) {
      hasChanged = true
      yield* Effect.annotateLogs(
        Effect.logWarning("deleting an expired task whose compensations have not finished within undoTimeout"),
        logAnnotations(row)
      )
      yield* cancelChildren(store, row.id)
      yield* store.settle(row.id)
    }
  }
  if (removable.length === 0) return hasChanged
  yield* store.remove(removable)
  return true
})

/** Cancels or deletes all expired tasks. Returns whether a task has changed. */
const sweepAll = Effect.fnUntraced(function*(sweeper: SweeperOptions): Effect.fn.Return<boolean, TaskError> {
  let after: SweepRow | undefined
  let hasChanged = false
  while (true) {
    const page: ReadonlyArray<SweepRow> = yield* sweeper.store.findExpired(pageSize, after)
    if (page.length > 0 && (yield* sweepPage(sweeper, page))) hasChanged = true
    after = page.at(-1)
    if (page.length < pageSize) return hasChanged
    yield* Effect.sleep(pagePauseMs)
  }
})

/** Cancels and deletes expired tasks, forever. */
export const removeExpired = (sweeper: SweeperOptions): Effect.Effect<never> =>
  Effect.suspend(() => {
    const { clockCheck, expiryAlarm, maxInterval, outage, store } = sweeper
    let pause = minPauseMs
    const sweep = Effect.flatMap(clockCheck.check, (isRight) => isRight ? sweepAll(sweeper) : Effect.succeed(false))
    const check = Effect.map(outage.guard(sweep), (hasChanged) => {
      pause = hasChanged === true ? minPauseMs : pause * 2
    })
    const sleep = Effect.gen(function*() {
      const now = yield* store.clock.now
      const next = (yield* Effect.orElseSucceed(store.nextExpiry(now), () => undefined)) ?? Infinity
      yield* expiryAlarm.sleep(Math.max(Math.min(next - now, pause, maxInterval), minPauseMs))
    })
    return Effect.forever(Effect.andThen(check, sleep))
  })
