/**
 * Calls that a server goes on with as a task: the answer is a handle at first, and the result comes later, in minutes
 * or in days.
 *
 * There are two shapes of it, and one client for both. In 2026-07-28 the extension `io.modelcontextprotocol/tasks` lets
 * the server decide, of clients that declare it (this one does). In 2025-11-25 the client decides, as far as the tool
 * lets it: it does by itself where the tool can be called no other way, and for `optional` ones where a call says so
 * (`augment`).
 *
 * - `client.callTool` gives the result, whether it came at once or through a task. Interrupting it cancels the task.
 * - `client.startTask` gives a {@link RemoteTask} as soon as there is one, and `client.resumeTask` one that was started
 *   before, also by another process: its `handle` is a small JSON value to be kept.
 * - What the server asks on the way is put to the same services as any question (`Elicitation`, `Sampling`, `Roots`),
 *   each once.
 *
 * A task is looked at every poll interval that the server suggests, within bounds. Where the server tells of changes
 * (`subscriptions/listen`, `notifications/tasks/status`) they are taken as they come; in the request era it is looked
 * at ten times less often then, and as often as ever once the server turns out to have kept a change to itself. A lost
 * connection, or a server that starts anew, ends nothing: the task is looked at again.
 *
 * **Time.** A task may take as long as it lives: its `ttlMs`, if it has one, is the backstop. `timeout` is that of each
 * request that is made for it. `maxTimeout` counts for the whole, from the call on, where the call itself gives it; the
 * client's own (1 hour) does not.
 *
 * @example
 * const started = yield* client.startTask("render", { scene }) if (started._tag === "RemoteTask") { yield*
 * store.save(started.handle) yield* Effect.forkScoped(Stream.runForEach(started.states, ({ status, statusMessage }) =>
 * show(status, statusMessage))) } const result = yield* started.result
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { InputRequests } from "@skein/protocol/InputRequired"
import type * as McpError from "@skein/protocol/McpError"
import type { Progress } from "@skein/runtime/RequestContext"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { ClientError } from "./ClientError.ts"
import type { Handle } from "./internal/tasks/handle.ts"

export type { Handle } from "./internal/tasks/handle.ts"

/** What is known of a task in any status. */
export interface Described {
  readonly taskId: string
  /** A line for people or for the model about where the task stands. The server's words. */
  readonly statusMessage?: string | undefined
  /** When it was created, by the clock of the server: ISO 8601. */
  readonly createdAt: string
  /** When it changed last, by the clock of the server: ISO 8601. */
  readonly lastUpdatedAt: string
  /** Milliseconds from its creation after which the server may discard it; `null`: never. */
  readonly ttlMs: number | null
  /** How often the server would like to be asked, in milliseconds. */
  readonly pollIntervalMs?: number | undefined
  /** The last progress that was reported: in 2025-11-25, where the call asked for it. The extension has none. */
  readonly progress?: Progress | undefined
}

/** A task at work. */
export interface Working extends Described {
  readonly status: "working"
}

/** A task that waits for this side. */
export interface InputRequired extends Described {
  readonly status: "input_required"
  /** What the server asks now. Empty in 2025-11-25, where the questions come as requests. */
  readonly inputRequests: InputRequests
}

/** A task with its result, which may have `isError`: 2025-11-25 calls such a task `failed`. */
export interface Completed extends Described {
  readonly status: "completed"
  readonly result: CallToolResult
}

/** A task that a protocol fault has ended. */
export interface Failed extends Described {
  readonly status: "failed"
  readonly error: McpError.McpError
}

/** A task that was cancelled, by whomever. */
export interface Cancelled extends Described {
  readonly status: "cancelled"
}

/** Where a task stands, in the shape of 2026-07-28. `completed`, `failed` and `cancelled` are final. */
export type State = Working | InputRequired | Completed | Failed | Cancelled

/** A call that was answered at once. */
export interface Finished {
  readonly _tag: "Finished"
  readonly result: Effect.Effect<CallToolResult>
}

/**
 * A task of a server's. It is followed, and its questions are answered, while somebody runs `states` or `result`, and
 * by one fiber however many do. When they have stopped it is left to itself, unless `leaveRunning` is off.
 */
