/**
 * Tasks as the engine stores them: states, new tasks, outcomes and limits.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import type { ErrorObject, TaskStatus } from "@skein/protocol/Task"
import type { Principal } from "@skein/runtime/Connection"
import type { Progress } from "@skein/runtime/RequestContext"

/**
 * The owner of a task: the id of a principal, or the text of an owner policy; `null`: every caller that has the task
 * id.
 */
export type Owner = string | null

/**
 * The limits on numbers of tasks. A number that is `undefined` sets no limit. On PostgreSQL, tasks that are submitted at the same
 * moment can exceed a limit of 1,000 or more by their number.
 */
export interface CountLimits {
  /** The number of tasks that have not ended. */
  readonly live?: number | undefined
  /** The number of stored tasks, ended or not. */
  readonly retained?: number | undefined
}

/** The limits that a new task is checked against. */
export interface TaskLimits {
  readonly all: CountLimits
  /** Of the tasks of the same owner, or, without an owner, of the same `NewTask.client`. */
  readonly client: CountLimits
  readonly tool: CountLimits
}

/** The stored part of the caller. Later questions are encoded in its revision, and need its capabilities. */
export interface StoredCaller {
  readonly revision: Revision
  readonly capabilities: JsonObject
  readonly info: JsonObject | undefined
  /** Only the id of the principal: its other claims, and the credentials of the request, are not stored. */
  readonly principal: Pick<Principal, "id"> | undefined
  /** The span of the call, as W3C `traceparent`: the runs of the task are linked to it (`TaskTelemetry`). */
  readonly traceparent?: string | undefined
}

/** How many tasks start within any period of so many milliseconds, at most. */
export interface Rate {
  /** A whole number from 1. */
  readonly limit: number
  readonly periodMs: number
}

/** How fast some tasks run. */
export interface PaceLimits {
  /** How many of them run at the same time, at most: a whole number from 1. Default: no limit. */
  readonly concurrency?: number | undefined
  /** Default: no limit. */
  readonly rate?: Rate | undefined
}

/** How fast tasks of a tool may run, in all processes of the store together. */
export interface Pace extends PaceLimits {
  /** The limits on tasks with the same `NewTask.queueKey`. With it, the keys of the tool take turns. */
  readonly perKey?: PaceLimits | undefined
}

/** Labels of a task, by their names. */
export type Labels = { readonly [name: string]: string }

/** A task that is the only one of its tool, or of those with its key, that has not ended. */
export interface Singleton {
  /** Up to 512 characters; "" for the only task of its tool. */
  readonly key: string
  /**
   * The consequence for a submission while another task with the key has not ended.
   *
   * - `fail`: it fails with `NotStarted`.
   * - `useExisting`: it returns that task, if that has the same owner. Otherwise it fails.
   * - `cancelExisting`: that task is cancelled, also that of another owner. Its compensations may run beside the new task.
   */
  readonly onConflict: "fail" | "useExisting" | "cancelExisting"
}

/** A task that begins when no other of the same owner and tool with its key has been submitted for a while. */
export interface Debounce {
  /** Up to about 500 characters together with the owner. */
  readonly key: string
  /** Milliseconds from the last submission until it begins. */
  readonly periodMs: number
  /** Milliseconds from the first submission until it begins, however many follow. Default: no limit. */
  readonly timeoutMs?: number | undefined
  /** The arguments of the task after a further submission. Default: those of the further one. It must be fast. */
  readonly merge?: ((stored: JsonObject, next: JsonObject) => JsonObject) | undefined
}

