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
import type { TaskStatus } from "@skein/protocol/Task"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { TaskError } from "./TaskError.ts"
import type { ListPosition, Owner, Question, State } from "./TaskState.ts"

/** Which tasks to list: those that have all of the given properties. */
export interface TaskFilter {
  readonly tool?: string | undefined
  readonly pool?: string | undefined
  readonly owner?: Owner | undefined
  readonly status?: ReadonlyArray<TaskStatus> | undefined
  /**
   * `true`: tasks whose status is `failed`, and those that are `completed` with a result that has `isError`, unless a person
   * had declined the question before.
   */
  readonly hasFailed?: true | undefined
  /** The id of the worker that runs them. */
  readonly worker?: string | undefined
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
  /** It waits for an event, at most until a time in milliseconds of Unix time; `undefined`: for an answer. */
  | {
    readonly _tag: "Waiting"
    readonly until: number | undefined
    readonly runs: number
    readonly attempts: number
  }
  /** A worker runs it. */
  | { readonly _tag: "Running"; readonly worker: string; readonly runs: number; readonly attempts: number }
  /** It has ended, and has nothing left to compensate. */
  | { readonly _tag: "Settled" }

/** A task in a listing. */
export interface ListedTask {
  /** Its state, without questions and outcome. */
  readonly state: State
  readonly place: TaskPlace
  /** The number of events in its log. */
  readonly events: number
}

/** An event that the handler of a task has observed, a timer that it has set, or the beginning of its compensations. */
export interface LoggedEvent {
  /** Its position in the log, from 1. After `Task.continueWith` the log begins with `continued`, at a later position. */
  readonly seq: number
  readonly kind: "step" | "once" | "timer" | "fired" | "answer" | "timeout" | "undo" | "giveUp" | "continued"
  /**
   * The name of a step, the key of a question, the reason of compensations, or after how many lost workers the task was
   * given up. Timers are `sleep/…`, `retry/…` and
   * `timeout/…`.
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
  /** The record of a step as JSON text: only if it was asked for. */
  readonly value: string | undefined
}

/** A task with its log. */
export interface InspectedTask extends ListedTask {
  readonly questions: ReadonlyArray<Question>
  readonly log: ReadonlyArray<LoggedEvent>
}

/** A worker: a process that runs tasks of a PostgreSQL database. */
export interface WorkerState {
  readonly id: string
  readonly pools: ReadonlyArray<string>
  readonly host: string
  /** Milliseconds of Unix time, by the clock of the database. */
  readonly startedAt: number
  /** Until when its tasks are kept for it without a renewal: milliseconds of Unix time, by the clock of the database. */
  readonly leaseEndsAt: number
  /** Whether that time is over: other workers take its tasks. The clock of the database decides. */
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
   * - `skipped`: the code does not reach recorded events, such as a step that was removed or renamed, or reaches
   *   something new before them. The task skips them.
   * - `stopped`: a recorded event is missing, and a part of the task that ran beside it would go on without it: the
   *   winner of a race was dropped. The task stops until code that reaches the event is back.
   * - `question`: the code does not ask a question that is open. The question is withdrawn when the task next waits.
   * - `failed`: the handler fails, for instance because a schema cannot decode a recorded value.
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

/** The service of an operator. */
export class TaskAdmin extends Context.Service<TaskAdmin, {
  /**
   * The tasks that match, newest first: 100 by default, at most 1,000. `after` is the last task of the previous page.
   *
   * @example
   * const failed = admin.list({ hasFailed: true }, { limit: 20 })
   */
  readonly list: (
    filter: TaskFilter,
    options?: { readonly after?: ListPosition | undefined; readonly limit?: number | undefined }
  ) => Effect.Effect<ReadonlyArray<ListedTask>, TaskError>
  /**
   * A task with its open questions and its log; `undefined` for an unknown id. `values`: also the records of the steps,
   * decrypted, which may hold what callers have sent. Default `false`.
   *
   * @example
   * const steps = admin.inspect(id, { values: true })
   */
  readonly inspect: (
    id: string,
    options?: { readonly values?: boolean | undefined }
  ) => Effect.Effect<InspectedTask | undefined, TaskError>
  /** Cancels a task: see `TaskEngine.cancel`. */
  readonly cancel: (id: string, statusMessage?: string) => Effect.Effect<boolean, TaskError>
  /**
   * Lets workers run a task that waits, before its time: it checks for its events and waits again if there are none.
   * Returns `false` if it does not wait.
   */
  readonly wake: (id: string) => Effect.Effect<boolean, TaskError>
  /**
   * Runs a task again, as a new task of the same owner, tool and arguments: from its beginning, or from a step with the
   * recorded events before that step. A task that has ended stays as it is, since clients may have seen its end. Returns
   * the state of the new task; `undefined` for an unknown task or step.
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
    options?: { readonly from?: string | undefined }
  ) => Effect.Effect<State | undefined, TaskError>
  /**
   * Pauses a tool for all processes of the store, until it is resumed. Calls are accepted, and their tasks wait. A task
   * that runs goes on until it waits for an answer or a long sleep, and does not continue after that. A task that is
   * cancelled compensates at once. Returns `false` if the tool was paused already.
   *
   * @example
   * const stop = admin.pause("charge")
   */
  readonly pause: (tool: string) => Effect.Effect<boolean, TaskError>
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
  /** The numbers of tasks by tool and status, and the queue. It reads all tasks: call it every few seconds at most. */
  readonly statistics: Effect.Effect<Statistics, TaskError>
  /** The workers of a PostgreSQL database; none with another store, whose one process runs all tasks. */
  readonly workers: Effect.Effect<ReadonlyArray<WorkerState>, TaskError>
}>()("@skein/tasks/TaskAdmin") {}