export interface RemoteTask {
  readonly _tag: "RemoteTask"
  readonly id: string
  readonly handle: Handle
  /**
   * The present state first, then each change, and the final state at last. It fails where the task cannot be followed
   * any further; a task that failed or was cancelled is a state. A reader that does not keep up misses what is older
   * than the last 16.
   */
  readonly states: Stream.Stream<State, ClientError>
  /**
   * The result, checked and read as that of any call. It fails with `ProtocolError` where the task failed, as the call
   * would have; with `TaskCancelled` where it was cancelled; with `TaskNotFound` where the server does not know it, or
   * it is past its time; with `InputRefused`, `Unsupported`, `LimitExceeded` or `InvalidResponse` where what the server
   * asks came to nothing; with `Timeout` after `maxTimeout`; and with `Closed` where the client has ended. The error's
   * `task` is the handle, where the task may go on.
   */
  readonly result: Effect.Effect<CallToolResult, ClientError>
  /**
   * Asks the server to cancel it. Does not wait for its end, nor is that certain: "a server is not obligated to
   * actually stop the work" (the extension, task cancellation). What has ended before stays as it is.
   */
  readonly cancel: Effect.Effect<void, ClientError>
}

/** What `startTask` gives. Both have a `result`. */
export type Started = RemoteTask | Finished

/** How a call goes on that the server answers with a task. */
export interface TaskOptions {
  /**
   * 2025-11-25: whether a tool is called as a task that can be called either way (`taskSupport: "optional"`). No by
   * default, and yes for `startTask`. Tools that can only be called so are, whatever is said here; others never.
   */
  readonly augment?: boolean | undefined
  /**
   * 2025-11-25: how long the server is asked to keep the task, from its creation. It decides; it is not asked by
   * default.
   */
  readonly ttl?: Duration.Input | undefined
  /**
   * Whether the task goes on when this side does not wait for it any more: it was interrupted, its time was over, or a
   * question could not be answered. No by default: it is cancelled; yes for `startTask` and `resumeTask`.
   */
  readonly leaveRunning?: boolean | undefined
  /**
   * Hears of the task as soon as there is one: "clients SHOULD persist task IDs to durable storage". What it throws is
   * logged.
   */
  readonly onTask?: ((task: RemoteTask) => void) | undefined
}

/** How a task is taken up again. */
export interface ResumeOptions extends Pick<TaskOptions, "leaveRunning"> {
  /** Of each request that is made for it, instead of that of the client's limits. */
  readonly timeout?: Duration.Input | undefined
  /** Of all of it, from now on: as long as the task lives, unless it is given. */
  readonly maxTimeout?: Duration.Input | undefined
}

/** How a client goes about tasks. Durations; every member is optional. */
export interface Options {
  /** How long is waited between two looks where the server suggests nothing: 1 second by default. */
  readonly pollInterval?: Duration.Input | undefined
  /** The shortest time between two looks, whatever the server suggests: 100 milliseconds by default. */
  readonly minPollInterval?: Duration.Input | undefined
  /** The longest: 5 minutes by default. A server that suggests more is looked at as often as that. */
  readonly maxPollInterval?: Duration.Input | undefined
  /**
   * How many looks in a row may fail for reasons that may pass before the wait fails as the last of them did: 10 by
   * default. Each is waited for twice as long as the one before, up to 30 seconds.
   */
  readonly maxFailures?: number | undefined
  /**
   * How many questions one task may ask over its life: 1,000 by default, those that it takes back among them. One that
   * asks more fails with `LimitExceeded`. How many may be open at once is `maxInputRequests` of the client, how many
   * the host is asked at once `inputRequestConcurrency`.
   */
  readonly maxTaskInputRequests?: number | undefined
  /**
   * How many tasks are subscribed to at the same time, in the request era: 100 by default, all by one
   * `subscriptions/listen`. The others are looked at every poll interval. 0 for none.
   */
  readonly maxSubscriptions?: number | undefined
  /**
   * How long a call that is interrupted waits until the server has heard that its task is cancelled: 5 seconds by
   * default.
   */
  readonly cancelTimeout?: Duration.Input | undefined
}
