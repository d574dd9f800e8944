/**
 * The context in which a task is followed.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type * as Duration from "effect/Duration"
import type { ClientContext } from "../context.ts"
import type { Handle } from "../../../RemoteTask.ts"
import type { TaskProgress } from "../taskRegistry.ts"
import type { TaskStatus } from "./statusStream.ts"

/** The context in which a task is followed. */
export interface TaskContext {
  readonly client: ClientContext
  readonly handle: Handle
  /** When this client stops waiting, in milliseconds of the monotonic clock. */
  readonly deadline: number
  readonly leaveRunning: boolean
  /** The timeout of each request. */
  readonly timeout: Duration.Input | undefined
  readonly reports: TaskProgress | undefined
  /** Whether its status must be requested before anything else. */
  readonly unseen: boolean
}

/** How a task has ended: with its result, with a protocol error of the server, or cancelled. */
export type End =
  | { readonly _tag: "Result"; readonly raw: JsonObject }
  | { readonly _tag: "Fault"; readonly error: McpError.McpError }
  | { readonly _tag: "Cancelled" }

/** A task that is being followed. */
export interface Followed {
  readonly id: string
  readonly terms: TaskContext
  /** The last status that the server sent. */
  readonly latest: TaskStatus
  /** Receives a status of the server. */
  readonly receive: (received: TaskStatus) => void
  /** Called when progress was reported. */
  readonly reported: () => void
}
