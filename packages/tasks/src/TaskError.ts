/**
 * The errors of the task engine, of a task that awaits an event, and of a step that takes too long. Their `reason` is a tagged error, so that
 * `Effect.catchReason` selects one.
 *
 * @example
 * const state = engine.submit(task).pipe(
 *   Effect.catchReason("TaskError", "LimitExceeded", () => Effect.succeed(undefined)))
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import * as Data from "effect/Data"
import type { Outcome } from "./TaskState.ts"

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

/** The task has not ended, or its compensations run: it cannot run again (`TaskAdmin.rerun`). */
export class NotEnded extends PrintableError.tagged("NotEnded") {}

/**
 * The store has no task, limit or schedule of the tool (`TaskAdmin.pause`), or the process no handler of it
 * (`TaskAdmin.replay`, `TaskEngine.query`).
 */
export class UnknownTool extends PrintableError.tagged("UnknownTool") {}

/**
 * An event is invalid: its name, key or value is out of bounds when it is sent (`TaskEngine.send`), or its value does not
 * match the `schema` of `Task.awaitEvent`.
 */
export class InvalidEvent extends PrintableError.tagged("InvalidEvent")<{
  /** The value that was received, as JSON. `undefined` for an event that was not sent. */
  readonly value?: unknown
}> {}

/** The task has 1,000 events that it has not received (`TaskEngine.send`). Send it again later. */
export class TooManyEvents extends PrintableError.tagged("TooManyEvents") {}

/** A value that `Task.emit` cannot add to the output: it has no JSON form, or is too large. */
export class InvalidOutput extends PrintableError.tagged("InvalidOutput") {}

/** The output of the task has as many items, or as many bytes, as it may have (`Task.emit`). */
export class TooMuchOutput extends PrintableError.tagged("TooMuchOutput") {}

/** No task has the id, or it has expired (`TaskEngine.send`). */
export class UnknownTask extends PrintableError.tagged("UnknownTask") {}

/** The task has ended, and receives no events (`TaskEngine.send`). */
export class AlreadyEnded extends PrintableError.tagged("AlreadyEnded") {}

/** The body of the task does not answer the query at its place, or its answer has failed (`TaskEngine.query`). */
export class QueryError extends PrintableError.tagged("QueryError") {}

/**
 * The arguments of a task do not match its `input`, or there are more items than a task may start others for
 * (`Task.forEach`). No task was created.
 */
export class InvalidArguments extends PrintableError.tagged("InvalidArguments") {}

/** The preparation of a task failed (`Task.layerPrepared`), or no server of this process prepares it. No task was created. */
export class NotStarted extends PrintableError.tagged("NotStarted") {}

/** The task that was awaited has failed. The message is that of the failure. */
export class Failed extends PrintableError.tagged("Failed")<{
  /** A result with `isError`, or a JSON-RPC error. */
  readonly outcome: Outcome
}> {}

/**
 * The task that was awaited was cancelled, and the message is its status message; or the branch of a task was cancelled
 * (`Task.branch`).
 */
export class Cancelled extends PrintableError.tagged("Cancelled") {}

/** The task that was awaited has exceeded its time to live, or is deleted. */
export class Expired extends PrintableError.tagged("Expired") {}

/** Why an operation on a task failed. */
export type Reason =
  | LimitExceeded
  | StoreError
  | FileLocked
  | KeyError
  | InvalidOption
  | NotEnded
  | UnknownTool
  | InvalidEvent
  | TooManyEvents
  | InvalidOutput
  | TooMuchOutput
  | UnknownTask
  | AlreadyEnded
  | QueryError
  | InvalidArguments
  | NotStarted
  | Failed
  | Cancelled
  | Expired

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

/**
 * An attempt of a step has exceeded a limit of the step (`Step.run`), and no retry is left.
 *
 * @example
 * const paid = Step.run("charge", { timeout: "30 seconds" }, (key) => charge(key)).pipe(
 *   Effect.catchTag("StepTimeout", ({ limitMs }) => Effect.succeed(`no answer in ${limitMs} ms`)))
 */
export class StepTimeout extends PrintableError.tagged("StepTimeout")<{
  /** The name of the step. */
  readonly step: string
  /** The option that sets the limit. */
  readonly option: "timeout" | "heartbeatTimeout"
  /** The limit in milliseconds. */
  readonly limitMs: number
}> {}

/** No event came within the `timeout` of `Task.awaitEvent`. */
export class EventTimeout extends PrintableError.tagged("Timeout") {}

/**
 * A task has not received an event (`Timeout`), or one whose value does not match its schema (`InvalidEvent`).
 *
 * @example
 * const paid = Task.awaitEvent("paid", { schema: Payment, timeout: "2 days" }).pipe(
 *   Effect.catchReason("EventError", "Timeout", () => Effect.succeed(undefined)))
 */
export class EventError extends Data.TaggedError("EventError")<{ readonly reason: EventTimeout | InvalidEvent }> {
  override readonly cause = this.reason

  override get message(): string {
    return this.reason.message
  }
}
