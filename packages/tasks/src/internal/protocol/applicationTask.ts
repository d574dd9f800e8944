/**
 * Tasks that the application starts, and not a call of a client: those of schedules, of `AsyncTasks.start` and of
 * `Task.submit`, and child tasks.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { latest } from "@skein/protocol/Revision"
import type { Catalog } from "@skein/server/Catalog"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Result from "effect/Result"
import type { NewTask, Owner } from "../../TaskState.ts"
import { withoutPrepared } from "./beforeTask.ts"
import { withAllInputCapabilities } from "./inputCapability.ts"
import type { TaskPolicy } from "./policy.ts"
import { findTaskService } from "./taskService.ts"

/** The task of an application. */
export interface ApplicationTask extends Pick<NewTask, "delayMs" | "priority" | "startAt"> {
  readonly tool: string
  readonly args: JsonObject
  /** The owner; `undefined`: as the policy of the tool decides for the principal. */
  readonly owner?: Owner | undefined
  readonly principal?: { readonly id: string } | undefined
  /** The span that its runs are linked to, as W3C `traceparent`. */
  readonly traceparent?: string | undefined
}

/**
 * Makes the task, by the policy of its tool. It has no client that can be asked for input: its questions fail, or wait for
 * anyone (`inputFrom`). Fails with the reason why the tool cannot be started.
 */
export const makeTask = (
  catalog: Catalog["Service"],
  task: ApplicationTask
): Result.Result<NewTask, string> => {
  const service = findTaskService(catalog)
  if (service === undefined) return Result.fail("the server has no `Tasks.layer`")
  const { tool } = task
  const entry = catalog.tools.get(tool)
  const policy = entry && service.policyFor(entry)
  if (policy === undefined) return Result.fail(`"${tool}" is not a task of this server`)
  if (policy.prepares) return Result.fail(`"${tool}" is prepared in the call of a client`)
  return Result.succeed(newTaskOf(policy, task))
}

/** The task of an application by a policy. */
export const newTaskOf = (
  { compute, inputFrom, limits, owner: ownerOf, pollIntervalMs, pool, ttlMs }: TaskPolicy,
  { args, delayMs, owner, principal, priority, startAt, tool, traceparent }: ApplicationTask
): NewTask => {
  const caller: Caller = { revision: latest, capabilities: {}, info: undefined, principal }
  const owned = owner === undefined ? ownerOf(caller) : owner
  const stored = (inputFrom === "anyone" ? withAllInputCapabilities(caller) : caller) as NewTask["caller"]
  const computed = compute({ args: withoutPrepared(args), caller })
  return {
    tool,
    args,
    owner: owned,
    ...computed,
    priority: priority ?? computed.priority,
    delayMs,
    startAt,
    pool,
    ttlMs,
    pollIntervalMs,
    caller: traceparent === undefined ? stored : { ...stored, traceparent },
    limits: owned === null ? { ...limits, client: {} } : limits
  }
}
