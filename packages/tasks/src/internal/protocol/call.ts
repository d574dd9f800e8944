/**
 * What becomes of a call of a tool: a task, a call that waits for its task, or a call as any other.
 *
 * - Since 2026-07-28 the server decides. A client that has declared the extension gets a task of every tool that may be one,
 *   unless the tool's `decide` says no; to any other a task is never given, and where there is no other way that is `-32021`.
 * - In 2025-11-25 the client decides, with `task` in its params, among what the tool allows: the rest is `-32601`.
 * - Before, nobody knows of tasks.
 *
 * A durable tool's call that becomes no task waits for one.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { isObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as Task from "@skein/protocol/Task"
import type { Extension, ToolCall, ToolCallResult } from "@skein/server/Extension"
import * as Effect from "effect/Effect"
import type { Face } from "./taskService.ts"
import * as inline from "./inline.ts"
import type { Legacy } from "./legacy/legacyTasks.ts"
import { Unbegun } from "./beforeTask.ts"
import type { TaskPolicy } from "./policy.ts"
import * as wire from "./wire.ts"

const required: JsonObject = { extensions: { [Task.extension]: {} } }

/** Whether a client has declared the extension, for this request. */
export const declares = (capabilities: JsonObject): boolean => {
  const { extensions } = capabilities
  return isObject(extensions) && isObject(extensions[Task.extension])
}

/** What a client is told that has not declared what it uses: `-32021`, since 2026-07-28. */
export const undeclared = Effect.fail(McpError.missingRequiredClientCapability(required))

/** See the module's text. */
export const answer = (face: Face, legacy: Legacy): NonNullable<Extension["call"]> => (call, next) => {
  const held = face.held(call.tool)
  const { caller: { revision } } = call.request
  if (Revision.era(revision) === "request") return held === undefined ? next(call) : modern(face, held, call, next)
  const augmented = legacy.call(call)
  if (augmented !== undefined) return augmented
  // "Servers MUST return a -32601 (Method not found) error if a client does not attempt to do so."
  if (held?.support === "required" && revision === "2025-11-25") {
    const message = `Method not found: ${call.params.name} can be called as a task only`
    return Effect.fail(new McpError.McpError({ reason: "MethodNotFound", message }))
  }
  return held?.durable === true ? inline.wait(face, call) : next(call)
}

const modern = (
  face: Face,
  held: TaskPolicy,
  call: ToolCall,
  next: (call: ToolCall) => ToolCallResult
): ToolCallResult => {
  const { params, request: { caller } } = call
  const able = declares(caller.capabilities)
  if (held.support === "required" && !able) return undeclared
  const decided = able && held.support !== "forbidden" &&
    (held.support === "required" || (held.asTask?.({ args: params.arguments ?? {}, caller }) ?? true))
  if (decided) {
    return Effect.map(face.attempt(call), (begun) => begun instanceof Unbegun ? begun.result : wire.created(begun))
  }
  return held.durable ? inline.wait(face, call) : next(call)
}
