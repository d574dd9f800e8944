/**
 * Requests augmented with a task, in 2025-11-25 only: the sender asks the receiver to answer with a task. The messages
 * about such a task are in `LegacyTask`.
 */
import * as Schema from "effect/Schema"
import { only } from "./Annotate.ts"
import { requestFields } from "./Message.ts"

/** The `task` member of a request's params. Its presence asks for a task, even if it is empty. */
export class TaskMetadata extends Schema.Opaque<TaskMetadata>()(Schema.Struct({
  /** How long the receiver should retain the task, in milliseconds from its creation. */
  ttl: Schema.optionalKey(Schema.Int)
})) {}

/** The fields of the params of a request that can be augmented with a task. */
export const taskFields = {
  ...requestFields,
  task: only("2025-11-25", Schema.optionalKey(TaskMetadata), { essential: true })
}

/** The params of a request that can be augmented with a task, without its other fields. */
export class TaskAugmentedRequestParams
  extends Schema.Opaque<TaskAugmentedRequestParams>()(Schema.Struct(taskFields))
{}
