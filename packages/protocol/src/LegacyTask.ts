/**
 * The tasks of 2025-11-25: `tasks/get`, `tasks/result`, `tasks/list`, `tasks/cancel` and `notifications/tasks/status`, all in
 * both directions. They are gone from 2026-07-28, where the extension in `Task` took their place.
 */
import * as Schema from "effect/Schema"
import { AnyObject, Meta, notificationFields, pageFields } from "./Common.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import { Task, taskStateFields } from "./Task.ts"

/** The `_meta` key that ties any message to a task. Its value is a {@link RelatedTaskMetadata}. */
export const relatedTask = "io.modelcontextprotocol/related-task"

/** Which task a message belongs to. */
export class RelatedTaskMetadata extends Schema.Opaque<RelatedTaskMetadata>()(Schema.Struct({
  taskId: Schema.String
})) {}

/** "All requests, notifications, and responses related to a task MUST include" this in their `_meta`. */
export const related = (taskId: string): JsonObject => ({ [relatedTask]: { taskId } })

/** The params or the result of such a message, with that beside what its `_meta` says already. */
export const withRelated = (message: JsonObject | undefined, taskId: string): JsonObject => {
  const meta = message?.["_meta"]
  return { ...message, _meta: { ...(isObject(meta) ? meta : undefined), ...related(taskId) } }
}

/** The answer to a request that was augmented with a task. */
export class CreateTaskResult extends Schema.Opaque<CreateTaskResult>()(Schema.Struct({
  _meta: Schema.optionalKey(Meta),
  task: Task
})) {}

/** The answer to `tasks/get` and to `tasks/cancel`. */
export class GetTaskResult extends Schema.Opaque<GetTaskResult>()(Schema.Struct({
  _meta: Schema.optionalKey(Meta),
  ...taskStateFields
})) {}

/** The answer to `tasks/cancel`. */
export const CancelTaskResult = GetTaskResult
export type CancelTaskResult = GetTaskResult

/** The answer to `tasks/result`: whatever the request would have been answered with. Read it by that request's method. */
export const GetTaskPayloadResult = AnyObject
export type GetTaskPayloadResult = typeof AnyObject.Type

/** The answer to `tasks/list`. */
export class ListTasksResult extends Schema.Opaque<ListTasksResult>()(Schema.Struct({
  ...pageFields,
  tasks: Schema.Array(Task)
})) {}

/** The params of `notifications/tasks/status`. */
export class TaskStatusNotificationParams
  extends Schema.Opaque<TaskStatusNotificationParams>()(Schema.Struct({ ...notificationFields, ...taskStateFields }))
{}
