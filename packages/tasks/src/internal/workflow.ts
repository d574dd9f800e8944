/**
 * The one workflow that runs all tasks. The tool, its arguments and its caller are in the task's row; so a worker that lacks the
 * tool can still own the task, and wait.
 */
import * as ClusterSchema from "effect/cluster/ClusterSchema"
import * as EntityAddress from "effect/cluster/EntityAddress"
import * as EntityId from "effect/cluster/EntityId"
import * as EntityType from "effect/cluster/EntityType"
import * as ShardId from "effect/cluster/ShardId"
import * as Schema from "effect/Schema"
import * as DurableDeferred from "effect/workflow/DurableDeferred"
import * as Workflow from "effect/workflow/Workflow"

/** The pool of a task that names none. */
export const defaultPool = "default"

/** An id has no slash: what comes before the last one is the pool. */
const poolOf = (executionId: string): string => {
  const at = executionId.lastIndexOf("/")
  return at < 0 ? defaultPool : executionId.slice(0, at)
}

/** See the module's text. */
export const TaskRun = Workflow.make("skein/Task", {
  payload: { taskId: Schema.String },
  idempotencyKey: ({ taskId }) => taskId
})
  .annotate(ClusterSchema.ShardGroup, poolOf)
  .annotate(ClusterSchema.ClientTracingEnabled, false)

/** The execution of a task. */
export const executionId = ({ id, pool }: { readonly id: string; readonly pool: string }): string =>
  pool === defaultPool ? id : `${pool}/${id}`

/** Where the engine keeps the messages of an execution. */
export const addresses = (executionId: string): ReadonlyArray<EntityAddress.EntityAddress> =>
  [`Workflow/${TaskRun._tag}`, "Workflow/-/DurableClock"].map((type) =>
    EntityAddress.make({
      entityType: EntityType.make(type),
      entityId: EntityId.make(executionId),
      // What is cleared is found without it.
      shardId: ShardId.make(poolOf(executionId), 1)
    })
  )

/** Told when a question is answered; the answer is in its row. */
export const answered = (key: string): DurableDeferred.DurableDeferred<typeof Schema.Void> =>
  DurableDeferred.make(`question/${key}`)

/** The engine's own: told when an execution is to be interrupted. */
export const interruption: DurableDeferred.DurableDeferred<typeof Schema.Void> = DurableDeferred.make(
  "Workflow/InterruptSignal"
)
