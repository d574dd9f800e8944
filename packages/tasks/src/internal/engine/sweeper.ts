/**
 * The sweeper: repairs differences between tasks and their executions, and deletes expired tasks.
 *
 * Of all processes that run the tasks of a pool, one at a time sweeps it. Processes that run no tasks delete expired
 * tasks too: there may be no others.
 */
import * as McpError from "@skein/protocol/McpError"
import * as Clock from "effect/Clock"
import type { MessageStorage } from "effect/cluster/MessageStorage"
import type { Sharding } from "effect/cluster/Sharding"
import { Snowflake } from "effect/cluster/Snowflake"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import * as Option from "effect/Option"
import type { TaskError } from "../../TaskError.ts"
import { isFinal } from "../../TaskState.ts"
import type { SweepRow } from "../store/store.ts"
import { shortTaskId } from "../text.ts"
import type { EngineContext } from "./engineContext.ts"
import type { ExecutionState, FindExecutions } from "./executionStates.ts"
import { interruptExecution } from "./interruptExecution.ts"
import { messageAddresses, shardGroupOf, TaskRun } from "./workflow.ts"

/** The services and options of the sweeper. Times are in milliseconds. */
export interface SweeperOptions {
  readonly engine: EngineContext
  readonly storage: MessageStorage["Service"]
  readonly sharding: Sharding["Service"]
  readonly findExecutions: FindExecutions
  /** Between two comparisons of tasks and executions, and until the first one. */
  readonly interval: number
  /** Between two checks for expired or cancelled tasks of other processes, at most. */
  readonly maxInterval: number
  readonly expiryAlarm: ExpiryAlarm
  /** The time from the expiry of a task until it is deleted even if its compensations have not completed. */
  readonly undoTimeout: number
}

/** Milliseconds without a change after which a task is compared with its execution. */
const quietMs = 30_000

/**
 * The number of tasks that are read together, and the milliseconds between two such reads, which leave time for other
 * work.
 */
const pageSize = 500
const pagePauseMs = 10

/**
 * Milliseconds between two checks for tasks that have expired or must compensate. They double while nothing happens.
 */
const minPauseMs = { expired: 1000, undoing: 5000 }

/**
 * Milliseconds, at most, from the forced settlement of a task to its deletion, in which its waiting execution can
 * notice it.
 */
const forcedSettleLeadMs = 60_000

/** Wakes the deletion of expired tasks before its next check if a new task expires earlier. */
export class ExpiryAlarm {
  #wakeAt = Infinity
  readonly #latch = Latch.makeUnsafe()

