/**
 * The store of tasks: everything about a task that the protocol needs and the workflow engine does not keep. A final
 * status never changes; the condition of each write ensures it.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Progress } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TaskError } from "../../TaskError.ts"
import type { ListPosition, NewTask, Outcome, Owner, Question, State } from "../../TaskState.ts"

/** A task as a worker needs it. */
export interface StoredTask extends Pick<State, "id" | "tool" | "pool" | "owner" | "caller" | "status"> {
  readonly args: JsonObject
  /** How many status messages the handler has set outside of steps. */
  readonly statusMessageCount: number
  /** Whether its execution has ended and has compensated. */
  readonly settled: boolean
  /** Whether its status message reports that it waits for a worker. */
  readonly waitsForWorker: boolean
}

/** The end of a task. */
export type TaskEnd =
  | { readonly status: "completed" | "failed"; readonly outcome: Outcome; readonly statusMessage?: string | undefined }
  | { readonly status: "cancelled"; readonly statusMessage?: string | undefined }

/**
 * In place of the answer to a question that has lost a race: the task continues as if the question had never been
 * answered.
 */
export type Lost = "lost"

/** A task as the sweeper needs it. */
export interface SweepRow extends Pick<StoredTask, "id" | "pool" | "status" | "settled"> {
  /** When it expires, in milliseconds of Unix time; `null`: never. */
  readonly expiresAt: number | null
}

/**
 * The store of tasks. A write within a transaction of the caller (`sql.withTransaction`, a transactional activity) is
 * committed with it, and listeners are notified after the commit. Ids that cannot be task ids have the results of
 * missing tasks.
 */
export class TaskStore extends Context.Service<TaskStore, {
  /**
   * Counts and inserts a task in one transaction with `then`, which receives the new task. Fails with `LimitExceeded`
   * without a change: `then` is not run, or is rolled back when processes compete for the last place.
   */
  readonly insert: <E, R>(
    task: NewTask,
    then: (state: State) => Effect.Effect<void, E, R>
  ) => Effect.Effect<State, TaskError | E, R>
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
   * Ends a task, and drops its open questions. Returns `false` if it has already ended. Without a status message, a
   * failure sets its reason, and otherwise the last message stays.
   */
  readonly finish: (id: string, end: TaskEnd) => Effect.Effect<boolean, TaskError>
  /**
   * Sets the status message. With a number, which grows from message to message, only if it is greater than the last
   * one.
   */
  readonly setStatusMessage: (id: string, message: string, number?: number) => Effect.Effect<void, TaskError>
  /**
   * Sets whether a task waits for a worker that has its tool. While it does, a text about that replaces the status
   * message.
   */
  readonly setWaitsForWorker: (id: string, waits: boolean) => Effect.Effect<void, TaskError>
  /** Stores progress that is greater than the stored progress. */
  readonly setProgress: (id: string, progress: Progress) => Effect.Effect<void, TaskError>
  /**
   * Asks a question unless it was asked before, which makes the task `input_required`. Returns the answer if there is
   * one. In a task that has ended no question is asked, but answers are returned.
   */
  readonly ask: (id: string, question: Question) => Effect.Effect<JsonObject | Lost | undefined, TaskError>
  /** Withdraws an open question. Its key stays in use. */
  readonly withdraw: (id: string, key: string) => Effect.Effect<void, TaskError>
  /**
   * Marks an open question as lost in a race; with `isAnswered`, also an answered question whose answer the handler has
   * not received. It can no longer be answered or time out.
   */
  readonly markLost: (id: string, key: string, isAnswered: boolean) => Effect.Effect<void, TaskError>
  /**
   * Answers an open question, in one transaction with `then`. The last answer makes the task `working` again. Returns
   * `false`, without a change, for a question that is not open.
   */
  readonly answer: <E, R>(
    id: string,
    key: string,
    answer: JsonObject,
    then: (task: SweepRow) => Effect.Effect<void, E, R>
  ) => Effect.Effect<boolean, TaskError | E, R>
  /**
   * Calls a listener after each change of a task, in this process or another, and when notifications may have been
   * lost. The listener is never called within a transaction.
   */
  readonly listen: (id: string, listener: () => void) => Effect.Effect<void, never, Scope.Scope>
  /**
   * The tasks that are not settled, and have not changed for `quietMs`. `after` is the last task of the previous page.
   */
  readonly findUnsettled: (
    quietMs: number,
    limit: number,
    after?: SweepRow
  ) => Effect.Effect<ReadonlyArray<SweepRow>, TaskError>
  /** The cancelled tasks that are not settled, however recently they have changed: they may not have compensated. */
  readonly findUndoing: (limit: number, after?: SweepRow) => Effect.Effect<ReadonlyArray<SweepRow>, TaskError>
  /**
   * Marks tasks as settled: their executions have ended and have compensated, or `undoTimeout` is over. The sweeper
   * does not compare them with their executions again.
   */
  readonly settle: (ids: string | ReadonlyArray<string>) => Effect.Effect<void, TaskError>
  /**
   * Lets an ended task expire after some milliseconds, unless it expires earlier. Returns that time in milliseconds of
   * Unix time.
   */
  readonly expireWithin: (id: string, milliseconds: number) => Effect.Effect<number, TaskError>
  /** The expired tasks, the earliest expiry first. `after` is the last task of the previous page. */
  readonly findExpired: (limit: number, after?: SweepRow) => Effect.Effect<ReadonlyArray<SweepRow>, TaskError>
  /** The first expiry after a time, both in milliseconds of Unix time; `undefined` if there is none. */
  readonly nextExpiry: (after: number) => Effect.Effect<number | undefined, TaskError>
  /** Deletes a task, in one transaction with `then`. */
  readonly remove: <E, R>(id: string, then: Effect.Effect<void, E, R>) => Effect.Effect<void, TaskError | E, R>
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
