/**
 * Tasks for an operator.
 */
import type {
  TaskLabels,
  TaskListPosition,
  TaskOutputItem,
  TaskOutputOptions,
  TaskOutputPage,
  TaskOwner,
  TaskQuestion,
  TaskState,
  TaskStatus
} from "./taskState.ts"
import type { ExportedEvent, ExportedTask, TaskReplay } from "./taskExport.ts"
import type { TaskSchedules } from "./taskSchedule.ts"

/** Which tasks to list: those that have all of the given properties. */
export interface TaskFilter {
  /** The ids of the tasks. */
  readonly ids?: ReadonlyArray<string> | undefined
  /** The name of the task, as in `task(name, …)`. */
  readonly tool?: string | undefined
  readonly pool?: string | undefined
  readonly owner?: TaskOwner | undefined
  readonly status?: ReadonlyArray<TaskStatus> | undefined
  /** `true`: tasks that are `failed`, and those that are `completed` with a result that has `isError`. */
  readonly hasFailed?: true | undefined
  /** `true`: tasks that need attention (`ListedTask.needsAttention`). */
  readonly needsAttention?: true | undefined
  /** Labels that they have, by their names. */
  readonly labels?: TaskLabels | undefined
  /** `true`: tasks with a compensation that has failed, until the task is deleted. */
  readonly hasFailedCompensation?: true | undefined
  /** The id of the worker that runs them. */
  readonly worker?: string | undefined
  /** Those that were created at this time or later, in milliseconds of Unix time. */
  readonly createdAfter?: number | undefined
  /** Those that were created before this time, in milliseconds of Unix time. */
  readonly createdBefore?: number | undefined
  /** Those that have ended, at this time or later, in milliseconds of Unix time. */
  readonly endedAfter?: number | undefined
  /** Those that have ended before this time, in milliseconds of Unix time. */
  readonly endedBefore?: number | undefined
  /** The id of the task that has started them. */
  readonly parent?: string | undefined
}

/** A process that runs tasks. */
export interface TaskProcess {
  readonly host: string
  /** The id of the process on its host. */
  readonly pid: number | undefined
  /** The option `application` of its engine. */
  readonly application: string | undefined
}

/** A step that a worker executes. */
export interface ExecutingStep {
  readonly name: string
  readonly attempt: number
  /** In milliseconds of Unix time. */
  readonly startedAt: number
  /**
   * The median of the milliseconds that the step has taken in other tasks, among the newest 1,000 of the store, at most a
   * minute old. `undefined`: of fewer than 5.
   */
  readonly medianMs: number | undefined
  /** The last details that it has reported (`heartbeat`). Only `inspect` reads them. `undefined`: there are none. */
  readonly heartbeat: StepHeartbeat | undefined
}

