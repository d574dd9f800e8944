/**
 * The one workflow that runs all tasks. The tool, its arguments and its caller are in the task's row; so a worker that lacks the
 * tool can still own the task, and wait.
 */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as EntityAddress from "effect/cluster/EntityAddress"
import * as EntityId from "effect/cluster/EntityId"
import * as EntityType from "effect/cluster/EntityType"
import * as ShardId from "effect/cluster/ShardId"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"
import { escape } from "../store/stored.ts"

/** The shard group of what belongs to no other. */
export const defaultGroup = "0000"

/** An id has no slash: what comes before it is the group. */
export const groupOf = (executionId: string): string => {
  const at = executionId.indexOf("/")
  return at < 0 ? defaultGroup : executionId.slice(0, at)
}

/** See the module's text. */
export const TaskRun = Workflow.make("skein/Task", {
  payload: { taskId: Schema.String },
  idempotencyKey: ({ taskId }) => taskId
})
  .annotate(ClusterSchema.ShardGroup, groupOf)
  .annotate(ClusterSchema.ClientTracingEnabled, false)

/** What the engine calls an execution where it keeps its messages. */
export const entityType = `Workflow/${TaskRun._tag}`

/** Where the engine keeps the messages of an execution. */
export const addresses = (executionId: string): ReadonlyArray<EntityAddress.EntityAddress> =>
  [entityType, "Workflow/-/DurableClock"].map((type) =>
    EntityAddress.make({
      entityType: EntityType.make(type),
      entityId: EntityId.make(executionId),
      // What is cleared is found without it.
      shardId: ShardId.make(groupOf(executionId), 1)
    })
  )

/** Ends a run that is no longer this process's to end: another one goes on with it. */
export const abandoned: Effect.Effect<never> = Effect.withFiber((fiber) => {
  fiber.interruptUnsafe(fiber.id, ClusterSchema.Abandon.annotation)
  return Effect.never
})

/** Told when a question is answered; the answer is in its row. */
export const answered = (key: string): DurableDeferred.DurableDeferred<typeof Schema.Void> =>
  DurableDeferred.make(escape(`question/${key}`))

/** The engine's own: told when an execution is to be interrupted. */
export const interruption: DurableDeferred.DurableDeferred<typeof Schema.Void> = DurableDeferred.make(
  "Workflow/InterruptSignal"
)
