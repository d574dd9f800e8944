/**
 * What runs ask of the engine, which does not answer for its store: what it says of that is a defect, also to a run whose worker is cut
 * off, or has been stopped for a while, and has lost the task to another one. A run must not take it for its own, and fail: it waits
 * until the store is back, or until the engine notices, and ends it.
 */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import type { MessageStorage } from "effect/cluster/MessageStorage"
import type { Sharding } from "effect/cluster/Sharding"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schedule from "effect/Schedule"
import { isSqlError } from "effect/sql/SqlError"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import { WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { last } from "./history.ts"
import { addresses } from "./workflow.ts"

/** Runs an activity, or finds how it has ended. */
export type Execute = WorkflowEngine["Service"]["activityExecute"]

const ofStore = (defect: unknown): boolean => isSqlError(defect) || Predicate.isTagged(defect, "PersistenceError")

const isOfStore = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((reason) => Cause.isDieReason(reason) && ofStore(reason.defect)) &&
  cause.reasons.every((reason) =>
    Cause.isInterruptReason(reason) || (Cause.isDieReason(reason) && ofStore(reason.defect))
  )

/** How often, and how long, is tried again what a store did not let be: after 200 milliseconds at first. */
export const schedule = Schedule.min([Schedule.exponential(200, 1.5), Schedule.spaced("10 seconds")])

/** Tries again what the store did not let be. */
export const steadily = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.catch(
    Effect.retry(Effect.sandbox(effect), { schedule, while: isOfStore }),
    (cause) => Effect.failCause(cause)
  )

/** The message of an execution by which something of it was done, or told. */
const requestOf = (storage: MessageStorage["Service"], execution: string, tag: "activity" | "deferred", id: string) =>
  steadily(Effect.orDie(storage.requestIdForPrimaryKey({ address: addresses(execution)[0]!, tag, id })))

/** When deferreds were told, as a number that grows from one to the next. */
export const rank = (storage: MessageStorage["Service"]) => (execution: string, id: string): Effect.Effect<bigint> =>
  Effect.map(requestOf(storage, execution, "deferred", id), Option.getOrElse(() => last))

/** Whether a step ends as cut off: who is interrupted itself does not come to ask. */
const isCutOff = (cause: Cause.Cause<never>): boolean =>
  Cause.hasInterruptsOnly(cause) && !cause.reasons.some((reason) => reason.annotations.has(ClusterSchema.Abandon.key))

/**
 * Steps, as activities of the engine.
 *
 * A run that is cut off lets the engine know what it waited for, by a message; and that may find the activity where the task goes on, in
 * another process. There one that is transactional ends as interrupted before it has begun. The engine remembers that; nobody else does:
 * it is begun anew.
 */
export const make = (
  engine: WorkflowEngine["Service"],
  storage: MessageStorage["Service"],
  sharding: Sharding["Service"]
): Execute => {
  const forget = (execution: string, id: string) =>
    Effect.flatMap(
      requestOf(storage, execution, "activity", id),
      Option.match({ onNone: () => Effect.void, onSome: (request) => Effect.asVoid(sharding.reset(request)) })
    )
  const execute: Execute = (activity, attempt) =>
    Effect.catchCause(steadily(engine.activityExecute(activity, attempt)), (cause) =>
      isCutOff(cause)
        ? Effect.flatMap(WorkflowInstance, ({ executionId }) =>
          Effect.andThen(forget(executionId, `${activity.name}/${attempt}`), execute(activity, attempt)))
        : Effect.failCause(cause))
  return execute
}