/** A task to create. */
export interface NewTask {
  readonly tool: string
  readonly args: JsonObject
  /** The pool of workers that must run it; `default` is the pool of tasks that name none. */
  readonly pool: string
  /** Waiting tasks with a higher priority start first: a whole number, 0 by default. See `Task.Options.priority`. */
  readonly priority?: number | undefined
  /**
   * A key of the submitter, of up to 512 characters. While a task of the same owner and tool with the same key exists, a
   * submission returns that task, whatever its arguments, and creates none. So a submission can be repeated after a lost
   * response.
   */
  readonly key?: string | undefined
  /** The tasks of its tool that it takes turns with those of other keys for (`Pace.perKey`), up to 512 characters. Default "". */
  readonly queueKey?: string | undefined
  /** When it may begin, in milliseconds of Unix time by the clock of the store. Its `ttlMs` begins then. Default: now. */
  readonly startAt?: number | undefined
  /** The same in milliseconds after its submission, without `startAt`. Default 0. */
  readonly delayMs?: number | undefined
  /** Default: any number of tasks of its tool. */
  readonly singleton?: Singleton | undefined
  /** A submission returns the task with the same key that has not begun, and changes its arguments. Default: none. */
  readonly debounce?: Debounce | undefined
  /**
   * Texts by which operators find the task, up to ten: names of 1 to 200 characters, with values of up to 200. They are
   * readable in the store also if tasks are encrypted. Default: none.
   */
  readonly labels?: Labels | undefined
  readonly owner: Owner
  /**
   * The key of the client that submits a task without an owner: its tasks are counted together for `limits.client`. The
   * store has a digest of it. Default: the task counts in the other limits only.
   */
  readonly client?: string | undefined
  readonly caller: StoredCaller
  /** Milliseconds from when it may begin until it is cancelled and deleted; `null`: never. */
  readonly ttlMs: number | null
  /** The number of milliseconds that clients are asked to wait between two polls. */
  readonly pollIntervalMs: number
  readonly limits: TaskLimits
}

/** The outcome of a call: a result or a JSON-RPC error. */
export type Outcome =
  | { readonly _tag: "Result"; readonly result: JsonObject }
  | { readonly _tag: "Error"; readonly error: ErrorObject }

/** An open question: a request for input that has no answer yet. */
export interface Question {
  /** Unique in its task, also among answered questions. */
  readonly key: string
  readonly method: string
  /** Encoded in the revision of the caller. */
  readonly params: JsonObject | undefined
  /** The person or group that answers it (`Tasks.Options.addresses`). Default: those who may see the task. */
  readonly to?: string | undefined
}

/** An open question that names who answers it. */
export interface AddressedQuestion {
  readonly task: Pick<State, "id" | "tool" | "owner" | "caller">
  readonly question: Question
}

/** The state of a task at one moment. */
export interface State {
  readonly id: string
  readonly tool: string
  readonly pool: string
  readonly owner: Owner
  /** `completed`: the outcome is a result, possibly with `isError`. `failed`: the outcome is a JSON-RPC error. */
  readonly status: TaskStatus
  /** The last message of the handler; for a failure, or a result with `isError`, the reason. */
  readonly statusMessage: string | undefined
  readonly progress: Progress | undefined
  /** Milliseconds of Unix time. */
  readonly createdAt: number
  /** Milliseconds of Unix time. */
  readonly updatedAt: number
  /** Milliseconds from its creation until it is cancelled and deleted; `null`: never. */
  readonly ttlMs: number | null
  /** The number of milliseconds that clients are asked to wait between two polls. */
  readonly pollIntervalMs: number
  /** Grows with every change. */
  readonly version: number
  readonly caller: StoredCaller
  /** The open questions, while the status is `input_required`. */
  readonly questions: ReadonlyArray<Question>
  /** Whether it is `completed` with a result that has `isError`. */
  readonly isError: boolean
  /** The outcome of a task that is `completed` or `failed`. */
  readonly outcome: Outcome | undefined
}

/** An item of the output of a task (`Task.emit`). */
export interface OutputItem {
  /** Its place in the output, from 0. */
  readonly offset: number
  /** When it was emitted, in milliseconds of Unix time. */
  readonly at: number
  /** The value, as JSON. */
  readonly value: unknown
}

/** Which items of an output to read. */
export interface OutputOptions {
  /** The offset of the first item: a whole number, 0 by default. */
  readonly from?: number | undefined
}

/** A page of the output of a task: up to 1,000 items, and about 1 MiB. */
export interface OutputPage {
  readonly items: ReadonlyArray<OutputItem>
  /** The offset of the next page. */
  readonly next: number
  /** The number of all items so far. */
  readonly count: number
  /** Whether the task has ended, so that no further items come. */
  readonly hasEnded: boolean
}

/** The last task of a page of a listing, which is ordered by creation and id, newest first. */
export interface ListPosition {
  readonly createdAt: number
  readonly id: string
}

/** Whether a task has ended: its status is `completed`, `failed` or `cancelled`. */
export const isFinal = ({ status }: Pick<State, "status">): boolean =>
  status === "completed" || status === "failed" || status === "cancelled"
