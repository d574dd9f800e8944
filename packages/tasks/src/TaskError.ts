/**
 * The error of the task engine. Its `reason` is a tagged error, so that `Effect.catchReason` selects one.
 *
 * @example
 * const state = engine.submit(task).pipe(
 *   Effect.catchReason("TaskError", "LimitExceeded", () => Effect.succeed(undefined)))
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Data from "effect/Data"

/** A limit on the number of tasks is reached (`Tasks.Options.limits`). The task was not created. */
export class LimitExceeded extends PrintableError.tagged("LimitExceeded") {}

/** The database cannot be reached, or a statement, a stored row or a value to store is invalid. */
export class StoreError extends PrintableError.tagged("StoreError")<{
  readonly cause?: unknown
}> {}

/** Another process, or another layer in this process, runs the tasks of the SQLite file (`SqliteTasks`). */
export class FileLocked extends PrintableError.tagged("FileLocked")<{
  readonly cause?: unknown
}> {}

/**
 * The encryption keys are missing, invalid or do not decrypt a stored text (`Encryption`). A text that was changed in
 * the database fails in the same way.
 */
export class KeyError extends PrintableError.tagged("KeyError") {}

/** An option of an engine has a value outside its bounds. The message names the option. */
export class InvalidOption extends PrintableError.tagged("InvalidOption") {}

/** Why an operation on a task failed. */
export type Reason = LimitExceeded | StoreError | FileLocked | KeyError | InvalidOption

/**
 * An operation on a task failed. The `message` is that of the reason, for the log: clients receive it only for
 * `LimitExceeded`, and in other words.
 */
export class TaskError extends Data.TaggedError("TaskError")<{ readonly reason: Reason }> {
  override readonly cause = this.reason

  override get message(): string {
    return this.reason.message
  }
}
