/**
 * The one workflow that runs all tasks. The store has the tool of a task, its arguments and its caller. So a worker
 * without the tool can still own the execution, and wait for a handler.
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
import { escape } from "../store/storedText.ts"

/** The shard group of executions whose id names none. */
export const defaultShardGroup = "0000"

/** The shard group of an execution: the part of its id before the slash. Task ids contain no slash. */
export const shardGroupOf = (executionId: string): string => {
  const slash = executionId.indexOf("/")
  return slash < 0 ? defaultShardGroup : executionId.slice(0, slash)
}

/** The workflow of a task. */
export const TaskRun = Workflow.make("skein/Task", {
  payload: { taskId: Schema.String },
  idempotencyKey: ({ taskId }) => taskId
})
  .annotate(ClusterSchema.ShardGroup, shardGroupOf)
  .annotate(ClusterSchema.ClientTracingEnabled, false)

/** The entity type under which the workflow engine stores the messages of executions. */
export const entityType = `Workflow/${TaskRun._tag}`

/** The addresses under which the workflow engine stores the messages of an execution. */
export const messageAddresses = (executionId: string): ReadonlyArray<EntityAddress.EntityAddress> =>
  [entityType, "Workflow/-/DurableClock"].map((type) =>
    EntityAddress.make({
      entityType: EntityType.make(type),
      entityId: EntityId.make(executionId),
      // Clearing messages does not use the shard.
      shardId: ShardId.make(shardGroupOf(executionId), 1)
    })
  )

/** Ends a run without a result: another process continues it. */
export const abandonRun: Effect.Effect<never> = Effect.withFiber((fiber) => {
  fiber.interruptUnsafe(fiber.id, ClusterSchema.Abandon.annotation)
  return Effect.never
})

/** The deferred that is done when a question is answered. The store has the answer. */
export const answerSignal = (key: string): DurableDeferred.DurableDeferred<typeof Schema.Void> =>
  DurableDeferred.make(escape(`question/${key}`))

/** The deferred of the workflow engine that is done when an execution must be interrupted. */
export const interruptSignal: DurableDeferred.DurableDeferred<typeof Schema.Void> = DurableDeferred.make(
  "Workflow/InterruptSignal"
)
