/**
 * What a task is followed with.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type * as Duration from "effect/Duration"
import type { ClientContext } from "../calls/context.ts"
import type { Handle } from "./handle.ts"
import type { TaskProgress } from "./taskRegistry.ts"
import type { Resolved } from "./settings.ts"
import type { TaskStatus } from "./statusStream.ts"

/** What a task is followed with. */
export interface TaskContext {
  readonly client: ClientContext
  readonly handle: Handle
  /** When this side waits no longer, in milliseconds of the keeper's clock. */
  readonly deadline: number
  readonly leaveRunning: boolean
  /** Of each request. */
  readonly timeout: Duration.Input | undefined
  readonly reports: TaskProgress | undefined
  /** Whether it has to be looked at before anything else is done. */
  readonly unseen: boolean
}

/** How a task has ended: its result, or the protocol fault in its stead, as the server said it. */
export type End =
  | { readonly _tag: "Result"; readonly raw: JsonObject }
  | { readonly _tag: "Fault"; readonly error: McpError.McpError }
  | { readonly _tag: "Cancelled" }

/** A task on its course. */
export interface Followed {
  readonly id: string
  readonly terms: TaskContext
  readonly settings: Resolved
  /** What the server said last. */
  readonly told: TaskStatus
  /** Takes what the server says. */
  readonly tell: (told: TaskStatus) => void
  /** Takes notice of progress. */
  readonly reported: () => void
}
