/**
 * The table that leads the engine: what the protocol needs and the engine does not keep. A status that is final stays; every write
 * says so in its condition.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Progress } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TaskStatus } from "@skein/protocol/Task"
import type { KeptCaller, NewTask, Outcome, Owner, Position, Question, State } from "../../TaskState.ts"
import type { TaskError } from "../../TaskError.ts"

/** What a worker needs to run a task. */
export interface Work {
  readonly id: string
  readonly tool: string
  readonly pool: string
  readonly owner: Owner
  readonly args: JsonObject
  readonly caller: KeptCaller
  readonly status: TaskStatus
  /** The number of the last status message that was said outside of a step. */
  readonly said: number
  /** Whether nothing is left to do with it. */
  readonly settled: boolean
  /** Whether it says that it waits for a worker. */
  readonly waits: boolean
}

/** How a task ends. */
export type End =
  | { readonly status: "completed" | "failed"; readonly outcome: Outcome; readonly message?: string | undefined }
  | { readonly status: "cancelled"; readonly message?: string | undefined }

/** Of a question that has lost a race: the task goes on as if it were never answered. */
export type Lost = "lost"

/** A task that a sweep looks at. */
export interface Swept {
  readonly id: string
  readonly pool: string
  readonly status: TaskStatus
  /** Whether its execution is over, as far as the table knows: `settle`. */
  readonly settled: boolean
  /** When its time is over, in milliseconds of Unix time; `null`: never. */
  readonly expiresAt: number | null
}

/**
 * What is written within a transaction of the caller's (`sql.withTransaction`, a transactional activity) is committed with it, and
 * told to listeners when it is.
 */
export class TaskStore extends Context.Service<TaskStore, {
  /**
   * Counts and inserts in one transaction with `then`, which is given the new task. Fails with `Limit`, and has done nothing: `then`
   * is not begun, but where processes race for the last place, there it is undone.
   */
  readonly insert: <E, R>(
    task: NewTask,
    then: (state: State) => Effect.Effect<void, E, R>
  ) => Effect.Effect<State, TaskError | E, R>
  /** What is not there, or has expired by the clock, is `undefined`. */
  readonly state: (id: string) => Effect.Effect<State | undefined, TaskError>
  readonly work: (id: string) => Effect.Effect<Work | undefined, TaskError>
  readonly list: (
    owners: ReadonlyArray<Owner>,
    after: Position | undefined,
    limit: number
  ) => Effect.Effect<ReadonlyArray<State>, TaskError>
  /**
   * Ends a task, unless it is over: then `false`. Its open questions are gone. Without a message what went wrong is said, and where
   * nothing did the last message stays.
   */
  readonly finish: (id: string, end: End) => Effect.Effect<boolean, TaskError>
  /** Says where a task stands. With a number, which grows from message to message: only if it is beyond the last one. */
  readonly say: (id: string, message: string, number?: number) => Effect.Effect<void, TaskError>
  /** Whether a task waits for a worker that has its tool: it says so in place of its message meanwhile. */
  readonly waits: (id: string, waits: boolean) => Effect.Effect<void, TaskError>
  /** Reports progress that is greater than the last one. */
  readonly progress: (id: string, progress: Progress) => Effect.Effect<void, TaskError>
  /**
   * Asks, if it was not asked yet: the task is `input_required` then. Gives the answer, where there is one. Of a task that is over
   * nothing is asked, but the answers are there.
   */
  readonly ask: (id: string, question: Question) => Effect.Effect<JsonObject | Lost | undefined, TaskError>
  /** Nobody wants the answer to an open question any more. Its key stays taken. */
  readonly withdraw: (id: string, key: string) => Effect.Effect<void, TaskError>
  /**
   * An open question has lost a race; or one that is answered as well, where nobody has heard of that yet. It has neither an answer any
   * more nor a time.
   */
  readonly lose: (id: string, key: string, answered: boolean) => Effect.Effect<void, TaskError>
  /**
   * Answers an open question, in one transaction with `then`; `working` again with the last one. `false`, and nothing done, for
   * what is not open.
   */
  readonly answer: <E, R>(
    id: string,
    key: string,
    answer: JsonObject,
    then: (work: Swept) => Effect.Effect<void, E, R>
  ) => Effect.Effect<boolean, TaskError | E, R>
  /**
   * Calls a listener after each change of a task, here or in another process, and when changes may have been missed. It is called
   * within no transaction, and only says that there is something to look at.
   */
  readonly listen: (id: string, listener: () => void) => Effect.Effect<void, never, Scope.Scope>
  /**
   * Tasks whose execution may not be over as far as the table knows, and that did not change for some milliseconds. Those that live
   * long stay among them: `after` is the last one of the page before.
   */
  readonly unsettled: (quiet: number, limit: number, after?: Swept) => Effect.Effect<ReadonlyArray<Swept>, TaskError>
  /** Those of them that are cancelled, be it just now: what they have done may not be undone. */
  readonly undoing: (limit: number, after?: Swept) => Effect.Effect<ReadonlyArray<Swept>, TaskError>
  /** The execution of a task, or of many, is over, and has undone what it has to: no sweep looks at it again. */
  readonly settle: (ids: string | ReadonlyArray<string>) => Effect.Effect<void, TaskError>
  /** Lets the time of a task that is over end so many milliseconds from now, where it would end later. Gives when that is. */
  readonly lapse: (id: string, after: number) => Effect.Effect<number, TaskError>
  /** Tasks whose time is over, the longest over first. `after` is the last one of the page before, as in `unsettled`. */
  readonly expired: (limit: number, after?: Swept) => Effect.Effect<ReadonlyArray<Swept>, TaskError>
  /** The next time after this one, in milliseconds of Unix time, at which a task's time is over; `undefined` where none is to be. */
  readonly nextExpiry: (after: number) => Effect.Effect<number | undefined, TaskError>
  /** Forgets a task, in one transaction with `then`. */
  readonly remove: <E, R>(id: string, then: Effect.Effect<void, E, R>) => Effect.Effect<void, TaskError | E, R>
  /**
   * What is kept sealed: text in, text out; the same text where nothing is encrypted. `about` says what it is and whose, such as a
   * task's id and a step's name: what was sealed about one thing does not open as another.
   */
  readonly seal: (text: string, about: string) => Effect.Effect<string, TaskError>
  readonly open: (sealed: string, about: string) => Effect.Effect<string, TaskError>
}>()("@skein/tasks/TaskStore") {}
