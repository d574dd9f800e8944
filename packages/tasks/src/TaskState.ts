/**
 * What is known of a task: its state as it is kept, and what it is made from.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import type { ErrorObject, TaskStatus } from "@skein/protocol/Task"
import type { Principal } from "@skein/runtime/Connection"
import type { Progress } from "@skein/runtime/RequestContext"

/** Whose a task is: the id of a principal, or what its owner policy says; `null`: whoever knows its id. */
export type Owner = string | null

/** How many tasks there may be. What is not given is not bounded here. */
export interface Limits {
  /** Tasks that are not over, and tasks that are kept, over or not. */
  readonly live?: number | undefined
  readonly retained?: number | undefined
}

/** The bounds that a new task is counted against, at its submission. */
export interface Counted {
  readonly all: Limits
  readonly owner: Limits
  readonly tool: Limits
}

/** Who called the tool, as far as that is kept: what is asked later is asked in this revision, of a client that can do this. */
export interface KeptCaller {
  readonly revision: Revision
  readonly capabilities: JsonObject
  readonly info: JsonObject | undefined
  /** No more of the principal than its id: its other claims, and the credentials of the request, are not kept. */
  readonly principal: Pick<Principal, "id"> | undefined
}

/** A task to be. */
export interface NewTask {
  readonly tool: string
  readonly args: JsonObject
  /** The workers that it must run on; `default` by default. */
  readonly pool: string
  readonly owner: Owner
  readonly caller: KeptCaller
  /** Milliseconds from its creation until it is ended and forgotten; `null`: never. */
  readonly ttl: number | null
  /** Milliseconds between two looks at it, as the client is told. */
  readonly pollInterval: number
  readonly limits: Counted
}

/** How a call ended: with a result, or with a JSON-RPC error. */
export type Outcome =
  | { readonly _tag: "Result"; readonly result: JsonObject }
  | { readonly _tag: "Error"; readonly error: ErrorObject }

/** A question that waits for its answer. */
export interface Question {
  /** Unique in the life of its task. */
  readonly key: string
  readonly method: string
  /** As they are written in the revision of the caller. */
  readonly params: JsonObject | undefined
}

/** A task, now. */
export interface State {
  readonly id: string
  readonly tool: string
  readonly pool: string
  readonly owner: Owner
  /** `completed`: there is a result, be it one with `isError`. `failed`: there is a JSON-RPC error. */
  readonly status: TaskStatus
  /** Where it stands; of one that has failed, with a result or an error, what went wrong. */
  readonly message: string | undefined
  readonly progress: Progress | undefined
  /** Milliseconds of Unix time. */
  readonly createdAt: number
  readonly updatedAt: number
  readonly ttl: number | null
  readonly pollInterval: number
  /** Grows with every change. */
  readonly version: number
  readonly caller: KeptCaller
  /** Those that are open, while the status is `input_required`. */
  readonly questions: ReadonlyArray<Question>
  /** Whether it is `completed` with a result that has `isError`. */
  readonly isError: boolean
  /** Once it is `completed` or `failed`. */
  readonly outcome: Outcome | undefined
}

/** Where a page of a listing ends: newest first, by creation and id. */
export interface Position {
  readonly createdAt: number
  readonly id: string
}

/** Whether nothing changes any more. */
export const isFinal = ({ status }: Pick<State, "status">): boolean =>
  status === "completed" || status === "failed" || status === "cancelled"
