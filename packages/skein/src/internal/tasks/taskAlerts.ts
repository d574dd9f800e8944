/**
 * The alerts of tasks.
 */
import type { Duration } from "../base/types.ts"

/** The task that an alert is about. Its id may be enough to read it: keep it from those who may not. */
export interface AlertedTask {
  readonly id: string
  readonly tool: string
  readonly pool: string
}

/** An event that an operator should know of. `message` may hold what callers have sent. */
export type TaskAlert =
  /** `failed`: a JSON-RPC error, or an unexpected error. `tool_error`: an error in the words of the tool, which its user reads. */
  | {
    readonly _tag: "Failed"
    readonly task: AlertedTask
    readonly outcome: "failed" | "tool_error"
    readonly message: string | undefined
  }
  /** Its workers have ended while they ran it, `maxAttempts` times in a row. */
  | { readonly _tag: "GivenUp"; readonly task: AlertedTask; readonly message: string | undefined }
  /** Its code has changed: it waits for code that reaches its log (`admin.settle`). `message` names both sides. */
  | { readonly _tag: "NeedsAttention"; readonly task: AlertedTask; readonly message: string }
  /** `ready`: the number of tasks that are ready. `oldestMs`: how long the oldest one has been, in milliseconds. */
  | {
    readonly _tag: "QueueOld"
    readonly pool: string
    readonly tool: string
    readonly ready: number
    readonly oldestMs: number
  }

/** Whom to alert. */
export interface TaskAlertsOptions {
  /**
   * Receives each alert of a task that this process has run, one after the other, beside the tasks. 1,000 alerts may wait. A
   * function that fails, or takes more than 30 seconds, is logged once until it succeeds again, and not repeated.
   */
  readonly notify: (alert: TaskAlert) => void | Promise<void>
  /**
   * How long a task may be ready before `QueueOld`, which is repeated after an hour. By default the queue is not read. Set it in
   * one or two processes: each reads the queue every 15 seconds.
   */
  readonly queueOlderThan?: Duration | undefined
}
