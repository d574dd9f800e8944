/**
 * The errors of tasks.
 */
import * as Context from "@skein/tasks/TaskContext"
import * as Core from "@skein/tasks/TaskError"
import type { TaskOutcome } from "./taskState.ts"

/**
 * Why an operation on a task failed.
 *
 * - `LimitExceeded`: a limit on the number of tasks is reached. The task was not created.
 * - `StoreError`: the database cannot be reached, or a statement, a stored row or a value to store is invalid.
 * - `FileLocked`: another process, or another server in this process, runs the tasks of the SQLite file.
 * - `KeyError`: the encryption keys are missing, invalid or do not decrypt a stored text.
 * - `InvalidOption`: an option has a value outside its bounds. The message names the option.
 * - `NotEnded`: the task has not ended, or its compensations run: it cannot run again.
 * - `UnknownTool`: the store has no task, limit or schedule of the tool, or the process has no such task (`replay`).
 * - `InvalidEvent`: the name, the key or the value of an event to send is out of bounds.
 * - `TooManyEvents`: the task has 1,000 events that it has not received.
 * - `InvalidOutput`: a value that a task emits has no JSON form, or is too large.
 * - `TooMuchOutput`: the output of the task has as many items, or as many bytes, as it may have.
 * - `UnknownTask`: no task has the id of an event, or it has expired.
 * - `AlreadyEnded`: the task of an event has ended.
 * - `InvalidArguments`: the arguments of a task are invalid, or there are too many items. No task was created.
 * - `NotStarted`: `prepare` of the task failed. No task was created.
 * - `Failed`, `Cancelled`, `Expired`: how a task has ended that was awaited. `Failed` has its `outcome`.
 */
export interface TaskErrorReason {
  readonly _tag:
    | "LimitExceeded"
    | "StoreError"
    | "FileLocked"
    | "KeyError"
    | "InvalidOption"
    | "NotEnded"
    | "UnknownTool"
    | "InvalidEvent"
    | "TooManyEvents"
    | "InvalidOutput"
    | "TooMuchOutput"
    | "UnknownTask"
    | "AlreadyEnded"
    | "QueryError"
    | "InvalidArguments"
    | "NotStarted"
    | "Failed"
    | "Cancelled"
    | "Expired"
  readonly message: string
  /** Of `Failed`: a result with `isError`, or a JSON-RPC error. */
  readonly outcome?: TaskOutcome
  readonly cause?: unknown
}

/**
 * An operation on a task failed.
 *
 * @example
 * try {
 *   await shop.start(buy, { tea: "sencha" })
 * } catch (error) {
 *   if (error instanceof TaskError && error.reason._tag === "LimitExceeded") return retryLater()
 *   throw error
 * }
 */
export interface TaskError extends Error {
  readonly _tag: "TaskError"
  readonly reason: TaskErrorReason
}

/** The class of `TaskError`, for `instanceof`. */
export interface TaskErrorClass {
  readonly [Symbol.hasInstance]: (value: unknown) => value is TaskError
}

export const TaskError: TaskErrorClass = Core.TaskError as never

/**
 * A task has not received an event within its `timeout` (`Timeout`), or one whose value does not match its schema
 * (`InvalidEvent`, with the value).
 */
export interface EventError extends Error {
  readonly _tag: "EventError"
  readonly reason: { readonly _tag: "Timeout" | "InvalidEvent"; readonly message: string; readonly value?: unknown }
}

/** The class of `EventError`, for `instanceof`. */
export interface EventErrorClass {
  readonly [Symbol.hasInstance]: (value: unknown) => value is EventError
}

export const EventError: EventErrorClass = Core.EventError as never

/** A step has thrown an error that no client may see, and no retry is left. The message is that of the error. */
export interface StepError extends Error {
  readonly name: "StepError"
  /** The name of the step. */
  readonly step: string
}

/** The class of `StepError`, for `instanceof`. */
export interface StepErrorClass {
  readonly [Symbol.hasInstance]: (value: unknown) => value is StepError
}

export const StepError: StepErrorClass = Context.StepError as never

/** An attempt of a step has exceeded a limit of the step, and no retry is left. */
export interface StepTimeout extends Error {
  readonly _tag: "StepTimeout"
  /** The name of the step. */
  readonly step: string
  /** The option that sets the limit. */
  readonly option: "timeout" | "heartbeatTimeout"
  /** The limit in milliseconds. */
  readonly limitMs: number
}

/** The class of `StepTimeout`, for `instanceof`. */
export interface StepTimeoutClass {
  readonly [Symbol.hasInstance]: (value: unknown) => value is StepTimeout
}

export const StepTimeout: StepTimeoutClass = Core.StepTimeout as never
