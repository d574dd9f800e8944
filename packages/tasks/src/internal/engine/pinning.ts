/**
 * Tasks that stay with the deployment which began them (`Task.Options.versioning`): they go on in a pool of that deployment.
 */
import * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import { invalidOption } from "../store/database.ts"
import type { StoredTask } from "../store/store.ts"
import { awaitStore, type EngineContext } from "./engineContext.ts"
import type { FoundHandler } from "./handlerRegistry.ts"
import type { TaskLog } from "./taskLog.ts"

/** Characters of the name of a deployment, at most. */
export const maxDeploymentChars = 100

/** The pool of the pinned tasks of a pool. */
const pinnedPool = (pool: string, deployment: string): string => `${pool}@${deployment}`

/** The pools of a worker, with those of the tasks that its deployment has begun. */
export const poolsOf = (pools: ReadonlyArray<string>, deployment: string | undefined): ReadonlyArray<string> =>
  deployment === undefined ? pools : [...pools, ...pools.map((pool) => pinnedPool(pool, deployment))]

/** Fails for a deployment out of bounds. */
export const checkDeployment = (deployment: string | undefined): Effect.Effect<void, TaskError> =>
  deployment === undefined || (deployment.length > 0 && deployment.length <= maxDeploymentChars)
    ? Effect.void
    : Effect.fail(invalidOption(`deployment must have 1 to ${maxDeploymentChars} characters`))

/** Pins a task that begins, if its tool asks for it, and returns it with its pool. */
export const pin = (
  { deployment, handlers, store }: EngineContext,
  task: StoredTask,
  log: TaskLog,
  { pinned = false }: FoundHandler["handler"]
): Effect.Effect<StoredTask> => {
  if (!pinned || log.size > 0 || deployment === undefined) return Effect.succeed(task)
  if (deployment === null) {
    return Effect.as(
      handlers.noteUnpinned(task.tool)
        ? Effect.logWarning(`the tasks of ${task.tool} are not pinned: this worker has no \`deployment\``)
        : Effect.void,
      task
    )
  }
  if (task.pool.endsWith(`@${deployment}`)) return Effect.succeed(task)
  const pool = pinnedPool(task.pool, deployment)
  return Effect.as(awaitStore(store.bulk.setPool([task.id], pool)), { ...task, pool })
}