/** The last details that a step has reported. */
export interface StepHeartbeat {
  /** When it has reported them, in milliseconds of Unix time. They are stored every two seconds. */
  readonly at: number
  /** The details as JSON text: only if values were asked for. */
  readonly details: string | undefined
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
  /**
   * It waits at most until a time in milliseconds of Unix time; `undefined`: for an answer or an event. `events`: the names of
   * the events that it waits for (`awaitEvent`).
   */
  | {
    readonly _tag: "Waiting"
    readonly until: number | undefined
    readonly events: ReadonlyArray<string>
    readonly runs: number
    readonly attempts: number
  }
  /** A worker runs it. `steps` are those that have run for more than a second: they are stored every two seconds. */
  | {
    readonly _tag: "Running"
    readonly worker: string
    readonly runs: number
    readonly attempts: number
    /** The process of the worker; `undefined`: it is not known. */
    readonly process: TaskProcess | undefined
    readonly steps: ReadonlyArray<ExecutingStep>
  }
  /** It has ended, and has nothing left to compensate. */
  | { readonly _tag: "Settled" }

/** A task in a listing. */
export interface ListedTask {
  /** Its state, without questions and outcome. */
  readonly state: TaskState
  readonly place: TaskPlace
  /**
   * Whether it waits for other code: the code of its workers does not reach what it has recorded. Nothing of it is undone
   * until that code is deployed, or an operator decides (`settle`). It is kept beyond its `ttl`.
   */
  readonly needsAttention: boolean
  readonly labels: TaskLabels
  /** The number of events in its log. */
  readonly events: number
}

/** An event that a handler has observed, a timer that it has set, or the beginning of its compensations. */
export interface LoggedEvent {
  /** Its position in the log, from 1. After `continueWith` the log begins with `continued`, at a later position. */
  readonly seq: number
  readonly kind: ExportedEvent["kind"]
  /**
   * The name of a step, or of an event that was sent (`received`), the key of a question, the reason of compensations, after how
   * many lost workers the task was given up, why it waits for other code (`stopped`), or a change of the code
   * (`patched`: it runs with it). Timers are `sleep/…`, `retry/…`, `timeout/…` and `event/…`.
   */
  readonly name: string
  /** The number of the attempt of a step, or of an event with one name, from 1. */
  readonly attempt: number
  /** When a step began, in milliseconds of Unix time. */
  readonly startedAt: number | undefined
  /** When it happened, or when a timer ends, in milliseconds of Unix time. */
  readonly at: number
  /** Whether an attempt of a step has failed; `undefined` for other events, and if the record cannot be decrypted. */
  readonly failed: boolean | undefined
  /** The record of a step, or the value of an event, as JSON text: only if it was requested. */
  readonly value: string | undefined
}

/** An action of an operator on a task. */
export interface OperatorAction {
  /** In milliseconds of Unix time. */
  readonly at: number
  readonly action: "cancel" | "settle" | "rerun" | "wake" | "priority" | "move" | "import"
  /** The operator, as given with the action (`by`). `undefined`: it was not given. */
  readonly by: string | undefined
  /** The id of the new task of `rerun`, the new priority or pool, and the id that an imported task had. */
  readonly detail: string | undefined
}

/** A compensation that has failed. The effect of its step stays, until an operator undoes it by hand. */
export interface FailedCompensation {
  /** In milliseconds of Unix time. */
  readonly at: number
  /** Its place among the compensations of the task, from 1 in the order in which they were added. */
  readonly number: number
  /** The message of its error; `""` if it cannot be decrypted. */
  readonly message: string
}

/** A task with its log. */
export interface InspectedTask extends ListedTask {
  /** The id of the task that has started it; `undefined` for a task without a parent. */
  readonly parent: string | undefined
  /** The numbers of the children that it has started: `failed` are those that have failed or were cancelled. */
  readonly children: { readonly live: number; readonly completed: number; readonly failed: number }
  readonly questions: ReadonlyArray<TaskQuestion>
  /** The events that were sent to it, and that it has not received, with the times of sending. */
  readonly unreceived: ReadonlyArray<{ readonly name: string; readonly at: number }>
  /** Its arguments: only if they were requested. */
  readonly args: { readonly [name: string]: unknown } | undefined
  /** Its result or error, if it has ended: only if it was requested. */
  readonly outcome: TaskState["outcome"]
  readonly log: ReadonlyArray<LoggedEvent>
  /** The actions of operators on it, in their order. */
  readonly actions: ReadonlyArray<OperatorAction>
  readonly failedCompensations: ReadonlyArray<FailedCompensation>
}

/** The operator of an action. */
export interface OperatorOptions {
  /**
   * The name of the operator, which is stored with the task and shown by `inspect`: up to 512 characters. Default: none.
   */
  readonly by?: string | undefined
}

/** A change of each of many tasks, of those in a state that allows it. */
export type BulkChange =
  /** Cancels the tasks that have not ended. Their compensations run. */
  | { readonly action: "cancel"; readonly statusMessage?: string | undefined }
  /**
   * Runs the tasks that have ended again, from their beginning or from a step: see `rerun`. A task that was run again is
   * skipped, so that the change can be repeated after an interruption.
   */
  | { readonly action: "rerun"; readonly from?: string | undefined }
  /** Lets workers run the tasks that wait, before their time: see `wake`. */
  | { readonly action: "wake" }
  /** Deletes the tasks that have ended and have nothing left to compensate, before the end of their time to live. */
  | { readonly action: "delete" }
  /** Sets the priority of the tasks that have not ended: a whole number, the highest first. */
  | { readonly action: "priority"; readonly priority: number }
  /**
   * Moves the tasks that have not ended to another pool: those of a deployment that no worker runs any more, for instance. A
   * task that runs goes on, and moves when it waits.
   */
  | { readonly action: "move"; readonly pool: string }

/** The result of one page of a change. */
export interface BulkPage {
  /** How many tasks have changed. */
  readonly changed: number
  /** The tasks that the change does not apply to, with reasons. */
  readonly skipped: ReadonlyArray<{
    readonly id: string
    /**
     * - `ended`: it has ended in the meantime.
     * - `compensating`: it has ended, and its compensations run.
     * - `notWaiting`: it runs, or waits for a worker.
     * - `rerun`: it was run again before.
     * - `noStep`: it has no step of the name `from`.
     * - `gone`: it was deleted in the meantime.
     */
    readonly reason: "ended" | "compensating" | "notWaiting" | "rerun" | "noStep" | "gone"
  }>
  /** Where the next page begins: the option `after` of the next call. `undefined`: this was the last one. */
  readonly after: TaskListPosition | undefined
}

/** The number of tasks of a tool with a status. */
export interface TaskCount {
  readonly tool: string
  readonly status: TaskStatus
  readonly count: number
}

/** A worker: a process that runs tasks of a PostgreSQL database. */
export interface WorkerState extends TaskProcess {
  readonly id: string
  readonly pools: ReadonlyArray<string>
  /** Milliseconds of Unix time, by the clock of the database. */
  readonly startedAt: number
  /** When its lease ends without a renewal: milliseconds of Unix time, by the clock of the database. */
  readonly leaseEndsAt: number
  /** Whether that time is over: other workers take its tasks. */
  readonly isLost: boolean
  /** The number of tasks that it runs. */
  readonly running: number
}

/** A tool that is paused, or whose tasks have a limit of concurrency, a rate or keys. */
export interface ToolState {
  readonly tool: string
  readonly concurrency: number | undefined
  readonly rate: { readonly limit: number; readonly periodMs: number } | undefined
  /** The limits on tasks with the same key; `undefined`: the tool has no keys. */
  readonly perKey: {
    readonly concurrency: number | undefined
    readonly rate: { readonly limit: number; readonly periodMs: number } | undefined
  } | undefined
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
   * - `skipped`: the code does not reach recorded events, such as a step that was removed. The task skips them, and waits
   *   for code that reaches its steps (`settle`) if it compensates.
   * - `added`: the code begins something new before recorded events: a part was added, and they are reached behind it; or
   *   one was renamed, and runs again.
   * - `stopped`: a recorded event is missing, and a part of the task that ran beside it would go on without it: the
   *   winner of a race was dropped. Or the task was cancelled or fails, and does not reach a step that is done. The task
   *   stops until code that reaches the event is back.
   * - `question`: the code does not ask a question that is open. The question is withdrawn when the task next waits.
   * - `failed`: the handler fails.
   * - `plain`: the task has steps, and the tool is not a durable one in this process. The task waits.
   * - `missing`: no worker has the tool. The task waits.
   */
  readonly kind: "skipped" | "added" | "stopped" | "question" | "failed" | "plain" | "missing"
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
   * A task with its open questions and its log; `undefined` for an unknown id. `values`: also its arguments, its outcome
   * and the records of the steps, decrypted, which may contain what callers have sent. Default `false`.
   */
  readonly inspect: (
    id: string,
    options?: { readonly values?: boolean | undefined }
  ) => Promise<InspectedTask | undefined>
  /** A page of the output of a task: see `tasks().readOutput`. */
  readonly readOutput: (id: string, options?: TaskOutputOptions) => Promise<TaskOutputPage | undefined>
  /** The output of a task until its end: see `tasks().followOutput`. Beside the server it reads the store four times a second. */
  readonly followOutput: (id: string, options?: TaskOutputOptions) => AsyncIterable<TaskOutputItem>
  /** Cancels a task, which then compensates. Returns `false` if it has ended or does not exist. */
  readonly cancel: (id: string, statusMessage?: string, options?: OperatorOptions) => Promise<boolean>
  /** Lets workers run a task that waits, before its time. Returns `false` if it does not wait. */
  readonly wake: (id: string, options?: OperatorOptions) => Promise<boolean>
  /**
   * Lets a task end that needs attention, as it is: it is cancelled if it has not ended, a worker runs the compensations
   * that its code reaches, and the others never run. Returns `false`, without a change, for any other task.
   */
  readonly settle: (id: string, options?: OperatorOptions) => Promise<boolean>
  /**
   * Runs a task again, as a new task of the same owner, tool and arguments: from its beginning, or from a step with the
   * recorded events before that step. The steps that run have other idempotency keys, so do not run a task again whose
   * effects are not undone. Returns the state of the new task; `undefined` for an unknown task or step. Rejects with
   * `NotEnded` for a task that has not ended, and for a cancelled one whose compensations run.
   */
  readonly rerun: (
    id: string,
    options?: OperatorOptions & { readonly from?: string | undefined }
  ) => Promise<TaskState | undefined>
  /**
   * The numbers of tasks that match, by tool and status. `action`: only those that are in a state for this change. It reads
   * all tasks that match.
   */
  readonly count: (
    filter: TaskFilter,
    options?: { readonly action?: BulkChange["action"] | undefined }
  ) => Promise<ReadonlyArray<TaskCount>>
  /**
   * Changes one page of the tasks that match, newest first: `limit` of them, 100 by default, at most 1,000. Each task is
   * changed as a whole or not at all, and a page can be repeated. Call it again with `after` of the result, until that is
   * `undefined`.
   *
   * @example
   * let after: TaskListPosition | undefined
   * do {
   *   after = (await admin.changeMany({ tool: "bake" }, { action: "cancel" }, { after, by: "ada" })).after
   * } while (after !== undefined)
   */
  readonly changeMany: (
    filter: TaskFilter,
    change: BulkChange,
    options?: OperatorOptions & { readonly after?: TaskListPosition | undefined; readonly limit?: number | undefined }
  ) => Promise<BulkPage>
  /**
   * Pauses a tool for all processes of the store, until it is resumed. Calls are accepted, and their tasks wait. Returns
   * `false` if the tool was paused already. `mustBeKnown`: rejects with `UnknownTool` if the store has no task, limit or
   * schedule of the tool, for names that a person types. Default `false`.
   */
  readonly pause: (tool: string, options?: { readonly mustBeKnown?: boolean | undefined }) => Promise<boolean>
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
  /**
   * A task with its log, to look at it elsewhere, or as a fixture of a test; `undefined` for an unknown id. It has what
   * callers have sent, decrypted. `redact`: only the shapes of the values (`ExportedTask.redacted`). Default `false`.
   */
  readonly exportTask: (
    id: string,
    options?: { readonly redact?: boolean | undefined }
  ) => Promise<ExportedTask | undefined>
  /**
   * Stores an exported task, also as the value of its JSON, whatever the limits are. It has a new id if this store has its id
   * already, and its time to live begins again. A task that has not ended is `cancelled` here, without its compensations,
   * so that nothing of it runs unless it runs again (`rerun`). `start`: it goes on instead, so that the effects of its further steps
   * happen. Default `false`. Rejects with `InvalidOption` for another value, and, with `start`, if the task has ended or has
   * children, or if its values are redacted.
   */
  readonly importTask: (
    exported: unknown,
    options?: OperatorOptions & { readonly start?: boolean | undefined }
  ) => Promise<TaskState>
  /**
   * Compares an exported task with the code of this process: its log is replayed, nothing starts and nothing is stored, and
   * only code between steps runs. Rejects with `UnknownTool` if this process has no such task, and with `InvalidOption` for
   * another value.
   *
   * @example
   * const exported = JSON.parse(await readFile("test/buy-4711.json", "utf8"))
   * expect(await shop.admin.replay(exported)).toEqual({ _tag: "Matches", next: undefined })
   */
  readonly replay: (exported: unknown) => Promise<TaskReplay>
  /** The numbers of tasks by tool and status, and the queue. It reads all tasks: call it every few seconds at most. */
  readonly statistics: () => Promise<TaskStatistics>
  /** The workers of a database; none of a store whose one process runs all tasks. */
  readonly workers: () => Promise<ReadonlyArray<WorkerState>>
}

/** An operator's access to a store, in a program beside the server. */
export interface TaskOperator extends AsyncDisposable {
  readonly admin: TaskAdmin
  readonly schedules: TaskSchedules
  /** Closes the connections to the store. */
  readonly close: () => Promise<void>
}
