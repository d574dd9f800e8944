/**
 * The store of tasks: everything about a task that the protocol and the engine need. A final status never changes; the
 * condition of each write ensures it.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { TaskStatus } from "@skein/protocol/Task"
import type { Progress } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type {
  FailedCompensation,
  ListedTask,
  LoggedEvent,
  OperatorAction,
  TaskAdmin,
  TaskCount,
  TaskFilter,
  ToolState
} from "../../TaskAdmin.ts"
import type { TaskError } from "../../TaskError.ts"
import type { ExportedQuestion, ExportedTask } from "../../TaskExport.ts"
import type {
  AddressedQuestion,
  Labels,
  ListPosition,
  NewTask,
  Outcome,
  Owner,
  Pace,
  Question,
  State
} from "../../TaskState.ts"
import type { QueueCount } from "../telemetry/taskMetrics.ts"
import type { ChildLink, ChildStore } from "./childStore.ts"
import type { DatabaseClock } from "./databaseClock.ts"
import type { OutputStore } from "./outputStore.ts"
import type { SignalListener } from "./runSignals.ts"
import type { ScheduleStore } from "./schedules.ts"

/** A task as a worker needs it. */
export interface StoredTask extends Pick<State, "id" | "tool" | "pool" | "owner" | "caller" | "status" | "createdAt"> {
  readonly args: JsonObject
  /** How many status messages the handler has set outside of steps. */
  readonly statusMessageCount: number
  /** Whether its status message reports that it waits for a worker. */
  readonly waitsForWorker: boolean
}

/** The end of a task. */
export type TaskEnd =
  | {
    readonly status: "completed" | "failed"
    readonly outcome: Outcome
    readonly statusMessage?: string | undefined
    /** Whether the engine has given the task up, after `maxAttempts`. */
    readonly isGivenUp?: boolean | undefined
    /** Whether a result with `isError` is that of a person who declined. */
    readonly isDeclined?: boolean | undefined
  }
  | { readonly status: "cancelled"; readonly statusMessage?: string | undefined }

/**
 * In place of the answer to a question that has lost a race: the task continues as if the question had never been
 * answered.
 */
export type Lost = "lost"

/** An expired task as the sweeper needs it. */
export interface SweepRow extends Pick<StoredTask, "id" | "tool" | "owner" | "status"> {
  /** Whether it has ended, and has nothing left to compensate. */
  readonly settled: boolean
  /** When it has expired, in milliseconds of Unix time. */
  readonly expiresAt: number
  /** Whether it waits for other code. */
  readonly waitsForCode: boolean
}

/**
 * An event that a handler has observed.
 *
 * - `step`: an attempt of a step has ended; `value` is its end.
 * - `once`: an effect of `Once` has ended; `value` is its value.
 * - `timer`: a timer that ends `at`. The handler does not observe it, but its next run reads it.
 * - `fired`: a sleep or a pause is over.
 * - `answer`: a question was answered; its row has the answer.
 * - `received`: an event from outside was received; `value` is its value, and `attempt` counts those with its name.
 * - `timeout`: a question was withdrawn at the end of its timeout.
 * - `start`: a child was started; `value` is its id.
 * - `join`: a child, or a group of children, has ended; `value` is its end.
 * - `emit`: an item of output was added; `attempt` counts them, and `value` has its offset, or why it was refused.
 * - `undo`: the compensations begin; `name` is the reason, which does not change later.
 * - `giveUp`: the task is given up, after `name` workers have died; from now on its runs only compensate.
 * - `stopped`: the task waits for other code; `name` says why.
 * - `settled`: an operator lets it end without the compensations that its code does not reach.
 * - `patched`, `unpatched`: whether the task runs with the change `name` of its code.
 * - `section`: the section `name` began, which a cancellation waits for.
 * - `continued`: the first event of a log that began with `Task.continueWith`, or, with an `attempt` above 1, with a retry of the
 *   task. The events before it are deleted.
 */
export interface LogEntry extends Pick<LoggedEvent, "seq" | "kind" | "name" | "attempt" | "startedAt" | "at"> {
  readonly value: string | null
  /**
   * The other parts of the task that were under way when a step, a sleep or an answer was recorded, as `textOf` of their
   * events: some of them, if there were many. They must not start in a later run before it has observed this event,
   * which may have won a race against them.
   */
  readonly beside?: ReadonlyArray<string> | undefined
  /** The place of the event from outside that moves into the log with this entry. It is not read back. */
  readonly place?: number | undefined
}

