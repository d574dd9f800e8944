/**
 * A child that the body of a task starts, and the options of its start.
 */
import type * as Effect from "effect/Effect"
import type { TaskError } from "../../TaskError.ts"
import type { TaskEnd } from "./taskEnd.ts"

/**
 * The value of a task: the structured content of its result, as its `output` decodes it; or the text of the result of a
 * task without `output`.
 */
export type ValueOf<Output> = [Output] extends [never] ? string : Output

/** How a body starts a child. */
export interface StartOptions {
  /** Its name among the children of the task: unique, and the same in each run. Default: the name of its tool. */
  readonly key?: string | undefined
  /** Whether it continues when its parent ends. Default `false`: it is cancelled then. */
  readonly detached?: boolean | undefined
}

/** A child that a body has started. */
export interface Child<Value> {
  /** The id of the task. Keep it secret: it may be enough to read the task. */
  readonly id: string
  /** Its name among the children of its parent. */
  readonly key: string
  /** Decodes its value. */
  readonly "~end": (end: TaskEnd) => Effect.Effect<Value, TaskError>
}

/** How a body starts a child for each item. */
export interface ForEachOptions {
  /** The name of the group among the children of the task: unique, and the same in each run. Default: the name of the tool. */
  readonly key?: string | undefined
  /** How many of them run or wait at the same time: a whole number from 1. Default 100. */
  readonly concurrency?: number | undefined
  /**
   * The consequence of a child that fails, is cancelled or expires.
   *
   * - `fail`, the default: the others are cancelled, and `forEach` fails with its error.
   * - `collect`: the others continue, and each item has a `Result` with its value or its error.
   */
  readonly onFailure?: "fail" | "collect" | undefined
}
