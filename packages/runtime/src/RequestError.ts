/**
 * Why a request that this side sent has no answer.
 */
import * as Data from "effect/Data"
import type { SessionEnd } from "./Session.ts"

/**
 * A request that this side sent and that was not answered. The other side's own errors are `McpError`s.
 *
 * - `Closed`: the connection ended before the answer came, or was over already, and `end` says how; or, without `end`, only what
 *   this request waited on was lost, the other side tore a subscription down, or the request that the question belongs to is over.
 * - `TimedOut`: no answer within the call's timeout. The other side was told that it is cancelled.
 * - `Limit`: too many requests wait for an answer; nothing was sent.
 * - `Unsupported`: the revision or the other side has no such method, or the message cannot be said in the revision; nothing was sent.
 * - `InvalidAnswer`: an answer came that is not what the method promises.
 * - `Refused`: the other side's transport said no, without an answer of the protocol; the `cause` is the `TransportError`.
 */
export class RequestError extends Data.TaggedError("RequestError")<{
  readonly reason: "Closed" | "TimedOut" | "Limit" | "Unsupported" | "InvalidAnswer" | "Refused"
  readonly method: string
  readonly message: string
  readonly end?: SessionEnd | undefined
  /** True where the other side surely has not begun to handle it. */
  readonly undelivered?: boolean | undefined
  readonly cause?: unknown
}> {}