/** An event from outside that its task has not received. */
export interface UnreceivedEvent {
  /** Grows from event to event of a task. */
  readonly place: number
  readonly name: string
  /** When it was sent, in milliseconds of Unix time. */
  readonly at: number
}

/**
 * The end of a log as a run knows it: the position of the next event, and the time of the event before, if there is one.
 * A write with it changes nothing unless the log ends there. It ends later if another worker has continued the task, and
 * earlier if the database has lost its last events, such as a replica that was promoted.
 */
export interface LogEnd {
  readonly nextSeq: number
  /** `undefined`: any time. */
  readonly lastAt?: number | undefined
}

/** A task that a worker has claimed. */
export interface Claim {
  readonly id: string
  /** Fails if this worker cannot read the task, for instance without its encryption key. */
  readonly task: Effect.Effect<StoredTask, TaskError>
  /** The number of signals so far. */
  readonly signals: number
  /** Whether no worker has run it before: its log is empty. */
  readonly isFirst: boolean
  /** How many workers have died while they ran it, since its log has grown last. */
  readonly attempts: number
  /** Whether it has passed the gate of its tool: when its run has ended, another task of the tool may start. */
  readonly isGated: boolean
}

/** A question that is closed. */
export interface ClosedQuestion {
  readonly key: string
  /** `undefined`: it was withdrawn at the end of its timeout. */
  readonly answer: JsonObject | Lost | undefined
}

/** The questions of a task: the answers of the closed ones by their keys, and the keys of the open ones. */
export interface Questions {
  readonly answers: Map<string, ClosedQuestion["answer"]>
  readonly openQuestions: ReadonlyArray<string>
}

