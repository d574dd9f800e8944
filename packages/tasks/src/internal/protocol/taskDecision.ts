/**
 * Decides whether a tool call becomes a task, waits for a task, or runs as an ordinary call.
 *
 * - Since 2026-07-28 the server decides. A client that declares the extension gets a task of every tool that supports
 *   tasks, unless the tool's `asTask` returns `false`. Other clients get no task; if the tool requires one, the call
 *   fails with `-32021`.
 * - In 2025-11-25 the client decides, with `task` in its params, within the tool's `taskSupport`. Other calls fail with
 *   `-32601`.
 * - Older revisions have no tasks.
 *
 * The call of a durable tool that does not become a task waits for one.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { isObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as Task from "@skein/protocol/Task"
import type { Extension, ToolCall, ToolCallResult } from "@skein/server/Extension"
import * as Effect from "effect/Effect"
import { NotStarted } from "./beforeTask.ts"
import { runInline } from "./inlineCall.ts"
import type { TaskPolicy } from "./policy.ts"
import type { TaskService } from "./taskService.ts"
import * as wire from "./wire.ts"

/**
 * The capability of a server and of a client with the extension: "no extension-specific settings are currently defined".
 */
export const capabilities: JsonObject = { extensions: { [Task.extension]: {} } }

/** Whether a client declares the extension, for this request. */
export const declaresTasks = ({ extensions }: JsonObject): boolean =>
  isObject(extensions) && isObject(extensions[Task.extension])

/** The error for a client that uses the extension without declaring it: `-32021`, since 2026-07-28. */
export const missingTasksCapability = Effect.fail(McpError.missingRequiredClientCapability(capabilities))

/**
 * Handles all tool calls. `callWithTask` handles calls with `task` of 2025-11-25, and returns `undefined` for any other
 * call.
 */
export const handleCall = (
  tasks: TaskService["Service"],
  callWithTask: (call: ToolCall) => ToolCallResult | undefined
): NonNullable<Extension["call"]> =>
(call, next) => {
  const policy = tasks.policyFor(call.tool)
  const { caller: { revision } } = call.request
  if (Revision.era(revision) === "stateless") {
    return policy === undefined ? next(call) : handleStatelessCall(tasks, policy, call, next)
  }
  const called = callWithTask(call)
  if (called !== undefined) return called
  // "Servers MUST return a -32601 (Method not found) error if a client does not attempt to do so."
  if (policy?.support === "required" && revision === "2025-11-25") {
    const message = `Method not found: ${call.params.name} requires a task-augmented call`
    return Effect.fail(new McpError.McpError({ reason: "MethodNotFound", message }))
  }
  return policy?.durable === true ? runInline(tasks, call) : next(call)
}

const handleStatelessCall = (
  tasks: TaskService["Service"],
  policy: TaskPolicy,
  call: ToolCall,
  next: (call: ToolCall) => ToolCallResult
): ToolCallResult => {
  const { params, request: { caller } } = call
  const supportsTasks = declaresTasks(caller.capabilities)
  if (policy.support === "required" && !supportsTasks) return missingTasksCapability
  const becomesTask = supportsTasks && policy.support !== "forbidden" &&
    (policy.support === "required" || (policy.asTask?.({ args: params.arguments ?? {}, caller }) ?? true))
  if (becomesTask) {
    return Effect.map(
      tasks.start(call),
      (started) => started instanceof NotStarted ? started.result : wire.toCreateTaskResult(started)
    )
  }
  return policy.durable ? runInline(tasks, call) : next(call)
}
