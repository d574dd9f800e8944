/**
 * Tasks. A task is described once, with the names of the extension `io.modelcontextprotocol/tasks` (2026-07-28); 2025-11-25
 * had `ttl` and `pollInterval` for what are `ttlMs` and `pollIntervalMs` here. The extension's messages follow; those of
 * 2025-11-25 are in `LegacyTask`.
 */
import * as Schema from "effect/Schema"
import { alone, field, since } from "./Annotate.ts"
import {
  AnyObject,
  AnyValue,
  guarded,
  Meta,
  notificationFields,
  type NotificationParams,
  requestFields
} from "./Common.ts"
import { InputRequests, InputResponses } from "./InputRequired.ts"
import { isObject, type JsonObject } from "./JsonRpc.ts"

/** The identifier of the extension, under `extensions` in the capabilities of both sides. */
export const extension = "io.modelcontextprotocol/tasks"

/** The settings of the extension: none are defined. */
export const TasksExtensionCapability = guarded<JsonObject, typeof Schema.Boolean>(
  "an object",
  isObject,
  Schema.Boolean,
  () => ({})
)
export type TasksExtensionCapability = JsonObject

/** Where a task stands. The last three are final. */
export const TaskStatus = Schema.Literals(["working", "input_required", "completed", "failed", "cancelled"])
export type TaskStatus = typeof TaskStatus.Type

const legacy = alone("2025-11-25")

const describeFields = {
  taskId: Schema.String,
  /** A line for people or for the model about where the task stands. */
  statusMessage: Schema.optionalKey(Schema.String),
  /** An ISO 8601 date and time. */
  createdAt: Schema.String,
  /** An ISO 8601 date and time. */
  lastUpdatedAt: Schema.String,
  /** Milliseconds from its creation after which the server may discard it; `null`: never. */
  ttlMs: field(Schema.NullOr(Schema.Int), { rename: { ...legacy, to: "ttl" } }),
  /** Milliseconds that the other side should wait between two looks at it. */
  pollIntervalMs: field(Schema.optionalKey(Schema.Int), { rename: { ...legacy, to: "pollInterval" } })
}

/** The fields of a task in any status. */
export const taskStateFields = { ...describeFields, status: TaskStatus }

/** A task, without what its status brings along. */
export class Task extends Schema.Opaque<Task>()(Schema.Struct(taskStateFields)) {}

/** A JSON-RPC error, as a value. */
export class ErrorObject extends Schema.Opaque<ErrorObject>()(Schema.Struct({
  code: Schema.Int,
  message: Schema.String,
  data: Schema.optionalKey(AnyValue)
})) {}

const workingFields = { ...describeFields, status: Schema.Literal("working") }
const inputRequiredFields = {
  ...describeFields,
  status: Schema.Literal("input_required"),
  /** Every question that is open. */
  inputRequests: InputRequests
}
const completedFields = {
  ...describeFields,
  status: Schema.Literal("completed"),
  /** What the request would have been answered with: read it by the method of the request. */
  result: AnyObject
}
const failedFields = { ...describeFields, status: Schema.Literal("failed"), error: ErrorObject }
const cancelledFields = { ...describeFields, status: Schema.Literal("cancelled") }

/** A task at work. */
export class WorkingTask extends Schema.Opaque<WorkingTask>()(Schema.Struct(workingFields)) {}
/** A task that waits for the client. */
export class InputRequiredTask extends Schema.Opaque<InputRequiredTask>()(Schema.Struct(inputRequiredFields)) {}
/** A task with its result. */
export class CompletedTask extends Schema.Opaque<CompletedTask>()(Schema.Struct(completedFields)) {}
/** A task with the JSON-RPC error that ended it. */
export class FailedTask extends Schema.Opaque<FailedTask>()(Schema.Struct(failedFields)) {}
/** A task that was cancelled. */
export class CancelledTask extends Schema.Opaque<CancelledTask>()(Schema.Struct(cancelledFields)) {}

/** A task with what its status brings along. */
export const DetailedTask = Schema.Union([WorkingTask, InputRequiredTask, CompletedTask, FailedTask, CancelledTask])
export type DetailedTask = typeof DetailedTask.Type

/** In place of the result of a request: the task that will have it. */
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

// A reader takes any `resultType` here, since an example of the specification's own shows `task`; `complete` is written.
const completeFields = {
  _meta: Schema.optionalKey(Meta),
  resultType: since("2026-07-28", Schema.optionalKey(Schema.String), { default: "complete", lower: () => "complete" })
}

/** The answer to `tasks/update` and to `tasks/cancel`: that it was heard. */
export class AcknowledgeTaskResult extends Schema.Opaque<AcknowledgeTaskResult>()(Schema.Struct(completeFields)) {}

/** The answer to `tasks/update`. */
export const UpdateTaskResult = AcknowledgeTaskResult
export type UpdateTaskResult = AcknowledgeTaskResult

/** The answer to `tasks/cancel`. */
export const CancelTaskResult = AcknowledgeTaskResult
export type CancelTaskResult = AcknowledgeTaskResult

/** The answer to `tasks/get`. */
export const GetTaskResult: Schema.Codec<GetTaskResult> = Schema.Union([
  Schema.Struct({ ...completeFields, ...workingFields }),
  Schema.Struct({ ...completeFields, ...inputRequiredFields }),
  Schema.Struct({ ...completeFields, ...completedFields }),
  Schema.Struct({ ...completeFields, ...failedFields }),
  Schema.Struct({ ...completeFields, ...cancelledFields })
])
export type GetTaskResult = DetailedTask & AcknowledgeTaskResult

/** The params of `tasks/update`. */
export class UpdateTaskRequestParams extends Schema.Opaque<UpdateTaskRequestParams>()(Schema.Struct({
  ...requestFields,
  taskId: Schema.String,
  /** Answers, by the keys of the task's `inputRequests`. */
  inputResponses: InputResponses
})) {}

/** The params of `notifications/tasks`. */
export const TaskStatusNotificationParams: Schema.Codec<TaskStatusNotificationParams> = Schema.Union([
  Schema.Struct({ ...notificationFields, ...workingFields }),
  Schema.Struct({ ...notificationFields, ...inputRequiredFields }),
  Schema.Struct({ ...notificationFields, ...completedFields }),
  Schema.Struct({ ...notificationFields, ...failedFields }),
  Schema.Struct({ ...notificationFields, ...cancelledFields })
])
export type TaskStatusNotificationParams = DetailedTask & NotificationParams

/** What the extension adds to the filter of `subscriptions/listen`, and to its acknowledgement. */
export class TaskSubscriptionNotifications extends Schema.Opaque<TaskSubscriptionNotifications>()(Schema.Struct({
  taskIds: Schema.optionalKey(Schema.Array(Schema.String))
})) {}
