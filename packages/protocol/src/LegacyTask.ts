/**
 * The tasks of 2025-11-25: `tasks/get`, `tasks/result`, `tasks/list`, `tasks/cancel` and `notifications/tasks/status`,
 * each in both directions. In 2026-07-28 the extension in `Task` replaces them.
 */
import * as Schema from "effect/Schema"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import { Meta, notificationFields } from "./Message.ts"
import { pageFields } from "./Pagination.ts"
import { AnyObject } from "./Primitive.ts"
import { relatedTask } from "./RequestMeta.ts"
import { Task, taskStateFields } from "./Task.ts"

export { relatedTask }

/** The task that a message belongs to, under the key {@link relatedTask} of its `_meta`. */
export class RelatedTaskMetadata extends Schema.Opaque<RelatedTaskMetadata>()(Schema.Struct({
  taskId: Schema.String
})) {}

/**
 * The `_meta` of a message that belongs to a task: "All requests, notifications, and responses related to a task MUST
 * include the `io.modelcontextprotocol/related-task` key in their `_meta` field" (2025-11-25, tasks).
 */
export const related = (taskId: string): JsonObject => ({ [relatedTask]: { taskId } })

/**
 * Adds {@link related} to the `_meta` of params or a result. Other members of `_meta` stay.
 *
 * @example
 * LegacyTask.withRelated({ level: "info", data: "half done" }, "task-1")
 */
export const withRelated = (message: JsonObject | undefined, taskId: string): JsonObject => {
  const meta = message?.["_meta"]
  return { ...message, _meta: { ...(isObject(meta) ? meta : undefined), ...related(taskId) } }
}

/** The result of a request that was augmented with a task. */
export class CreateTaskResult extends Schema.Opaque<CreateTaskResult>()(Schema.Struct({
  _meta: Schema.optionalKey(Meta),
  task: Task
})) {}

/** The result of `tasks/get`. */
export class GetTaskResult extends Schema.Opaque<GetTaskResult>()(Schema.Struct({
  _meta: Schema.optionalKey(Meta),
  ...taskStateFields
})) {}

/** The result of `tasks/cancel`. */
export const CancelTaskResult = GetTaskResult
export type CancelTaskResult = GetTaskResult

/** The result of `tasks/result`: the result of the augmented request. Decode it by that request's method. */
export const GetTaskPayloadResult = AnyObject
export type GetTaskPayloadResult = typeof AnyObject.Type

/** The result of `tasks/list`. */
export class ListTasksResult extends Schema.Opaque<ListTasksResult>()(Schema.Struct({
  ...pageFields,
  tasks: Schema.Array(Task)
})) {}

/** The params of `notifications/tasks/status`. */
export class TaskStatusNotificationParams
  extends Schema.Opaque<TaskStatusNotificationParams>()(Schema.Struct({ ...notificationFields, ...taskStateFields }))
{}
