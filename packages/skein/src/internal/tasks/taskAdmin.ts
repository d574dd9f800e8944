/**
 * Tasks for an operator.
 */
import type { TaskListPosition, TaskOwner, TaskQuestion, TaskState, TaskStatus } from "./taskState.ts"
import type { TaskSchedules } from "./taskSchedule.ts"

/** Which tasks to list: those that have all of the given properties. */
export interface TaskFilter {
  /** The name of the task, as in `task(name, …)`. */
  readonly tool?: string | undefined
  readonly pool?: string | undefined
  readonly owner?: TaskOwner | undefined
  readonly status?: ReadonlyArray<TaskStatus> | undefined
  /** `true`: tasks that are `failed`, and those that are `completed` with a result that has `isError`. */
  readonly hasFailed?: true | undefined
  /** The id of the worker that runs them. */
  readonly worker?: string | undefined
}

/**
 * The place of a task in the queue. `runs`: how often a worker has claimed it; `attempts`: how many workers were lost while
 * they ran it, since its log has grown.
 */
export type TaskPlace =
  /**
   * It waits for a worker, since a time in milliseconds of Unix time. `heldBy`: until its tool is resumed (`pause`), or
   * until the concurrency and the rate of its tool allow it to continue (`limit`).
   */
  | {
    readonly _tag: "Ready"
    readonly since: number
    readonly runs: number
    readonly attempts: number
    readonly heldBy: "pause" | "limit" | undefined
  }
  /** It waits for an event, at most until a time in milliseconds of Unix time; `undefined`: for an answer. */
  | { readonly _tag: "Waiting"; readonly until: number | undefined; readonly runs: number; readonly attempts: number }
  /** A worker runs it. */
  | { readonly _tag: "Running"; readonly worker: string; readonly runs: number; readonly attempts: number }
  /** It has ended, and has nothing left to compensate. */
  | { readonly _tag: "Settled" }

/** A task in a listing. */
export interface ListedTask {
  /** Its state, without questions and outcome. */
  readonly state: TaskState
  readonly place: TaskPlace
  /** The number of events in its log. */
  readonly events: number
}

/** An event that a handler has observed, a timer that it has set, or the beginning of its compensations. */
export interface LoggedEvent {
  /** Its position in the log, from 1. After `continueWith` the log begins with `continued`, at a later position. */
  readonly seq: number
  readonly kind: "step" | "once" | "timer" | "fired" | "answer" | "timeout" | "undo" | "giveUp" | "continued"
  /**
   * The name of a step, the key of a question, the reason of compensations, or after how many lost workers the task was
   * given up. Timers are `sleep/…`, `retry/…` and `timeout/…`.
   */
  readonly name: string
  /** The number of the attempt of a step, from 1. */
  readonly attempt: number
  /** When a step began, in milliseconds of Unix time. */
  readonly startedAt: number | undefined
  /** When it happened, or when a timer ends, in milliseconds of Unix time. */
  readonly at: number
  /** Whether an attempt of a step has failed; `undefined` for other events, and if the record cannot be decrypted. */
  readonly failed: boolean | undefined
  /** The record of a step as JSON text: only if it was requested. */
  readonly value: string | undefined
}

/** A task with its log. */
export interface InspectedTask extends ListedTask {
  readonly questions: ReadonlyArray<TaskQuestion>
  readonly log: ReadonlyArray<LoggedEvent>
}

/** A worker: a process that runs tasks of a PostgreSQL database. */
export interface WorkerState {
  readonly id: string
  readonly pools: ReadonlyArray<string>
  readonly host: string
  /** Milliseconds of Unix time, by the clock of the database. */
  readonly startedAt: number
  /** When its lease ends without a renewal: milliseconds of Unix time, by the clock of the database. */
  readonly leaseEndsAt: number
  /** Whether that time is over: other workers take its tasks. */
  readonly isLost: boolean
  /** The number of tasks that it runs. */
  readonly running: number
}

/** A tool that is paused, or whose tasks have a limit of concurrency or a rate. */
export interface ToolState {
  readonly tool: string
  readonly concurrency: number | undefined
  readonly rate: { readonly limit: number; readonly periodMs: number } | undefined
  /** Since when it is paused, in milliseconds of Unix time. */
  readonly pausedAt: number | undefined
  /** The number of its tasks that run. */
  readonly running: number
}

