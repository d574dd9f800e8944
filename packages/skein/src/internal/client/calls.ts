/**
 * Calls of a client: their options, and the tasks that they become.
 */
import type { McpError } from "../base/errors.ts"
import type { CallToolResult, Progress } from "../base/messages.ts"
import type { Duration } from "../base/types.ts"
import type { TaskHandle } from "./errors.ts"
import type { InputRequests } from "./results.ts"

/** Options with a signal that cancels the call. */
export interface Abortable {
  /** Cancels the request at the server when it aborts. The promise rejects with the reason of the signal, as `fetch` does. */
  readonly signal?: AbortSignal | undefined
}

/**
 * The options of a request. Both timeouts include the time that a lost connection costs, and not the time in which the host
 * answers questions or signs in.
 */
export interface RequestOptions extends Abortable {
  /** How long to wait for the response: that of the client's limits by default (60 seconds). Progress restarts it. */
  readonly timeout?: Duration | undefined
  /** How long to wait in total, regardless of progress: that of the client's limits by default (1 hour). */
  readonly maxTimeout?: Duration | undefined
  /** Asks the server for progress, and receives its reports in order. An exception is logged. */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Receives the id of the request right before it is sent. */
  readonly onSend?: ((id: number) => void) | undefined
  /**
   * The use of the cache, for lists and resources. `use` returns a fresh cached response (the default), `refresh` replaces it,
   * and `bypass` neither reads nor writes the cache.
   */
  readonly cache?: "use" | "refresh" | "bypass" | undefined
  /**
   * Whether the request may be sent again when its response was lost. By default all are, except for calls of tools that are
   * not marked as read-only or idempotent, and methods outside of the protocol.
   */
  readonly retry?: boolean | undefined
  /**
   * The handling of questions in an answer (2026-07-28). `answer` passes them to the host and sends the request again (the
   * default). `fail` rejects with `InputRequired`, which has them.
   */
  readonly inputRequests?: "answer" | "fail" | undefined
  /**
   * The handling of integers beyond 2^53 in the result of a tool, which JavaScript rounds. `fail` rejects with
   * `InvalidResponse` (the default), and `keep` returns the result.
   */
  readonly roundedIntegers?: "fail" | "keep" | undefined
}

/** The options of a request for one page of a list. */
export interface PageOptions extends RequestOptions {
  /** The `nextCursor` of the previous page. Without it, the first page is requested. */
  readonly cursor?: string | undefined
}

/** The options of `ping`. */
export interface PingOptions extends Abortable {
  readonly timeout?: Duration | undefined
  readonly maxTimeout?: Duration | undefined
  readonly retry?: boolean | undefined
}

/** The argument to complete, and the options of the request. */
export interface CompleteOptions extends RequestOptions {
  /** The prompt or the resource template whose argument is completed. */
  readonly ref:
    | { readonly type: "ref/prompt"; readonly name: string; readonly title?: string }
    | { readonly type: "ref/resource"; readonly uri: string }
  /** The argument, and its value as far as the user has typed it. */
  readonly argument: { readonly name: string; readonly value: string }
  /** The values of other arguments that the user has chosen already. Sent since 2025-06-18. */
  readonly contextArguments?: { readonly [argument: string]: string } | undefined
}

/** How a task is handled that a server answers a call with. */
export interface TaskOptions {
  /**
   * 2025-11-25: whether a tool that may be called as a task is called as one: false by default, and true for `startTask`.
   * Tools that require a task or forbid it are not affected.
   */
  readonly augment?: boolean | undefined
  /** 2025-11-25: how long the server is asked to keep the task. By default it is not asked. */
  readonly ttl?: Duration | undefined
  /**
   * Whether the task goes on when this client no longer waits for it: false by default, and then it is cancelled. True for
   * `startTask` and `resumeTask`.
   */
  readonly leaveRunning?: boolean | undefined
  /** Called with the task as soon as it is created, to store its `handle`. An exception is logged. */
  readonly onTask?: ((task: RemoteTask) => void) | undefined
}

/**
 * The options of a tool call. If the server answers with a task, its result is awaited: then `timeout` applies to each
 * request, and `maxTimeout`, if it is given here, to all of them.
 */
export interface CallToolOptions extends RequestOptions {
  /** How a task is handled that the server answers with. */
  readonly task?: TaskOptions | undefined
}

/** The options of `resumeTask`. */
export interface ResumeOptions extends Abortable {
  /** Whether the task goes on when this client no longer waits for it: true by default. */
  readonly leaveRunning?: boolean | undefined
  /** The timeout of each request about the task: that of the client's limits by default. */
  readonly timeout?: Duration | undefined
  /** The time for the whole task, from now on: until the `ttlMs` of the task is over by default. */
  readonly maxTimeout?: Duration | undefined
}

/** The members that a task has in any status. */
interface Described {
  readonly taskId: string
  /** A text about the status, for people or for a language model, written by the server. */
  readonly statusMessage?: string | undefined
  /** When the task was created, by the clock of the server: ISO 8601. */
  readonly createdAt: string
  /** When the task changed last, by the clock of the server: ISO 8601. */
  readonly lastUpdatedAt: string
  /** Milliseconds from the creation after which the server may delete the task; `null`: never. */
  readonly ttlMs: number | null
  /** The poll interval that the server suggests, in milliseconds. */
  readonly pollIntervalMs?: number | undefined
  /** The last progress that was reported. Only in 2025-11-25, if the call asked for progress. */
  readonly progress?: Progress | undefined
}

/** The state of a task. `completed`, `failed` and `cancelled` are final. A result may have `isError`. */
export type TaskState =
  | Described & { readonly status: "working" }
  | Described & { readonly status: "input_required"; readonly inputRequests: InputRequests }
  | Described & { readonly status: "completed"; readonly result: CallToolResult }
  | Described & { readonly status: "failed"; readonly error: McpError }
  | Described & { readonly status: "cancelled" }

/**
 * A task of a server. The client follows it, and answers its questions, while a call of `result` or a loop over `states` runs.
 * Aborting their signals does not cancel the task, unless the option `leaveRunning` is off.
 */
export interface RemoteTask {
  readonly _tag: "RemoteTask"
  readonly id: string
  /** A JSON value to store, for `resumeTask`. */
  readonly handle: TaskHandle
  /**
   * The present state first, then each change, and the final state at the end. A task that failed or was cancelled is a state.
   * A slow reader loses all but the last 16 states.
   */
  readonly states: (options?: Abortable) => AsyncIterable<TaskState>
  /**
   * Waits for the result. Rejects with a `ClientError`: `ProtocolError` if the task failed, `TaskCancelled`, `TaskNotFound`,
   * `InputRefused`, `Timeout` after `maxTimeout`, and others. If the task may go on, `task` of the error is its handle.
   */
  readonly result: (options?: Abortable) => Promise<CallToolResult>
  /** Asks the server to cancel the task, and does not wait for its end. A task that has ended does not change. */
  readonly cancel: (options?: Abortable) => Promise<void>
}

/** The result of `startTask`: the task, or the result of a call that the server has answered at once. */
export type Started = RemoteTask | {
  readonly _tag: "Finished"
  readonly result: () => Promise<CallToolResult>
}
