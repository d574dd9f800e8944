/**
 * Tasks for an operator: every task of a store with its place in the queue, the log of what its handler has observed,
 * the workers, and the state of the queue. The layers of the engines provide it beside `TaskEngine`.
 *
 * It does not check owners: a caller reads and cancels the tasks of all owners.
 *
 * @example
 * const stuck = Effect.gen(function*() {
 *   const admin = yield* TaskAdmin.TaskAdmin
 *   const tasks = yield* admin.list({ tool: "bake", status: ["working"] })
 *   return tasks.filter(({ place }) => place._tag === "Ready" && place.attempts > 3)
 * })
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { TaskStatus } from "@skein/protocol/Task"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { TaskError } from "./TaskError.ts"
import type { ExportedEvent, ExportedTask, Replay } from "./TaskExport.ts"
import type {
  Labels,
  ListPosition,
  Outcome,
  OutputItem,
  OutputOptions,
  OutputPage,
  Owner,
  Question,
  Rate,
  State
} from "./TaskState.ts"

/** Which tasks to list: those that have all of the given properties. */
export interface TaskFilter {
  /** The ids of the tasks. */
  readonly ids?: ReadonlyArray<string> | undefined
  readonly tool?: string | undefined
  readonly pool?: string | undefined
  readonly owner?: Owner | undefined
  readonly status?: ReadonlyArray<TaskStatus> | undefined
  /**
   * `true`: tasks whose status is `failed`, and those that are `completed` with a result that has `isError`, unless a person
   * had declined the question before.
   */
  readonly hasFailed?: true | undefined
  /** `true`: tasks that need attention (`ListedTask.needsAttention`). */
  readonly needsAttention?: true | undefined
  /** Labels that they have, by their names. */
  readonly labels?: Labels | undefined
  /** `true`: tasks with a compensation that has failed, until the task is deleted. */
  readonly hasFailedCompensation?: true | undefined
  /** The id of the task that has started them (`Task.start`). */
  readonly parent?: string | undefined
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
  /** The last details that it has reported (`Step.heartbeat`). Only `inspect` reads them. `undefined`: there are none. */
  readonly heartbeat: Heartbeat | undefined
}

/** How many times its median a step may take until it is called slow. */
const slowFactor = 10

/** Whether a step takes more than ten times its median, at a time in milliseconds of Unix time. */
export const isSlow = ({ medianMs, startedAt }: Pick<ExecutingStep, "medianMs" | "startedAt">, now: number): boolean =>
  medianMs !== undefined && now - startedAt > slowFactor * medianMs

/** The last details that a step has reported. */
export interface Heartbeat {
  /** When it has reported them, in milliseconds of Unix time. They are stored every two seconds. */
  readonly at: number
  /** The details as JSON text: only if values were asked for. */
  readonly details: string | undefined
}

/**
 * Where a task is. `runs`: how often a worker has claimed it; `attempts`: how many workers were lost while they ran it,
 * since its log has grown (`TaskEngine.Options.maxAttempts`).
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
   * the events that it waits for (`Task.awaitEvent`).
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
  readonly state: State
  readonly place: TaskPlace
  /**
   * Whether it waits for other code: the code of its workers does not reach what it has recorded. Nothing of it is undone
   * until that code is deployed, or an operator decides (`settle`). The last event `stopped` of its log says why. It is
   * kept beyond its `ttl`.
   */
  readonly needsAttention: boolean
  readonly labels: Labels
  /** The number of events in its log. */
  readonly events: number
}