/** The numbers of tasks. */
export interface TaskStatistics {
  readonly tasks: ReadonlyArray<{
    readonly tool: string
    readonly status: TaskStatus
    readonly count: number
    /** How many of these have a result with `isError`. They are `completed`. */
    readonly errors: number
  }>
  /** The tasks that are not settled, by pool, tool and state. */
  readonly queue: ReadonlyArray<{
    readonly pool: string
    readonly tool: string
    readonly state: "ready" | "waiting" | "running"
    readonly count: number
    /** The age of the oldest `ready` task, in milliseconds. */
    readonly oldestMs: number | undefined
  }>
}

/** A difference between tasks that exist and the code of this process. */
export interface CodeFinding {
  readonly tool: string
  /**
   * - `skipped`: the code does not reach recorded events, such as a step that was removed or renamed, or reaches
   *   something new before them. The task skips them.
   * - `stopped`: a recorded event is missing, and a part of the task that ran beside it would go on without it. The task
   *   stops until code that reaches the event is back.
   * - `question`: the code does not ask a question that is open. The question is withdrawn when the task next waits.
   * - `failed`: the handler fails.
   * - `plain`: the task has steps, and the tool is not a durable one in this process. The task waits.
   * - `missing`: no worker has the tool. The task waits.
   */
  readonly kind: "skipped" | "stopped" | "question" | "failed" | "plain" | "missing"
  /** The number of these tasks among the checked ones. */
  readonly count: number
  /** Their ids, at most 10. */
  readonly tasks: ReadonlyArray<string>
  /** The events that are not reached, questions that are not asked, and failures: at most 10 texts of 300 characters. */
  readonly details: ReadonlyArray<string>
}

/** The result of a check. */
export interface CodeCheck {
  /** The number of tasks that were compared. */
  readonly checked: number
  /** Whether these were all tasks that have run and do not run now. */
  readonly isComplete: boolean
  /** At most one for each tool and kind. */
  readonly findings: ReadonlyArray<CodeFinding>
}

/**
 * The methods of an operator. They do not check owners. Their promises reject with a `TaskError`.
 *
 * @example
 * const failed = await shop.admin.list({ hasFailed: true }, { limit: 20 })
 */
export interface TaskAdmin {
  /** The tasks that match, newest first: 100 by default, at most 1,000. `after` is the last task of the previous page. */
  readonly list: (
    filter: TaskFilter,
    options?: { readonly after?: TaskListPosition | undefined; readonly limit?: number | undefined }
  ) => Promise<ReadonlyArray<ListedTask>>
  /**
   * A task with its open questions and its log; `undefined` for an unknown id. `values`: also the records of the steps,
   * decrypted, which may contain what callers have sent. Default `false`.
   */
  readonly inspect: (
    id: string,
    options?: { readonly values?: boolean | undefined }
  ) => Promise<InspectedTask | undefined>
  /** Cancels a task, which then compensates. Returns `false` if it has ended or does not exist. */
  readonly cancel: (id: string, statusMessage?: string) => Promise<boolean>
  /** Lets workers run a task that waits, before its time. Returns `false` if it does not wait. */
  readonly wake: (id: string) => Promise<boolean>
  /**
   * Runs a task again, as a new task of the same owner, tool and arguments: from its beginning, or from a step with the
   * recorded events before that step. The steps that run have other idempotency keys, so do not run a task again whose
   * effects are not undone. Returns the state of the new task; `undefined` for an unknown task or step.
   */
  readonly rerun: (id: string, options?: { readonly from?: string | undefined }) => Promise<TaskState | undefined>
  /**
   * Pauses a tool for all processes of the store, until it is resumed. Calls are accepted, and their tasks wait. Returns
   * `false` if the tool was paused already.
   */
  readonly pause: (tool: string) => Promise<boolean>
  /** Resumes a tool. Returns `false` if it was not paused. */
  readonly resume: (tool: string) => Promise<boolean>
  /** The tools that are paused, or have a limit of concurrency or a rate. */
  readonly tools: () => Promise<ReadonlyArray<ToolState>>
  /**
   * Compares the code of this process with tasks that exist, by replays that store nothing. `limit`: the number of
   * unsettled tasks that it reads, 1,000 by default.
   */
  readonly check: (
    options?: { readonly tool?: string | undefined; readonly limit?: number | undefined }
  ) => Promise<CodeCheck>
  /** The numbers of tasks by tool and status, and the queue. It reads all tasks: call it every few seconds at most. */
  readonly statistics: () => Promise<TaskStatistics>
  /** The workers of a PostgreSQL database; none with another store, whose one process runs all tasks. */
  readonly workers: () => Promise<ReadonlyArray<WorkerState>>
}

/** An operator's access to a store, in a program beside the server. */
export interface TaskOperator extends AsyncDisposable {
  readonly admin: TaskAdmin
  readonly schedules: TaskSchedules
  /** Closes the connections to the store. */
  readonly close: () => Promise<void>
}
