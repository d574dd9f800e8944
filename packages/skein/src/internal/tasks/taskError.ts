/**
 * The errors of tasks.
 */
import * as Context from "@skein/tasks/TaskContext"
import * as Core from "@skein/tasks/TaskError"

/**
 * Why an operation on a task failed.
 *
 * - `LimitExceeded`: a limit on the number of tasks is reached. The task was not created.
 * - `StoreError`: the database cannot be reached, or a statement, a stored row or a value to store is invalid.
 * - `FileLocked`: another process, or another server in this process, runs the tasks of the SQLite file.
 * - `KeyError`: the encryption keys are missing, invalid or do not decrypt a stored text.
 * - `InvalidOption`: an option has a value outside its bounds. The message names the option.
 */
export interface TaskErrorReason {
  readonly _tag: "LimitExceeded" | "StoreError" | "FileLocked" | "KeyError" | "InvalidOption"
  readonly message: string
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

/** A step has thrown an error that no client may see, and its retries are used up. The message is that of the error. */
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