/** An event that the handler of a task has observed, a timer that it has set, or the beginning of its compensations. */
export interface LoggedEvent {
  /** Its position in the log, from 1. After `Task.continueWith` the log begins with `continued`, at a later position. */
  readonly seq: number
  readonly kind: ExportedEvent["kind"]
  /**
   * The name of a step, or of an event from outside (`received`), the key of a question or of a child, the reason of compensations, after how
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
  /** The record of a step, or the value of an event, as JSON text: only if it was asked for. */
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

/** The numbers of the children of a task: `failed` are those that have failed or were cancelled. */
export interface ChildCounts {
  readonly live: number
  readonly completed: number
  readonly failed: number
}

/** A task with its log. */
export interface InspectedTask extends ListedTask {
  /** The id of the task that has started it (`Task.start`); `undefined` for a task without a parent. */
  readonly parent: string | undefined
  /** The numbers of the children that it has started. `list({ parent: id })` returns them. */
  readonly children: ChildCounts
  readonly questions: ReadonlyArray<Question>
  /** The events that were sent to it, and that it has not received (`TaskEngine.send`), with the times of sending. */
  readonly unreceived: ReadonlyArray<{ readonly name: string; readonly at: number }>
  /** Its arguments: only if they were asked for. */
  readonly args: JsonObject | undefined
  /** Its result or error, if it has ended: only if it was asked for. */
  readonly outcome: Outcome | undefined
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
  readonly after: ListPosition | undefined
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
  /** Until when its tasks are kept for it without a renewal: milliseconds of Unix time, by the clock of the database. */
  readonly leaseEndsAt: number
  /** Whether that time is over: other workers take its tasks. The clock of the database decides. */
  readonly isLost: boolean
  /** The number of tasks that it runs. */
  readonly running: number
}

/** A tool that is paused, or whose tasks have a limit of concurrency, a rate or keys. */
export interface ToolState {
  readonly tool: string
  readonly concurrency: number | undefined
  readonly rate: Rate | undefined
  /** The limits on tasks with the same key; `undefined`: the tool has no keys. */
  readonly perKey: Pick<ToolState, "concurrency" | "rate"> | undefined
  /** Since when it is paused, in milliseconds of Unix time. */
  readonly pausedAt: number | undefined
  /** The number of its tasks that run. */
  readonly running: number
}

/** The numbers of tasks. */
export interface Statistics {
  readonly tasks: ReadonlyArray<{
    readonly tool: string
    readonly status: TaskStatus
    readonly count: number
    /** How many of these have a result with `isError`. They are `completed`. */
    readonly errors: number
    /** How many of the errors are results after a person declined or dismissed a question. They are not failures. */
    readonly declined: number
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
   * - `failed`: the handler fails, for instance because a schema cannot decode a recorded value.
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

/** The service of an operator. */
export class TaskAdmin extends Context.Service<TaskAdmin, {
  /**
   * The tasks that match, newest first: 100 by default, at most 1,000. `after` is the last task of the previous page. It
   * reads tasks from the newest on until the page is full, or those of the queue, for a worker or tasks that have not ended.
   *
   * @example
   * const failed = admin.list({ hasFailed: true }, { limit: 20 })
   */
  readonly list: (
    filter: TaskFilter,
    options?: { readonly after?: ListPosition | undefined; readonly limit?: number | undefined }
  ) => Effect.Effect<ReadonlyArray<ListedTask>, TaskError>
  /**
   * A task with its open questions and its log; `undefined` for an unknown id. `values`: also its arguments, its outcome
   * the records of the steps and the details of their heartbeats, decrypted, which may hold what callers have sent. Default `false`.
   *
   * @example
   * const steps = admin.inspect(id, { values: true })
   */
  readonly inspect: (
    id: string,
    options?: { readonly values?: boolean | undefined }
  ) => Effect.Effect<InspectedTask | undefined, TaskError>
  /** A page of the output of a task: see `TaskEngine.readOutput`. */
  readonly readOutput: (id: string, options?: OutputOptions) => Effect.Effect<OutputPage | undefined, TaskError>
  /**
   * The output of a task until its end: see `TaskEngine.followOutput`. In a program beside the servers it reads the store four
   * times a second.
   */
  readonly followOutput: (id: string, options?: OutputOptions) => Stream.Stream<OutputItem, TaskError>
  /** Cancels a task: see `TaskEngine.cancel`. */
  readonly cancel: (
    id: string,
    statusMessage?: string,
    options?: OperatorOptions
  ) => Effect.Effect<boolean, TaskError>
  /**
   * Lets workers run a task that waits, before its time: it checks for its events and waits again if there are none.
   * Returns `false` if it does not wait.
   */
  readonly wake: (id: string, options?: OperatorOptions) => Effect.Effect<boolean, TaskError>
  /**
   * Lets a task end that needs attention, as it is: it is cancelled if it has not ended, a worker runs the compensations
   * that its code reaches, and the others never run. Its log records that. Returns `false`, without a change, for any
   * other task.
   *
   * @example
   * const ended = admin.settle(id)
   */
  readonly settle: (id: string, options?: OperatorOptions) => Effect.Effect<boolean, TaskError>
  /**
   * Runs a task again, as a new task of the same owner, tool and arguments: from its beginning, or from a step with the
   * recorded events before that step. It stays as it is, since clients may have seen its end. Returns the state of the
   * new task; `undefined` for an unknown task or step. Fails with `NotEnded` for a task that has not ended, and for a
   * cancelled one whose compensations run.
   *
   * The steps that run have other idempotency keys than those of the first task: a refund, or a step that failed for
   * good, does not stop them. So do not run a task again whose effects are not undone. A task that was continued
   * (`Task.continueWith`) runs again with its last arguments.
   *
   * @example
   * const again = admin.rerun(id, { from: "charge" })
   */
  readonly rerun: (
    id: string,
    options?: OperatorOptions & { readonly from?: string | undefined }
  ) => Effect.Effect<State | undefined, TaskError>
  /**
   * The numbers of tasks that match, by tool and status. `action`: only those that are in a state for this change. It reads
   * all tasks that match.
   *
   * @example
   * const dryRun = admin.count({ tool: "bake", hasFailed: true }, { action: "rerun" })
   */
  readonly count: (
    filter: TaskFilter,
    options?: { readonly action?: BulkChange["action"] | undefined }
  ) => Effect.Effect<ReadonlyArray<TaskCount>, TaskError>
  /**
   * Changes one page of the tasks that match, newest first: `limit` of them, 100 by default, at most 1,000. Each task is
   * changed as a whole or not at all, and a page can be repeated. Call it again with `after` of the result, until that is
   * `undefined`.
   *
   * @example
   * const cancelAll = Effect.gen(function*() {
   *   let after: ListPosition | undefined
   *   do {
   *     const page = yield* admin.changeMany({ tool: "bake" }, { action: "cancel" }, { after, by: "ada" })
   *     after = page.after
   *   } while (after !== undefined)
   * })
   */
  readonly changeMany: (
    filter: TaskFilter,
    change: BulkChange,
    options?: OperatorOptions & { readonly after?: ListPosition | undefined; readonly limit?: number | undefined }
  ) => Effect.Effect<BulkPage, TaskError>
  /**
   * Pauses a tool for all processes of the store, until it is resumed. Calls are accepted, and their tasks wait. A task
   * that runs goes on until it waits for an answer or a long sleep, and does not continue after that. A task that is
   * cancelled compensates at once. Returns `false` if the tool was paused already.
   *
   * The store need not know the tool: it has only the names of tools with tasks, limits or schedules. `mustBeKnown`: it
   * fails with `UnknownTool` for another one, for names that a person types. Default `false`.
   *
   * @example
   * const stop = admin.pause("charge")
   */
  readonly pause: (
    tool: string,
    options?: { readonly mustBeKnown?: boolean | undefined }
  ) => Effect.Effect<boolean, TaskError>
  /** Resumes a tool: see `pause`. Returns `false` if it was not paused. */
  readonly resume: (tool: string) => Effect.Effect<boolean, TaskError>
  /** The tools that are paused, or have a limit of concurrency or a rate. */
  readonly tools: Effect.Effect<ReadonlyArray<ToolState>, TaskError>
  /**
   * Compares the code of this process with tasks that exist, in the pools of this process: each task that has run and
   * does not run now is replayed against its log. Nothing starts, and nothing is stored; only code between steps runs.
   * Each worker does this when it starts, for 1,000 tasks, and logs the findings.
   *
   * `limit`: the number of unsettled tasks that it reads, 1,000 by default. To check before a deployment, run it in a
   * program that has the new code, with `runTasks: false`. A process without handlers only reports tasks that wait for a
   * worker already.
   *
   * @example
   * const { findings } = yield* admin.check({ tool: "bake", limit: 10_000 })
   */
  readonly check: (
    options?: { readonly tool?: string | undefined; readonly limit?: number | undefined }
  ) => Effect.Effect<CodeCheck, TaskError>
  /**
   * A task with its log, to look at it elsewhere, or as a fixture of a test; `undefined` for an unknown id. It has what
   * callers have sent, decrypted. `redact`: only the shapes of the values (`ExportedTask.redacted`). Default `false`.
   */
  readonly exportTask: (
    id: string,
    options?: { readonly redact?: boolean | undefined }
  ) => Effect.Effect<ExportedTask | undefined, TaskError>
  /**
   * Stores an exported task, also as the value of its JSON, whatever the limits are. It has a new id if this store has its id
   * already, and its time to live begins again. A task that has not ended is `cancelled` here, without its compensations,
   * so that nothing of it runs unless it runs again (`rerun`). `start`: it goes on instead, so that the effects of its further steps
   * happen: not beside a store in which it goes on too. Default `false`. Fails with `InvalidOption` for another value,
   * and, with `start`, if the task has ended or has children, or if its values are redacted.
   */
  readonly importTask: (
    exported: unknown,
    options?: OperatorOptions & { readonly start?: boolean | undefined }
  ) => Effect.Effect<State, TaskError>
  /**
   * Compares an exported task with the code of this process: its log is replayed, nothing starts and nothing is stored, and
   * only code between steps runs. Fails with `UnknownTool` if this process has no handler of its tool, and with
   * `InvalidOption` for another value. In a test: `TaskTest.replay`.
   *
   * @example
   * const replay = yield* admin.replay(JSON.parse(text))
   * if (replay._tag === "Differs") yield* Effect.logError(`${replay.recorded} is now ${replay.code}`)
   */
  readonly replay: (exported: unknown) => Effect.Effect<Replay, TaskError>
  /** The numbers of tasks by tool and status, and the queue. It reads the queue, and not the tasks that are completed. */
  readonly statistics: Effect.Effect<Statistics, TaskError>
  /** The workers of a database; none of a store whose one process runs all tasks. */
  readonly workers: Effect.Effect<ReadonlyArray<WorkerState>, TaskError>
}>()("@skein/tasks/TaskAdmin") {}
