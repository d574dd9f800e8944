/**
 * Tasks that the application starts, and not a call of a client: those of schedules and of `AsyncTasks.start`.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { latest } from "@skein/protocol/Revision"
import type { Catalog } from "@skein/server/Catalog"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Result from "effect/Result"
import type { NewTask, Owner } from "../../TaskState.ts"
import { withAllInputCapabilities } from "./inputCapability.ts"
import { findTaskService } from "./taskService.ts"

/** The task of an application. */
export interface ApplicationTask {
  readonly tool: string
  readonly args: JsonObject
  /** The owner; `undefined`: as the policy of the tool decides for the principal. */
  readonly owner?: Owner | undefined
  readonly principal?: { readonly id: string } | undefined
}

/**
 * Makes the task, by the policy of its tool. It has no client that can be asked for input: its questions fail, or wait for
 * anyone (`inputFrom`). Fails with the reason why the tool cannot be started.
 */
export const makeTask = (
  catalog: Catalog["Service"],
  { args, owner, principal, tool }: ApplicationTask
): Result.Result<NewTask, string> => {
  const service = findTaskService(catalog)
  if (service === undefined) return Result.fail("the server has no `Tasks.layer`")
  const entry = catalog.tools.get(tool)
  const policy = entry && service.policyFor(entry)
  if (policy === undefined) return Result.fail(`"${tool}" is not a task of this server`)
  if (policy.prepares) return Result.fail(`"${tool}" is prepared in the call of a client`)
  const caller: Caller = { revision: latest, capabilities: {}, info: undefined, principal }
  const owned = owner === undefined ? policy.owner(caller) : owner
  const { limits, pollIntervalMs, pool, priority, ttlMs } = policy
  return Result.succeed({
    tool,
    args,
    owner: owned,
    pool,
    priority,
    ttlMs,
    pollIntervalMs,
    caller: (policy.inputFrom === "anyone" ? withAllInputCapabilities(caller) : caller) as NewTask["caller"],
    limits: owned === null ? { ...limits, client: {} } : limits
  })
}