/** The queries of an operator. */
export interface AdminStore extends Pick<TaskAdmin["Service"], "statistics" | "workers"> {
  readonly list: (
    filter: TaskFilter,
    after: ListPosition | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<ListedTask>, TaskError>
  readonly find: (id: string) => Effect.Effect<ListedTask | undefined, TaskError>
  /** Whether there is a task, a limit, a pause or a schedule of a tool. */
  readonly hasTool: (tool: string) => Effect.Effect<boolean, TaskError>
  /** The numbers of the queue, for metrics. It reads the queue, and the open questions, but no tasks. */
  readonly queueCounts: Effect.Effect<ReadonlyArray<QueueCount>, TaskError>
}

/** A note about tasks: an action of an operator. */
export type Note = Pick<OperatorAction, "action" | "by" | "detail">

/** The operations on many tasks. Those that change tasks return the ids of the tasks that have changed. */
export interface BulkStore {
  /** The numbers of the tasks of a filter. */
  readonly count: (filter: TaskFilter) => Effect.Effect<ReadonlyArray<TaskCount>, TaskError>
  /** Sets the priority of tasks that are not settled. */
  readonly setPriority: (
    ids: ReadonlyArray<string>,
    priority: number
  ) => Effect.Effect<ReadonlyArray<string>, TaskError>
  /** Moves tasks that are not settled to a pool. */
  readonly setPool: (ids: ReadonlyArray<string>, pool: string) => Effect.Effect<ReadonlyArray<string>, TaskError>
  /** Adds a note to the tasks that exist. */
  readonly note: (ids: ReadonlyArray<string>, note: Note) => Effect.Effect<unknown, TaskError>
  /** The notes of a task, in their order. */
  readonly readNotes: (id: string) => Effect.Effect<ReadonlyArray<OperatorAction>, TaskError>
  /**
   * Notes that a compensation has failed, unless that is noted: a later run of the compensations fails again. `number`
   * is its place among those of the task.
   */
  readonly noteFailedCompensation: (id: string, number: number, message: string) => Effect.Effect<unknown, TaskError>
  /** The compensations of a task that have failed, in this order. */
  readonly readFailedCompensations: (id: string) => Effect.Effect<ReadonlyArray<FailedCompensation>, TaskError>
  /** Which of these tasks were run again. */
  readonly findRerun: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlySet<string>, TaskError>
}

/** The labels of tasks. */
export interface LabelStore {
  /** Sets a label of a task. Fails with `LimitExceeded` for one more than ten, and with `InvalidOption` out of bounds. */
  readonly set: (id: string, name: string, value: string) => Effect.Effect<void, TaskError>
  readonly setAll: (id: string, labels: Labels) => Effect.Effect<void, TaskError>
  /** Fails as `set` does, for the labels of a new task. */
  readonly check: (labels: Labels) => Effect.Effect<void, TaskError>
}

/** Moves tasks from one store to another. */
export interface TransferStore {
  /** The questions of a task with all that is stored of them, in the order in which they were asked. */
  readonly readQuestions: (id: string) => Effect.Effect<ReadonlyArray<ExportedQuestion>, TaskError>
  /**
   * Inserts an exported task under an id, with a log whose values are encrypted for this id, whatever the limits are.
   * `start`: a worker may claim it; otherwise it is settled. Returns `false` if the id is taken.
   */
  readonly insert: (
    exported: ExportedTask,
    options: { readonly id: string; readonly log: ReadonlyArray<LogEntry>; readonly start: boolean }
  ) => Effect.Effect<boolean, TaskError>
}

/** The last details of a step, as they are stored. */
export interface StoredHeartbeat {
  /** The name of the step. */
  readonly step: string
  /** When they were reported, in milliseconds of Unix time. */
  readonly at: number
  /** The encrypted details. */
  readonly details: string
}

/** The operations on the details of steps. */
export interface HeartbeatStore {
  /** Stores details. Does nothing if another worker runs the task. */
  readonly set: (id: string, worker: string, heartbeat: StoredHeartbeat) => Effect.Effect<void, TaskError>
  /** The details of the steps of a task that have not ended. */
  readonly list: (id: string) => Effect.Effect<ReadonlyArray<StoredHeartbeat>, TaskError>
  /** Removes the details of a step that has ended. */
  readonly remove: (id: string, step: string) => Effect.Effect<void, TaskError>
}

/** The gates of tools: see `gates.ts`. */
export interface ToolStore {
  /** Pauses a tool. Returns `false` if it was paused already. */
  readonly pause: (tool: string) => Effect.Effect<boolean, TaskError>
  /** Resumes a tool. Returns `false` if it was not paused. */
  readonly resume: (tool: string) => Effect.Effect<boolean, TaskError>
  /** Sets or removes the limits of a tool. */
  readonly pace: (tool: string, pace: Pace | undefined) => Effect.Effect<void, TaskError>
  readonly list: Effect.Effect<ReadonlyArray<ToolState>, TaskError>
}

/** A task that is not settled. */
export interface UnsettledTask {
  readonly id: string
  readonly tool: string
  readonly pool: string
  readonly status: TaskStatus
  readonly createdAt: number
  readonly isRunning: boolean
  /** Whether it waits for an event or a time, as opposed to a worker. */
  readonly isWaiting: boolean
  /** How often a worker has claimed it. */
  readonly runs: number
  /** Whether it waits for a worker with its tool, or for the code that it has run with. */
  readonly waitsFor: "tool" | "code" | undefined
}

/** The queries of a check of the code. */
export interface CheckStore {
  /** The unsettled tasks after an id, at most `limit`. */
  readonly page: (after: string, limit: number) => Effect.Effect<ReadonlyArray<UnsettledTask>, TaskError>
  /** One of them; `undefined` if it is settled or deleted. */
  readonly find: (id: string) => Effect.Effect<UnsettledTask | undefined, TaskError>
}

/**
 * The store of tasks. A write within a transaction of the caller (`sql.withTransaction`, a transactional step) is
 * committed with it, and listeners are notified after the commit. Ids that cannot be task ids have the results of
 * missing tasks.
 */
export class TaskStore extends Context.Service<TaskStore, {
  /** The clock of all times that are stored, or compared with stored ones. */
  readonly clock: Pick<DatabaseClock, "now" | "difference">
  /**
   * Counts, inserts and queues a task, all or nothing: for any worker, or as claimed by `worker`. Fails with
   * `LimitExceeded` without a change. `then` follows, in the transaction of the caller if there is one; the task is not
   * claimed if its tool has a gate.
   */
  readonly insert: (
    task: NewTask,
    worker?: string,
    then?: (state: State, isClaimed: boolean) => Effect.Effect<void>
  ) => Effect.Effect<State, TaskError>
  /** The id of the task with a key (`NewTask.key`); `undefined` if there is none. */
  readonly findKey: (
    task: Required<Pick<NewTask, "owner" | "tool" | "key">>
  ) => Effect.Effect<string | undefined, TaskError>
  /**
   * Inserts a child, unless its place is taken. Returns the id of the child at that place; `undefined` if the parent has
   * ended. Fails with `LimitExceeded`. `then` follows only if it is new.
   */
  readonly insertChild: (
    link: ChildLink,
    task: NewTask,
    worker?: string,
    then?: (state: State, isClaimed: boolean) => Effect.Effect<void>
  ) => Effect.Effect<string | undefined, TaskError>
  /** The children of tasks. */
  readonly children: ChildStore
  /** The state of a task; `undefined` if it is missing or has expired by the clock. */
  readonly get: (id: string) => Effect.Effect<State | undefined, TaskError>
  /** A task for a worker, expired or not; `undefined` if it is missing. */
  readonly load: (id: string) => Effect.Effect<StoredTask | undefined, TaskError>
  readonly list: (
    owners: ReadonlyArray<Owner>,
    after: ListPosition | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<State>, TaskError>
  /**
   * Ends a task, and drops its open questions. A task that is completed or failed is settled; a cancelled task is
   * signalled and may have to compensate. Returns `false` if it has already ended, or if its log does not end at `at`,
   * which does not matter for a cancellation. Without a status message, a failure sets its reason, and otherwise the
   * last message stays.
   */
  readonly finish: (id: string, end: TaskEnd, at?: LogEnd) => Effect.Effect<boolean, TaskError>
  /**
   * Sets the status message. With a number, which grows from message to message, only if it is greater than the last
   * one.
   */
  readonly setStatusMessage: (id: string, message: string, number?: number) => Effect.Effect<void, TaskError>
  /**
   * Sets whether a task waits for a worker that has its tool, or the code that it has run with. While it does, and has not
   * ended, a text about that replaces the status message.
   */
  readonly setWaitsForWorker: (id: string, waits: boolean | "code") => Effect.Effect<void, TaskError>
  /** Stores progress that is greater than the stored progress. */
  readonly setProgress: (id: string, progress: Progress) => Effect.Effect<void, TaskError>
  /**
   * Asks a question unless it was asked before, which makes the task `input_required`. Returns the answer if there is
   * one. In a task that has ended no question is asked, but answers are returned. `lastSeq` of this and the next three
   * operations is the last event that a run knows. Without that event in the log they change nothing.
   */
  readonly ask: (
    id: string,
    question: Question,
    lastSeq?: number
  ) => Effect.Effect<JsonObject | Lost | undefined, TaskError>
  /** Withdraws an open question. Its key stays in use. */
  readonly withdraw: (id: string, key: string, lastSeq?: number) => Effect.Effect<void, TaskError>
  /**
   * Marks an open question as lost in a race; with `isAnswered`, also an answered question whose answer the handler has
   * not received. It can no longer be answered or time out.
   */
  readonly markLost: (id: string, key: string, isAnswered: boolean, lastSeq?: number) => Effect.Effect<void, TaskError>
  /**
   * Answers an open question, and signals its task. The last answer makes the task `working` again. Returns `false`,
   * without a change, for a question that is not open.
   */
  readonly answer: (id: string, key: string, answer: JsonObject) => Effect.Effect<boolean, TaskError>
  /** Sends an event to a task, and signals it: see `TaskEngine.send`. */
  readonly send: (
    id: string,
    name: string,
    value: unknown,
    options?: { readonly key?: string | undefined }
  ) => Effect.Effect<boolean, TaskError>
  /** Sends an event to the tasks that have subscribed to it: see `TaskEngine.sendAll`. Returns their number. */
  readonly sendAll: (
    name: string,
    topic: string,
    value: unknown,
    options?: { readonly key?: string | undefined }
  ) => Effect.Effect<number, TaskError>
  /** Subscribes a task to the events of a topic by their name (`topicEvent`), unless it has subscribed before. */
  readonly subscribe: (id: string, event: string) => Effect.Effect<void, TaskError>
  /** The events that a task has not received, in the order of sending. */
  readonly readEvents: (id: string) => Effect.Effect<ReadonlyArray<UnreceivedEvent>, TaskError>
  /** The value of such an event as JSON text; `undefined` if the task has received it. */
  readonly readEvent: (id: string, place: number) => Effect.Effect<string | undefined, TaskError>
  /** All questions of a task. */
  readonly readQuestions: (id: string) => Effect.Effect<Questions, TaskError>
  /** Removes an open question that the code of its task no longer asks. Other code may ask it again. */
  readonly removeQuestion: (id: string, key: string, lastSeq?: number) => Effect.Effect<void, TaskError>
  /** The closed questions of a task. */
  readonly readAnswers: (id: string) => Effect.Effect<ReadonlyArray<ClosedQuestion>, TaskError>
  /**
   * Calls a listener after each change of a task, in this process or another, and when notifications may have been
   * lost. The listener is never called within a transaction.
   */
  readonly listen: (id: string, listener: () => void) => Effect.Effect<void, never, Scope.Scope>
  /** Calls a listener for the signals about the queue. */
  readonly listenForSignals: (listener: SignalListener) => Effect.Effect<void, never, Scope.Scope>
  /** Claims tasks of tools that have a gate, as far as their limits allow: see `claim`. */
  readonly claimGated: (
    worker: string,
    pools: ReadonlyArray<string> | undefined,
    limit: number,
    maxLost?: number
  ) => Effect.Effect<ReadonlyArray<Claim>, TaskError>
  /**
   * Claims tasks for a worker: of these pools, or of any; at most `limit`, those that are due longest first. Other
   * workers do not receive them. Leaves out tasks with which more than `maxLost` workers were lost. A task that was lost
   * twice is claimed beside no other one that was lost.
   */
  readonly claim: (
    worker: string,
    pools: ReadonlyArray<string> | undefined,
    limit: number,
    maxLost?: number
  ) => Effect.Effect<ReadonlyArray<Claim>, TaskError>
  /** The log of a task, in its order. */
  readonly readLog: (id: string) => Effect.Effect<ReadonlyArray<LogEntry>, TaskError>
  /**
   * Appends an event to the log of a task. `conflict`: the log has an event at this position. `refused`: the task has
   * ended and takes no further events, or it is deleted; or the log does not have the event before, of the time `lastAt`
   * if it is given; or the database does not have the answer, the withdrawal or the event from outside that the entry
   * records. With `isRepeated`,
   * an equal event at this position counts as appended: the statement may have been executed before, and its response
   * lost. In a transaction with other writes that would be wrong, since another worker may have appended an equal event.
   */
  readonly append: (
    id: string,
    entry: LogEntry,
    isRepeated?: boolean,
    lastAt?: number
  ) => Effect.Effect<"appended" | "conflict" | "refused", TaskError>
  /** The first `limit` open questions for these persons and groups, those of the oldest tasks first. */
  readonly findAddressed: (
    addresses: ReadonlyArray<string>,
    limit: number
  ) => Effect.Effect<ReadonlyArray<AddressedQuestion>, TaskError>
  /**
   * Lets a task begin again with other arguments: replaces its log by an event at the end `at`, and deletes its questions.
   * `retried`: it has failed, and begins another time. Returns `false`, without a change, if the task has ended, and if its log
   * does not end there.
   */
  readonly continueWith: (
    id: string,
    at: LogEnd,
    args: JsonObject,
    retried?: { readonly attempt: number; readonly statusMessage: string }
  ) => Effect.Effect<boolean, TaskError>
  /**
   * Suspends the run of a task until it is signalled, at most until a time in milliseconds of Unix time. Returns
   * `false`, without a change, if the task has another number of signals, does not belong to the worker, has fewer open
   * questions than the run waits for, or if its log does not end at `at`. `events`: the names of the events from outside that
   * it waits for, for operators.
   */
  readonly suspend: (
    id: string,
    worker: string,
    signals: number,
    wakeAt: number,
    at: LogEnd,
    openQuestions?: number,
    events?: ReadonlyArray<string>
  ) => Effect.Effect<boolean, TaskError>
  /** Ends the claim of a worker. Others may claim the task from a time on, in milliseconds of Unix time; default: now. */
  readonly release: (id: string, worker: string, wakeAt?: number) => Effect.Effect<unknown, TaskError>
  /**
   * The signals of a task, whose worker it is, whether it is cancelled, and the position of its last event;
   * `undefined` for a deleted task.
   */
  readonly readSignals: (
    id: string
  ) => Effect.Effect<
    | {
      readonly signals: number
      readonly worker: string | null
      readonly isCancelled: boolean
      readonly lastSeq: number
    }
    | undefined,
    TaskError
  >
  /** The numbers of signals of the tasks that a worker runs. */
  readonly findSignals: (worker: string) => Effect.Effect<ReadonlyMap<string, number>, TaskError>
  /** Lets workers claim the tasks whose time has come. Returns their number, and whether any gated task is ready. */
  readonly wake: Effect.Effect<{ readonly count: number; readonly hasGated: boolean }, TaskError>
  /** Lets workers claim some tasks that wait. Returns the ids of those that did. */
  readonly wakeTasks: (ids: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>, TaskError>
  /**
   * Marks a cancelled task as settled: it has compensated, or `undoTimeout` is over. Returns `false`, without a change, if
   * it has not ended or is settled already, or if its log does not end at `at`.
   */
  readonly settle: (id: string, at?: LogEnd) => Effect.Effect<boolean, TaskError>
  /**
   * Lets workers claim all tasks that run: their process has ended, and there is no other. A task that was lost before
   * waits first, twice as long each time.
   */
  readonly takeBackAll: Effect.Effect<void, TaskError>
  /** The same for the tasks of workers that are not registered. */
  readonly takeBackLost: Effect.Effect<void, TaskError>
  /** Ends all claims of a worker. */
  readonly releaseAll: (worker: string) => Effect.Effect<void, TaskError>
  /** Registers a worker, whose lease is over after `leaseMs` unless it is renewed; `undefined`: it is the only one. */
  readonly register: (
    worker: string,
    options: {
      readonly host: string
      readonly pid: number
      readonly application: string
      readonly leaseMs: number | undefined
      readonly pools: ReadonlyArray<string>
    }
  ) => Effect.Effect<void, TaskError>
  /**
   * Renews a lease. Returns the number of all workers, and 0 if this one is not registered any more. `steps`: those that
   * it runs, as `stepReport` writes them; `undefined`: they have not changed.
   */
  readonly renew: (worker: string, leaseMs: number, steps?: string) => Effect.Effect<number, TaskError>
  /** Stores the steps of a worker without a lease. */
  readonly reportSteps: (worker: string, steps: string) => Effect.Effect<void, TaskError>
  /** Removes a worker. */
  readonly unregister: (worker: string) => Effect.Effect<void, TaskError>
  /** Removes the workers whose lease is over. Returns their number. */
  readonly removeLost: Effect.Effect<number, TaskError>
  /**
   * Lets an ended task expire after some milliseconds, unless it expires earlier. Returns that time in milliseconds of
   * Unix time.
   */
  readonly expireWithin: (id: string, milliseconds: number) => Effect.Effect<number, TaskError>
  /** The expired tasks, the earliest expiry first. `after` is the last task of the previous page. */
  readonly findExpired: (limit: number, after?: SweepRow) => Effect.Effect<ReadonlyArray<SweepRow>, TaskError>
  /** The first expiry after a time, both in milliseconds of Unix time; `undefined` if there is none. */
  readonly nextExpiry: (after: number) => Effect.Effect<number | undefined, TaskError>
  /** Deletes tasks that are settled, with everything about them. */
  readonly remove: (ids: ReadonlyArray<string>) => Effect.Effect<void, TaskError>
  /**
   * Copies some closed questions of a task with their answers to a new one, whose first worker reads them and its log.
   */
  readonly copyAnswers: (id: string, to: string, keys: ReadonlyArray<string>) => Effect.Effect<void, TaskError>
  /** Whether another client has changed the SQLite file since the last call. */
  readonly findForeignChange: Effect.Effect<boolean, TaskError>
  /** Runs an effect in a transaction. */
  readonly transaction: <A>(effect: Effect.Effect<A, TaskError>) => Effect.Effect<A, TaskError>
  /** The queries of an operator. */
  readonly admin: AdminStore
  readonly labels: LabelStore
  readonly output: OutputStore
  /** The details that running steps have reported. */
  readonly heartbeats: HeartbeatStore
  /** The changes of many tasks by an operator. */
  readonly bulk: BulkStore
  /** Moves tasks from one store to another. */
  readonly transfer: TransferStore
  /** The limits of tools, for the workers of all processes. */
  readonly tools: ToolStore
  /** The queries of a check of the code. */
  readonly checks: CheckStore
  /** The schedules of tasks. */
  readonly schedules: ScheduleStore
  /**
   * Encrypts a text; without a key the text stays as it is. `associatedData` names the task and the use of the text:
   * see `Cipher`.
   */
  readonly encrypt: (text: string, associatedData: string) => Effect.Effect<string, TaskError>
  /** Decrypts a text with the same associated data. */
  readonly decrypt: (encrypted: string, associatedData: string) => Effect.Effect<string, TaskError>
}>()("@skein/tasks/TaskStore") {}

/** The operations of a store. */
export type Store = TaskStore["Service"]
