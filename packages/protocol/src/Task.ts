/**
 * Tasks of the extension `io.modelcontextprotocol/tasks` (2026-07-28), and the description of a task for both revisions
 * that have tasks. The names are those of the extension: `ttlMs` and `pollIntervalMs` are `ttl` and `pollInterval` in
 * 2025-11-25, whose messages are in `LegacyTask`.
 */
import * as Schema from "effect/Schema"
import { alone, essential, field, since } from "./Annotate.ts"
import { InputRequests, InputResponses } from "./InputRequired.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"
import { Meta, notificationFields, type NotificationParams, requestFields } from "./Message.ts"
import { AnyObject, AnyValue, guarded } from "./Primitive.ts"

/** The identifier of the extension, under `extensions` in the capabilities of both sides. */
export const extension = "io.modelcontextprotocol/tasks"

/** The settings of the extension. The specification defines no members. */
export const TasksExtensionCapability = guarded<JsonObject, typeof Schema.Boolean>(
  "an object",
  isObject,
  Schema.Boolean,
  () => ({})
)
export type TasksExtensionCapability = JsonObject

/** The status of a task. `completed`, `failed` and `cancelled` are final. */
export const TaskStatus = Schema.Literals(["working", "input_required", "completed", "failed", "cancelled"])
export type TaskStatus = typeof TaskStatus.Type

const legacy = alone("2025-11-25")

const describeFields = {
  taskId: Schema.String,
  /** One line about the status, for people or for the model. */
  statusMessage: Schema.optionalKey(Schema.String),
  /** An ISO 8601 date and time. */
  createdAt: Schema.String,
  /** An ISO 8601 date and time. */
  lastUpdatedAt: Schema.String,
  /** How long the task is retained, in milliseconds from its creation; `null` for no limit. */
  ttlMs: field(Schema.NullOr(Schema.Int), { rename: { ...legacy, to: "ttl" } }),
  /** How long the requestor should wait between two polls, in milliseconds. */
  pollIntervalMs: field(Schema.optionalKey(Schema.Int), { rename: { ...legacy, to: "pollInterval" } })
}

/** The fields of a task in any status. */
export const taskStateFields = { ...describeFields, status: TaskStatus }

/** A task, without the members that depend on its status. */
export class Task extends Schema.Opaque<Task>()(Schema.Struct(taskStateFields)) {}

/** A JSON-RPC error as a member of a message. */
export class ErrorObject extends Schema.Opaque<ErrorObject>()(Schema.Struct({
  code: Schema.Int,
  message: Schema.String,
  data: Schema.optionalKey(AnyValue)
})) {}

const workingFields = { ...describeFields, status: Schema.Literal("working") }
const inputRequiredFields = {
  ...describeFields,
  status: Schema.Literal("input_required"),
  /** All requests for input without a response. */
  inputRequests: essential(InputRequests)
}
const completedFields = {
  ...describeFields,
  status: Schema.Literal("completed"),
  /** The result of the request that created the task. Decode it by that request's method. */
  result: AnyObject
}
const failedFields = { ...describeFields, status: Schema.Literal("failed"), error: ErrorObject }
const cancelledFields = { ...describeFields, status: Schema.Literal("cancelled") }

/** A running task. */
export class WorkingTask extends Schema.Opaque<WorkingTask>()(Schema.Struct(workingFields)) {}
/** A task that waits for input from the client. */
export class InputRequiredTask extends Schema.Opaque<InputRequiredTask>()(Schema.Struct(inputRequiredFields)) {}
/** A task with its result. */
export class CompletedTask extends Schema.Opaque<CompletedTask>()(Schema.Struct(completedFields)) {}
/** A task with the JSON-RPC error that ended it. */
export class FailedTask extends Schema.Opaque<FailedTask>()(Schema.Struct(failedFields)) {}
/** A cancelled task. */
export class CancelledTask extends Schema.Opaque<CancelledTask>()(Schema.Struct(cancelledFields)) {}

/** A task with the members that depend on its status. */
export const DetailedTask = Schema.Union([WorkingTask, InputRequiredTask, CompletedTask, FailedTask, CancelledTask])
export type DetailedTask = typeof DetailedTask.Type

/** The states of a task as a union, with more fields in each. */
const withDetails = <const F extends Schema.Struct.Fields>(fields: F) =>
  Schema.Union([
    Schema.Struct({ ...fields, ...workingFields }),
    Schema.Struct({ ...fields, ...inputRequiredFields }),
    Schema.Struct({ ...fields, ...completedFields }),
    Schema.Struct({ ...fields, ...failedFields }),
    Schema.Struct({ ...fields, ...cancelledFields })
  ])

/** The result that announces a task. The task will have the result of the request. */
export class CreateTaskResult extends Schema.Opaque<CreateTaskResult>()(Schema.Struct({
  _meta: Schema.optionalKey(Meta),
  resultType: Schema.Literal("task"),
  ...taskStateFields
})) {}

/** Params that name one task. */
export class TaskRequestParams extends Schema.Opaque<TaskRequestParams>()(Schema.Struct({
  ...requestFields,
  taskId: Schema.String
})) {}

// Reading accepts any `resultType`, because an example of the extension has `task` here. Writing always writes
// `complete`, which the text of the extension requires.
const completeFields = {
  _meta: Schema.optionalKey(Meta),
  resultType: since("2026-07-28", Schema.optionalKey(Schema.String), { default: "complete", lower: () => "complete" })
}

/** The result of `tasks/update` and `tasks/cancel`: the server received the request. */
export class AcknowledgeTaskResult extends Schema.Opaque<AcknowledgeTaskResult>()(Schema.Struct(completeFields)) {}

/** The result of `tasks/update`. */
export const UpdateTaskResult = AcknowledgeTaskResult
export type UpdateTaskResult = AcknowledgeTaskResult

/** The result of `tasks/cancel`. */
export const CancelTaskResult = AcknowledgeTaskResult
export type CancelTaskResult = AcknowledgeTaskResult

/** The result of `tasks/get`. */
export const GetTaskResult: Schema.Codec<GetTaskResult> = withDetails(completeFields)
export type GetTaskResult = DetailedTask & AcknowledgeTaskResult

/** The params of `tasks/update`. */
export class UpdateTaskRequestParams extends Schema.Opaque<UpdateTaskRequestParams>()(Schema.Struct({
  ...requestFields,
  taskId: Schema.String,
  /** The responses, by the keys of the task's `inputRequests`. */
  inputResponses: InputResponses
})) {}

/** The params of `notifications/tasks`. */
export const TaskStatusNotificationParams: Schema.Codec<TaskStatusNotificationParams> = withDetails(notificationFields)
export type TaskStatusNotificationParams = DetailedTask & NotificationParams

/** The members that the extension adds to the filter of `subscriptions/listen` and to its acknowledgement. */
export class TaskSubscriptionNotifications extends Schema.Opaque<TaskSubscriptionNotifications>()(Schema.Struct({
  taskIds: Schema.optionalKey(Schema.Array(Schema.String))
})) {}
