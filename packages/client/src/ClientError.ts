/**
 * Why a client could not do what it was asked for.
 */
import type * as McpError from "@skein/protocol/McpError"
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { Problem } from "@skein/protocol/SchemaValidation"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Data from "effect/Data"
import type { Handle } from "./internal/tasks/handle.ts"

/**
 * What a host decides on.
 *
 * - `Open`: the transport could not be opened; `cause` is its `TransportError`.
 * - `Closed`: the connection ended before the answer came, or was over already, and `end` says how; or, without `end`, the answer
 *   was lost on its way and could not be fetched again. What a server that was spawned wrote to its standard error last is in the
 *   message, where the transport kept it.
 *   When it was opened anew in vain the `cause` is a `Reconnect.ReconnectExhausted`.
 * - `Refused`: what answers over HTTP is no answer of the protocol; `status` is the HTTP status, the `cause` a `TransportError`.
 * - `Unauthorized`: the server wants to know who asks (`status` 401), or does not let them (403).
 * - `TimedOut`: no answer within the timeout of the call. The server was told that it is cancelled.
 * - `Limit`: a bound of this side was met: too many requests wait for an answer, or a listing has too many pages.
 * - `Unsupported`: the negotiated revision or the server does not have it, or it cannot be said in the revision. Nothing was
 *   sent, with one exception: an answer that asks for input (`input_required`) that this client does not provide.
 * - `Unanswered`: the server asked this host something before it answers, and got no answer: it was refused, or what answers it
 *   failed, as `cause` says. The message names the question.
 * - `Protocol`: the server answered with an error; `error` is it, as it came. Of its message the first 4,096 characters are in ours,
 *   with what is not printable escaped.
 * - `InvalidAnswer`: the server answered with something that is not what the method promises. Where a tool's result is not what
 *   its `outputSchema` promises, `result` is it, and `problems` say why.
 * - `Tool`: a typed call of a tool ended with `isError`; `result` is what it said.
 * - `Cancelled`: the task that the call had become was cancelled.
 * - `Gone`: the server does not know the task, or does not know it any more.
 * - `Negotiation`: the two sides share no revision, or the server refused the handshake (`error` is its error, if it gave one).
 * - `Unknown`: a pool has no server of that name.
 * - `Taken`: a pool has a server of that name already.
 */
export type Reason =
  | "Open"
  | "Closed"
  | "Refused"
  | "Unauthorized"
  | "TimedOut"
  | "Limit"
  | "Unsupported"
  | "Unanswered"
  | "Protocol"
  | "InvalidAnswer"
  | "Tool"
  | "Cancelled"
  | "Gone"
  | "Negotiation"
  | "Unknown"
  | "Taken"

/** A failure of a client. Which members are there depends on the `reason`; see {@link Reason}. */
export class ClientError extends Data.TaggedError("ClientError")<{
  readonly reason: Reason
  /** The method that was called, or was to be called. */
  readonly method?: string | undefined
  readonly message: string
  readonly error?: McpError.McpError | undefined
  readonly result?: CallToolResult | undefined
  /** What is wrong with the structured content of the `result`, by the tool's `outputSchema`; at most ten faults. */
  readonly problems?: ReadonlyArray<Problem> | undefined
  readonly end?: SessionEnd | undefined
  /** The HTTP status of a refusal. */
  readonly status?: number | undefined
  /** True where the server surely has not begun to handle the request, so that it may be made again whatever it does. */
  readonly undelivered?: boolean | undefined
  /** The task that the call had become, where it may go on without this client: for `resumeTask`. */
  readonly task?: Handle | undefined
  readonly cause?: unknown
}> {}

/** What is surely there, by the reason. */
interface Told {
  readonly Protocol: { readonly error: McpError.McpError }
  readonly Tool: { readonly result: CallToolResult }
}

/** A failure of one reason, with what is surely there then: `error` for `Protocol`, `result` for `Tool`. */
export type Of<R extends Reason> = ClientError & { readonly reason: R } & (R extends keyof Told ? Told[R] : unknown)

/**
 * Tells failures of one reason from all others, for `Effect.catchIf` and its like.
 *
 * ```ts
 * client.callTool("order", { tea }, { output: Order }).pipe(
 *   Effect.catchIf(ClientError.is("Tool"), ({ result }) => show(result.content)),
 *   Effect.catchIf(ClientError.is("Protocol"), ({ error }) => Effect.logError(error.code))
 * )
 * ```
 */
export const is = <R extends Reason>(reason: R) => (error: ClientError): error is Of<R> => error.reason === reason
