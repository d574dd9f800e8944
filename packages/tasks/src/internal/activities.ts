/**
 * Steps, as activities of the engine.
 *
 * A run that is cut off lets the engine know what it waited for, by a message; and that may find the activity where the task goes on, in
 * another process. There one that is transactional ends as interrupted before it has begun. The engine remembers that; nobody else does:
 * it is begun anew.
 */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import type { MessageStorage } from "effect/cluster/MessageStorage"
import type { Sharding } from "effect/cluster/Sharding"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import type { WorkflowEngine } from "effect/workflow/WorkflowEngine"
import { WorkflowInstance } from "effect/workflow/WorkflowEngine"
import { addresses } from "./workflow.ts"

/** Runs an activity, or finds how it has ended. */
export type Execute = WorkflowEngine["Service"]["activityExecute"]

/** Whether that is what the engine remembers: who is interrupted itself does not come to ask. */
const isCutOff = (cause: Cause.Cause<never>): boolean =>
  Cause.hasInterruptsOnly(cause) && !cause.reasons.some((reason) => reason.annotations.has(ClusterSchema.Abandon.key))

/** See the module's text. */
export const make = (
  engine: WorkflowEngine["Service"],
  storage: MessageStorage["Service"],
  sharding: Sharding["Service"]
): Execute => {
  const forget = (execution: string, id: string) =>
    Effect.flatMap(
      Effect.orDie(storage.requestIdForPrimaryKey({ address: addresses(execution)[0]!, tag: "activity", id })),
      Option.match({ onNone: () => Effect.void, onSome: (request) => Effect.asVoid(sharding.reset(request)) })
    )
  const execute: Execute = (activity, attempt) =>
    Effect.catchCause(engine.activityExecute(activity, attempt), (cause) =>
      isCutOff(cause)
        ? Effect.flatMap(WorkflowInstance, ({ executionId }) =>
          Effect.andThen(forget(executionId, `${activity.name}/${attempt}`), execute(activity, attempt)))
        : Effect.failCause(cause))
  return execute
}
