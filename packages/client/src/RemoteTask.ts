/**
 * Tasks: calls that a server answers with a handle first, and with the result later, in minutes or in days.
 *
 * The client supports both kinds of tasks with the same methods. In 2026-07-28 the extension
 * `io.modelcontextprotocol/tasks` lets the server decide which calls become tasks, for clients that declare the
 * extension, as this one does. In 2025-11-25 the client decides, as far as the tool allows it: a tool that must be
 * called as a task is called as one automatically, and an `optional` one if the call asks for it (`augment`).
 *
 * - `client.callTool` returns the result, with or without a task. Interrupting it cancels the task.
 * - `client.startTask` returns a {@link RemoteTask} as soon as the server has created one. `client.resumeTask` returns
 *   a task that was started before, also by another process: its `handle` is a small JSON value to be stored.
 * - Input requests of a task are passed to the same services as all others (`Elicitation`, `Sampling`, `Roots`), each
 *   of them once.
 *
 * The client polls the status of a task at the interval that the server suggests, within 100 milliseconds and 5 minutes. Status changes that
 * the server sends (`subscriptions/listen`, `notifications/tasks/status`) are used as they arrive. In the stateless
 * revision the client polls ten times less often while the task is subscribed to, and at the normal interval again once
 * a poll finds a change that the server did not send. After a lost connection or a restart of the server, polling
 * continues.
 *
 * A task may take until its `ttlMs` is over, if it has one. `timeout` applies to each request about the task.
 * `maxTimeout` applies to the whole, from the call on, if the call has that option; the client's default of 1 hour does
 * not apply.
 *
 * @example
 * ```ts
 * const started = yield* client.startTask("render", { scene })
 * if (started._tag === "RemoteTask") {
 *   yield* store.save(started.handle)
 *   yield* Effect.forkScoped(
 *     Stream.runForEach(started.states, ({ status, statusMessage }) => show(status, statusMessage))
 *   )
 * }
 * const result = yield* started.result
 * ```
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { InputRequests } from "@skein/protocol/InputRequired"
import type * as McpError from "@skein/protocol/McpError"
import type { Progress } from "@skein/runtime/RequestContext"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { ClientError, TaskHandle as Handle } from "./ClientError.ts"

export type { Handle }

/** The members that a task has in any status. */
export interface Described {
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
  /**
   * The last progress that was reported. Only in 2025-11-25, if the call asked for progress: the extension has none.
   */
  readonly progress?: Progress | undefined
}

/** A task that runs. */
export interface Working extends Described {
  readonly status: "working"
}

/** A task that waits for input from this client. */
export interface InputRequired extends Described {
  readonly status: "input_required"
  /** The open input requests. Empty in 2025-11-25, in which the server sends them as requests. */
  readonly inputRequests: InputRequests
}

/** A task with its result, which may have `isError`: 2025-11-25 calls such a task `failed`. */
export interface Completed extends Described {
  readonly status: "completed"
  readonly result: CallToolResult
}

/** A task that ended with a protocol error. */
export interface Failed extends Described {
  readonly status: "failed"
  readonly error: McpError.McpError
}

/** A task that was cancelled, by this client or at the server. */
export interface Cancelled extends Described {
  readonly status: "cancelled"
}

/** The state of a task, in the form of 2026-07-28. `completed`, `failed` and `cancelled` are final. */
export type State = Working | InputRequired | Completed | Failed | Cancelled

/** A call that was answered with its result. */
export interface Finished {
  readonly _tag: "Finished"
  readonly result: Effect.Effect<CallToolResult>
}

/**
 * A task of a server. The client follows it, and answers its input requests, while `states` or `result` run, with one
 * fiber for all of them. When all have stopped, the task continues at the server, unless `leaveRunning` is off.
 */
export interface RemoteTask {
  readonly _tag: "RemoteTask"
  readonly id: string
  readonly handle: Handle
  /**
   * The present state first, then each change, and the final state at the end. It fails if the task cannot be followed
   * any further; a task that failed or was cancelled is a state. A slow reader loses all but the last 16 states.
   */
  readonly states: Stream.Stream<State, ClientError>
  /**
   * The result, decoded and validated like that of any call. It fails with
   * - `ProtocolError` if the task failed, as the call would have;
   * - `TaskCancelled` if the task was cancelled;
   * - `TaskNotFound` if the server does not have the task, or its time to live is over;
   * - `InputRefused`, `Unsupported`, `LimitExceeded` or `InvalidResponse` if an input request could not be answered;
   * - `Timeout` after `maxTimeout`;
   * - `Closed` if the client has ended.
   *
   * If the task may go on, the `task` of the error is its handle.
   */
  readonly result: Effect.Effect<CallToolResult, ClientError>
  /**
   * Asks the server to cancel the task. It does not wait for the end of the task, which is not certain either: "a
   * server is not obligated to actually stop the work" (the extension, task cancellation). A task that has ended does
   * not change.
   */
  readonly cancel: Effect.Effect<void, ClientError>
}

/** The result of `startTask`. Both variants have a `result`. */
export type Started = RemoteTask | Finished

/** The options of a call that the server may answer with a task. */
export interface TaskOptions {
  /**
   * 2025-11-25: whether a tool with `taskSupport: "optional"` is called as a task. Default false; true for `startTask`.
   * It does not affect tools that require a task or forbid it. The tools are listed first if the definition of this one
   * is unknown, as after a restart of the server. If it remains unknown, `callTool` calls it without a task, and
   * `startTask` fails.
   */
  readonly augment?: boolean | undefined
  /**
   * 2025-11-25: how long the server is asked to keep the task, from its creation. The server decides. Default: it is
   * not asked.
   */
  readonly ttl?: Duration.Input | undefined
  /**
   * Whether the task goes on when this client no longer waits for it, because it was interrupted, its time was over, or
   * an input request could not be answered. Default false: the task is cancelled. True for `startTask` and
   * `resumeTask`.
   */
  readonly leaveRunning?: boolean | undefined
  /**
   * Called with the task as soon as it is created: "clients SHOULD persist task IDs to durable storage". An exception
   * is logged.
   */
  readonly onTask?: ((task: RemoteTask) => void) | undefined
}

/** The options of `resumeTask`. */
export interface ResumeOptions extends Pick<TaskOptions, "leaveRunning"> {
  /** The timeout of each request about the task. Default: that of the client's limits. */
  readonly timeout?: Duration.Input | undefined
  /** The time for the whole task, from now on. Default: until the `ttlMs` of the task is over. */
  readonly maxTimeout?: Duration.Input | undefined
}

/** How a client follows tasks. All members are optional. */
export interface Options {
  /**
   * The poll interval if the server suggests none: 1 second by default, and 100 milliseconds to 5 minutes in any case.
   * Raise it for servers whose tasks take hours and that suggest no interval.
   */
  readonly pollInterval?: Duration.Input | undefined
  /**
   * How many polls in a row may fail with a transient failure before the task fails with the last one: 10 by default. The
   * delay doubles with each failure, up to 30 seconds. Raise it for tasks that outlive long outages of their server.
   */
  readonly maxFailures?: number | undefined
}