  /** Sleeps for some milliseconds, or until a task is created that expires earlier. */
  sleep(milliseconds: number): Effect.Effect<void> {
    return Effect.flatMap(Clock.currentTimeMillis, (now) => {
      this.#wakeAt = now + milliseconds
      const awake = Effect.sync(() => {
        // A task that is created while nothing sleeps ends the next sleep.
        this.#wakeAt = Infinity
        this.#latch.closeUnsafe()
      })
      return Effect.ensuring(Effect.raceFirst(Effect.sleep(milliseconds), this.#latch.await), awake)
    })
  }

  /** Ends the sleep if it would last beyond this time, in milliseconds of Unix time. */
  wakeBefore(expiresAt: number): void {
    if (expiresAt < this.#wakeAt) this.#latch.openUnsafe()
  }
}

type ReadPage = (after: SweepRow | undefined) => Effect.Effect<ReadonlyArray<SweepRow>, TaskError>
type Visit = (row: SweepRow, id: string, execution: ExecutionState | undefined) => Effect.Effect<unknown, TaskError>

/**
 * Visits each task of a listing, which may change meanwhile, with its execution. A visit that fails is left to the next
 * time.
 */
const forEachTask = (
  { engine: { pools }, findExecutions }: SweeperOptions,
  readPage: ReadPage,
  visit: Visit
): Effect.Effect<void, TaskError> =>
  Effect.gen(function*() {
    let after: SweepRow | undefined
    while (true) {
      const rows = yield* readPage(after)
      const ids = yield* Effect.forEach(rows, (row) => pools.executionOf(row))
      const executions = yield* findExecutions(ids)
      for (const [index, row] of rows.entries()) {
        const id = ids[index]!
        yield* Effect.catchCause(
          visit(row, id, executions.get(id)),
          (cause) => Effect.logWarning("failed to sweep a task", cause)
        )
      }
      after = rows.at(-1)
      if (rows.length < pageSize) return
      yield* Effect.sleep(pagePauseMs)
    }
  })

/** Repairs a difference between a task and its execution. */
const reconcile = ({ engine: { settleSoon, store, workflowEngine } }: SweeperOptions): Visit => (row, id, execution) =>
  Effect.gen(function*() {
    if (row.status === "completed" || row.status === "failed") return settleSoon(row.id)
    if (execution === undefined) {
      yield* workflowEngine.execute(TaskRun, { executionId: id, payload: { taskId: row.id }, discard: true })
    }
    if (isFinal(row)) {
      if (needsInterrupt(execution)) yield* interruptExecution(workflowEngine, id)
      return
    }
    if (isStalled(row, execution)) {
      yield* Effect.annotateLogs(Effect.logWarning("resumed a stalled task"), "task", shortTaskId(row.id))
      return yield* workflowEngine.resume(TaskRun, id)
    }
    if (execution?.state !== "complete") return
    const result = Option.getOrUndefined(yield* workflowEngine.poll(TaskRun, id))
    if (result?._tag !== "Complete") return
    const reference = globalThis.crypto.randomUUID()
    yield* Effect.logError(`the execution of a task ended without an outcome: ${reference}`, result.exit)
    const error = McpError.toErrorObject(McpError.internal(reference), "2025-11-25")
    yield* store.finish(row.id, { status: "failed", outcome: { _tag: "Error", error } })
    return settleSoon(row.id)
  })

/** Whether an execution that must be interrupted has not received its interruption, or is suspended. */
const needsInterrupt = (execution: ExecutionState | undefined): boolean =>
  execution?.state !== "complete" && !(execution?.state === "open" && execution.interruptRequested)

/**
 * Whether a live task is suspended, although it has no open question and expects no other event. That should not
 * happen, and resuming a task does no harm.
 */
const isStalled = ({ status }: SweepRow, execution: ExecutionState | undefined): boolean =>
  execution?.state === "suspended" && status === "working" && !execution.expectsEvent

/**
 * Restarts an execution that has ended before its task was settled: the workflow engine mistakes an execution that its
 * worker has abandoned meanwhile for an interrupted one, and then skips the compensations. A task that has compensated
 * is settled before its execution ends.
 */
const restartUndo = ({ sharding }: SweeperOptions): Visit => (_row, _id, execution) =>
  execution?.state === "complete"
    ? Effect.andThen(sharding.reset(Snowflake(execution.request)), sharding.pollStorage)
    : Effect.void

/**
 * Cancels an expired task, and deletes it once its execution has ended and has compensated, or after `undoTimeout`.
 * `onProgress` is called when the task has changed.
 */
const cancelOrRemove =
  ({ engine: { store, workflowEngine }, storage, undoTimeout }: SweeperOptions, onProgress: () => void): Visit =>
  (row, id, execution) =>
    Effect.gen(function*() {
      if (!isFinal(row)) {
        onProgress()
        yield* store.finish(row.id, { status: "cancelled", statusMessage: "The task exceeded its time to live" })
        return yield* interruptExecution(workflowEngine, id)
      }
      const overdue = (yield* Clock.currentTimeMillis) - (row.expiresAt ?? Infinity) - undoTimeout
      const isUndone = row.status !== "cancelled" || execution === undefined ||
        (execution.state === "complete" && row.settled)
      if (!isUndone && overdue < Math.min(forcedSettleLeadMs, undoTimeout)) {
        if (overdue >= 0 && !row.settled) {
          onProgress()
          yield* Effect.logWarning("deleting an expired task whose compensations have not finished within undoTimeout")
          return yield* store.settle(row.id)
        }
        if (needsInterrupt(execution)) yield* interruptExecution(workflowEngine, id)
        return
      }
      onProgress()
      const clear = Effect.forEach(messageAddresses(id), (address) => storage.clearAddress(address), { discard: true })
      yield* Effect.catchTag(
        store.remove(row.id, clear),
        "PersistenceError",
        (error) => Effect.logWarning("failed to delete an expired task", error)
      )
    })

const logFailure = (effect: Effect.Effect<void, TaskError>): Effect.Effect<void> =>
  Effect.catchCause(effect, (cause) => Effect.logWarning("failed to sweep tasks; trying again later", cause))

/**
 * Deletes expired tasks, forever. Any number of processes may do it. `leastMs` is the shortest time between two checks.
 */
export const removeExpired = (sweeper: SweeperOptions, leastMs = minPauseMs.expired): Effect.Effect<never> => {
  const { engine: { store }, expiryAlarm, maxInterval } = sweeper
  return Effect.suspend(() => {
    let pause = leastMs
    const visit = cancelOrRemove(sweeper, () => void (pause = leastMs))
    const check = logFailure(forEachTask(sweeper, (after) => store.findExpired(pageSize, after), visit))
    const sleep = Effect.gen(function*() {
      const now = yield* Clock.currentTimeMillis
      const next = (yield* Effect.orElseSucceed(store.nextExpiry(now), () => undefined)) ?? Infinity
      const milliseconds = Math.max(Math.min(next - now, pause, maxInterval), leastMs)
      pause *= 2
      yield* expiryAlarm.sleep(milliseconds)
    })
    return Effect.forever(Effect.andThen(check, sleep))
  })
}

/** Sweeps the tasks of a shard group, forever. */
export const sweep = (sweeper: SweeperOptions, shardGroup: string): Effect.Effect<never> => {
  const { engine: { store }, interval, maxInterval } = sweeper
  const ofGroup = (visit: Visit): Visit => (row, id, execution) =>
    shardGroupOf(id) === shardGroup ? visit(row, id, execution) : Effect.void
  const reconcileUnsettled = logFailure(
    forEachTask(sweeper, (after) => store.findUnsettled(quietMs, pageSize, after), ofGroup(reconcile(sweeper)))
  )
  const undo = Effect.suspend(() => {
    let pause = minPauseMs.undoing
    const visit: Visit = (...task) => {
      pause = minPauseMs.undoing
      return restartUndo(sweeper)(...task)
    }
    const check = logFailure(forEachTask(sweeper, (after) => store.findUndoing(pageSize, after), ofGroup(visit)))
    const sleep = Effect.suspend(() => Effect.sleep(Math.min(pause, maxInterval)))
    return Effect.forever(Effect.andThen(Effect.andThen(check, sleep), Effect.sync(() => void (pause *= 2))))
  })
  return Effect.raceFirst(
    Effect.raceFirst(
      Effect.forever(Effect.andThen(Effect.sleep(interval), reconcileUnsettled)),
      undo
    ),
    removeExpired(sweeper)
  )
}
