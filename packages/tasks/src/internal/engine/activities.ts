/**
 * Steps as activities of the workflow engine, and retries of its store errors.
 *
 * The workflow engine turns errors of its store into defects. A run whose worker is cut off, or was stopped for a while
 * and has lost the task to another worker, receives them too. It must not fail its task because of them: it waits until
 * the store is back, or until the workflow engine ends the run.
 */
import * as Cause from "effect/Cause"
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import type { MessageStorage } from "effect/cluster/MessageStorage"
import type { Sharding } from "effect/cluster/Sharding"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import { isSqlError } from "effect/sql/SqlError"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import { WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { lastRank } from "./history.ts"
import { messageAddresses } from "./workflow.ts"

/** Executes an activity, or returns its recorded end. */
export type ExecuteActivity = WorkflowEngine["Service"]["activityExecute"]

const isStoreDefect = (defect: unknown): boolean => isSqlError(defect) || Predicate.isTagged(defect, "PersistenceError")

const isStoreFailure = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isDieReason(reason) && isStoreDefect(reason.defect)) &&
  cause.reasons.every((reason) =>
    Cause.isInterruptReason(reason) || (Cause.isDieReason(reason) && isStoreDefect(reason.defect))
  )

/**
 * The retries of store errors: after 200 milliseconds at first, then with growing pauses of up to 10 seconds, forever.
 */
export const retrySchedule = Schedule.min([Schedule.exponential(200, 1.5), Schedule.spaced("10 seconds")])

/** Retries an effect of the workflow engine while its defect is a store error. */
export const retryStoreDefects = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.catch(
    Effect.retry(Effect.sandbox(effect), { schedule: retrySchedule, while: isStoreFailure }),
    (cause) => Effect.failCause(cause)
  )

/** The id of the message by which an activity was started or a deferred was done. */
const findRequest = (
  storage: MessageStorage["Service"],
  execution: string,
  tag: "activity" | "deferred",
  id: string
) =>
  retryStoreDefects(
    Effect.orDie(storage.requestIdForPrimaryKey({ address: messageAddresses(execution)[0]!, tag, id }))
  )

/**
 * The rank of a deferred: a number that grows from one done deferred of the execution to the next, and `lastRank`
 * before it is done.
 */
export const makeRank =
  (storage: MessageStorage["Service"]) => (execution: string, deferred: string): Effect.Effect<bigint> =>
    Effect.map(findRequest(storage, execution, "deferred", deferred), Option.getOrElse(() => lastRank))

/** Whether an activity was recorded as interrupted. An interruption of the calling run never reaches this check. */
const wasCutOff = (cause: Cause.Cause<never>): boolean =>
  Cause.hasInterruptsOnly(cause) && !cause.reasons.some((reason) => reason.annotations.has(ClusterSchema.Abandon.key))

/**
 * Executes steps as activities.
 *
 * A run that is cut off sends the workflow engine a message about the activity it waited for. That message may reach
 * the activity in another process, where the task continues. There it interrupts a transactional activity before it has
 * begun, and the workflow engine records the interruption as its end. In that case this deletes the record and starts
 * the activity again.
 */
export const makeExecuteActivity = (
  engine: WorkflowEngine["Service"],
  storage: MessageStorage["Service"],
  sharding: Sharding["Service"]
): ExecuteActivity => {
  const deleteRecord = (execution: string, id: string) =>
    Effect.flatMap(
      findRequest(storage, execution, "activity", id),
      Option.match({ onNone: () => Effect.void, onSome: (request) => Effect.asVoid(sharding.reset(request)) })
    )
  const execute: ExecuteActivity = (activity, attempt) =>
    Effect.catchCause(retryStoreDefects(engine.activityExecute(activity, attempt)), (cause) =>
      wasCutOff(cause)
        ? Effect.flatMap(WorkflowInstance, ({ executionId }) =>
          Effect.andThen(deleteRecord(executionId, `${activity.name}/${attempt}`), execute(activity, attempt)))
        : Effect.failCause(cause))
  return execute
}
