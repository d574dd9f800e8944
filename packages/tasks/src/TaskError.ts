/**
 * Why something could not be done with a task.
 */
import * as Schema from "effect/Schema"

/**
 * - `Limit`: a bound on tasks is reached (`Tasks.Options`, `limits`); nothing was begun.
 * - `Store`: the store cannot be reached, or does not do what it should.
 * - `Locked`: another process has the SQLite file (`SqliteTasks`).
 * - `Key`: what is stored is sealed with a key that is not given, or was tampered with (`Encryption`).
 */
export type Reason = "Limit" | "Store" | "Locked" | "Key"

/** See `Reason`. The `message` is a line for the log: what of it a client may see is the face's to say. */
export class TaskError extends Schema.TaggedError<TaskError>()("TaskError", {
  reason: Schema.Literals(["Limit", "Store", "Locked", "Key"]),
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect())
}) {}
