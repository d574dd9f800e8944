/**
 * Tasks as programs read them: states, questions and outcomes.
 */
import type { CallToolResult, JsonObject, Progress, Revision } from "../base/messages.ts"

/** `working`, or `input_required` while a question is open; later `completed`, `failed` or `cancelled`. */
export type TaskStatus = "working" | "input_required" | "completed" | "failed" | "cancelled"

/** The owner of a task: the id of a principal by default. `null`: every caller that has the id of the task. */
export type TaskOwner = string | null

/** The stored part of the caller that created a task. */
export interface StoredCaller {
  /** The revision in which its questions are written. */
  readonly revision: Revision
  readonly capabilities: JsonObject
  /** The name and version that the client claims. */
  readonly info: JsonObject | undefined
  readonly principal: { readonly id: string } | undefined
  /** The span of the call, as W3C `traceparent`. */
  readonly traceparent?: string | undefined
}

/** A question of a task that has no answer yet. */
export interface TaskQuestion {
  /** Unique in its task. Pass it to `answer`. */
  readonly key: string
  /** `elicitation/create`, `sampling/createMessage` or `roots/list`. */
  readonly method: string
  readonly params: JsonObject | undefined
  /** The person or group that answers it, one of the `addresses` of `tasks`. Default: those who may see the task. */
  readonly to?: string | undefined
}

/** An open question that names who answers it. */
export interface AddressedQuestion {
  readonly task: Pick<TaskState, "id" | "tool" | "owner" | "caller">
  readonly question: TaskQuestion
}

/** The outcome of a task: the result of its call, possibly with `isError`, or a JSON-RPC error. */
export type TaskOutcome =
  | { readonly _tag: "Result"; readonly result: CallToolResult }
  | {
    readonly _tag: "Error"
    readonly error: { readonly code: number; readonly message: string; readonly data?: unknown }
  }

/** The state of a task at one moment. */
export interface TaskState {
  /** Keep it secret: it may be enough to read the task. */
  readonly id: string
  /** The name of the task, as in `task(name, …)`. */
  readonly tool: string
  readonly pool: string
  readonly owner: TaskOwner
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
  readonly questions: ReadonlyArray<TaskQuestion>
  /** Whether it is `completed` with a result that has `isError`. */
  readonly isError: boolean
  /** The outcome of a task that is `completed` or `failed`. */
  readonly outcome: TaskOutcome | undefined
}

/** An item of the output of a task. */
export interface TaskOutputItem {
  /** Its place in the output, from 0. */
  readonly offset: number
  /** When it was emitted, in milliseconds of Unix time. */
  readonly at: number
  /** The value, as JSON. */
  readonly value: unknown
}

/** A page of the output of a task: up to 1,000 items, and about 1 MiB. */
export interface TaskOutputPage {
  readonly items: ReadonlyArray<TaskOutputItem>
  /** The offset of the next page. */
  readonly next: number
  /** The number of all items so far. */
  readonly count: number
  /** Whether the task has ended, so that no further items come. */
  readonly hasEnded: boolean
}

/** Which items of an output to read. */
export interface TaskOutputOptions {
  /** The offset of the first item: a whole number, 0 by default. */
  readonly from?: number | undefined
}

/** Labels of a task, by their names. */
export type TaskLabels = { readonly [name: string]: string }

/** The last task of a page, for the next one. */
export interface TaskListPosition {
  readonly createdAt: number
  readonly id: string
}
