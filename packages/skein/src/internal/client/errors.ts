/**
 * The errors of clients and pools. Each is the class of `@skein/client`, with a type without Effect.
 */
import * as CoreClientError from "@skein/client/ClientError"
import * as CorePoolError from "@skein/client/PoolError"
import * as CoreReconnect from "@skein/client/Reconnect"
import * as CoreRoots from "@skein/client/Roots"
import * as CoreSampling from "@skein/client/Sampling"
import * as CoreTransportError from "@skein/runtime/TransportError"
import type { McpError } from "../base/errors.ts"
import type { CallToolResult, Revision } from "../base/messages.ts"
import type { InputRequiredResult } from "./results.ts"

/** A class of errors, for `instanceof`. */
interface ErrorClass<A extends Error, Fields> {
  new(fields: Fields): A
  readonly prototype: A
}

/** A reason without details of its own. */
interface Plain<Tag extends string> {
  readonly _tag: Tag
  readonly message: string
  readonly cause?: unknown
}

/** A response over HTTP that is not one of JSON-RPC. `Unauthorized` has the status 401 or 403. */
interface HttpReason<Tag extends string> extends Plain<Tag> {
  /** The HTTP status. */
  readonly status?: number | undefined
}

/** Why a connection ended before a response came. Without `end` the connection goes on: only this response was lost. */
interface ClosedReason extends Plain<"Closed"> {
  /** How the connection ended. */
  readonly end?: SessionEnd | undefined
}

/**
 * The input that the server requested before it answers. Only with the option `inputRequests: "fail"`, which leaves the
 * answer to the caller.
 */
interface InputRequiredReason extends Plain<"InputRequired"> {
  /** The input requests, and the state that the server needs back. */
  readonly required: InputRequiredResult
}

/** The JSON-RPC error of the server. */
interface ProtocolErrorReason extends Plain<"ProtocolError"> {
  /** The error as it was received. `error.code` and `error.data` have the details. */
  readonly error: McpError
}

/** A response that is not valid for its method, or structured content that does not match its schema. */
interface InvalidResponseReason extends Plain<"InvalidResponse"> {
  /** The result that does not match. */
  readonly result?: CallToolResult | undefined
  /** Where the structured content does not match the `outputSchema` of the tool: at most ten places. */
  readonly problems?:
    | ReadonlyArray<{ readonly message: string; readonly path: ReadonlyArray<string | number> }>
    | undefined
}

/** A call with the option `output` whose result has `isError`. */
interface ToolFailedReason extends Plain<"ToolFailed"> {
  /** The result with `isError`. */
  readonly result: CallToolResult
}

/** The two sides share no revision, or the server refused the handshake. */
interface NegotiationFailedReason extends Plain<"NegotiationFailed"> {
  /** The error of the server, if it sent one. */
  readonly error?: McpError | undefined
}

/**
 * Why a client failed:
 *
 * - `ConnectionFailed`: the connection could not be opened. The `cause` is a `TransportError`.
 * - `Closed`: the connection ended before the response came, or before the call.
 * - `HttpError`: the server answered over HTTP with something that is not a JSON-RPC response.
 * - `Unauthorized`: the server requires authorization (401) or denies access (403). If the credentials failed, the `cause` is
 *   their error.
 * - `Timeout`: no response came in time. The request was cancelled.
 * - `LimitExceeded`: a limit of this client was reached.
 * - `Unsupported`: the revision or the server does not support the call. Nothing was sent.
 * - `InputRefused`: the server asked a question, and this client declined or its handler failed.
 * - `InputRequired`: the server asked a question, and the option `inputRequests` is `"fail"`.
 * - `ProtocolError`: the server answered with a JSON-RPC error.
 * - `InvalidResponse`: the response is not valid, or does not match its schema.
 * - `ToolFailed`: a call with `output` has a result with `isError`.
 * - `Denied`: a middleware of this host refused the call. Nothing was sent.
 * - `TaskCancelled`, `TaskNotFound`: the task of the call was cancelled, or the server does not have it.
 * - `NegotiationFailed`: the two sides share no revision, or the server refused the handshake.
 */
export type ClientErrorReason =
  | Plain<"ConnectionFailed">
  | ClosedReason
  | HttpReason<"HttpError">
  | HttpReason<"Unauthorized">
  | Plain<"Timeout">
  | Plain<"LimitExceeded">
  | Plain<"Unsupported">
  | Plain<"InputRefused">
  | InputRequiredReason
  | ProtocolErrorReason
  | InvalidResponseReason
  | ToolFailedReason
  | Plain<"Denied">
  | Plain<"TaskCancelled">
  | Plain<"TaskNotFound">
  | NegotiationFailedReason

/**
 * Identifies a task: a JSON value that can be stored and passed to `resumeTask`. Protect it: it may be sufficient to access
 * the task.
 */
export interface TaskHandle {
  readonly taskId: string
  /** The tool that was called. The result is validated by its schema. */
  readonly tool?: string | undefined
  /** The name of the server, as it sent it. A server with another name is not asked for the task. */
  readonly server?: string | undefined
  /** The revision in which the task was started. */
  readonly revision?: Revision | undefined
}

/** The members of a `ClientError` beside its message. */
export interface ClientErrorFields {
  readonly reason: ClientErrorReason
  /** The method that was called, or was about to be called. */
  readonly method?: string | undefined
  /** True if the server has certainly not begun to handle the request, so that any request may be sent again. */
  readonly undelivered?: boolean | undefined
  /** The task that the call had become and that may go on without this client. Pass it to `resumeTask`. */
  readonly task?: TaskHandle | undefined
}

/**
 * The error of a client: of opening a connection, of a call, or of a task that a call has become. `message` and `cause` are
 * those of the `reason`.
 *
 * @example
 * try {
 *   return await client.callTool("order", { tea }, { output: Order, timeout: "10 seconds" })
 * } catch (error) {
 *   if (error instanceof ClientError && error.reason._tag === "Timeout") return undefined
 *   throw error
 * }
 */
export interface ClientError extends Error, ClientErrorFields {
  readonly _tag: "ClientError"
}

export const ClientError: ErrorClass<ClientError, ClientErrorFields> = CoreClientError.ClientError as never

/** A reason of a `PoolError`, with the server that it is about. */
interface AboutServer<Tag extends string> extends Plain<Tag> {
  readonly server: string
}

/** A reason of a `PoolError` about a configuration. */
interface AboutConfig<Tag extends string> extends Plain<Tag> {
  /** The path of the file, or `the configuration`. */
  readonly source: string
}

/** A reason of a `PoolError` about one entry of a configuration. */
interface AboutEntry<Tag extends string> extends AboutConfig<Tag>, AboutServer<Tag> {}

/**
 * Why a pool failed:
 *
 * - `ServerNotFound`, `ToolNotFound`: the pool has no such server, or the toolkit no such tool.
 * - `DuplicateName`, `LimitExceeded`: a server with that name exists already, or the pool has `maxServers` servers.
 * - `ConfigUnreadable`, `InvalidConfig`: a configuration could not be read, or lists no servers.
 * - `InvalidEntry`, `MissingVariable`: the entry of one server is invalid, or uses a variable without a value. The other
 *   servers are not affected.
 */
export type PoolErrorReason =
  | AboutServer<"ServerNotFound">
  | Plain<"ToolNotFound"> & { readonly tool: string }
  | AboutServer<"DuplicateName">
  | Plain<"LimitExceeded"> & { readonly maxServers: number }
  | AboutConfig<"ConfigUnreadable">
  | AboutConfig<"InvalidConfig">
  | AboutEntry<"InvalidEntry">
  | AboutEntry<"MissingVariable"> & {
    /** The variable as the entry has it: `env:TOKEN`, `input:key` or `TOKEN`, for example. */
    readonly variable: string
  }

/**
 * The error of a pool. The error of a server in the pool is a `ClientError`. Messages about a configuration contain the names
 * of its members and variables, and never their values.
 */
export interface PoolError extends Error {
  readonly _tag: "PoolError"
  readonly reason: PoolErrorReason
}

export const PoolError: ErrorClass<PoolError, { readonly reason: PoolErrorReason }> = CorePoolError.PoolError as never

/**
 * Why a transport failed: it could not be opened (`OpenFailed`), broke after it was opened (`ConnectionLost`), or rejected
 * one message (`MessageRejected`).
 */
export type TransportErrorReason =
  | Plain<"OpenFailed">
  | HttpReason<"ConnectionLost">
  | HttpReason<"MessageRejected">

/** The members of a `TransportError` beside its message. */
export interface TransportErrorFields {
  readonly reason: TransportErrorReason
  /** True if the other side has certainly not begun to handle the message. */
  readonly undelivered?: boolean | undefined
  /** How long the other side asks to wait before another attempt, in milliseconds (`Retry-After`). */
  readonly retryAfter?: number | undefined
}

/** The error of a transport. It is the `cause` of `ClientError`s. */
export interface TransportError extends Error, TransportErrorFields {
  readonly _tag: "TransportError"
  /** The HTTP status of the response that caused the failure, if there was one. */
  readonly status: number | undefined
}

export const TransportError: ErrorClass<TransportError, TransportErrorFields> = CoreTransportError
  .TransportError as never

/**
 * Why a connection has ended: this side closed it, the server closed it, it broke (`Lost`), the two sides could not agree
 * (`Refused`), or it was idle for too long (`Expired`).
 */
export type SessionEnd =
  | { readonly _tag: "ClosedByUs" }
  | { readonly _tag: "ClosedByPeer" }
  | { readonly _tag: "Lost"; readonly cause: TransportError }
  | { readonly _tag: "Refused"; readonly message: string }
  | { readonly _tag: "Expired" }

/** The members of a `ReconnectExhausted`. */
export interface ReconnectExhaustedFields {
  readonly message: string
  /** How many attempts were made in a row. */
  readonly attempts: number
  /** The error of the last attempt, a `ClientError`, or the end of the last connection. */
  readonly cause: unknown
}

/** The last attempt to reconnect has failed. It is the `cause` of the reason `Closed` of all later calls. */
export interface ReconnectExhausted extends Error {
  readonly _tag: "ReconnectExhausted"
  readonly attempts: number
  readonly cause: unknown
}

export const ReconnectExhausted: ErrorClass<ReconnectExhausted, ReconnectExhaustedFields> = CoreReconnect
  .ReconnectExhausted as never

/** The members of an `InvalidRoot`. */
export interface InvalidRootFields {
  readonly message: string
  readonly uri: string
}

/** A root that must not be sent: it is not a `file:` URL, or has a segment such as `..`. */
export interface InvalidRoot extends Error {
  readonly _tag: "InvalidRoot"
  readonly uri: string
}

export const InvalidRoot: ErrorClass<InvalidRoot, InvalidRootFields> = CoreRoots.InvalidRoot as never

/**
 * The user refused a sampling request, or refused to send the response: throw it in `sample`. Servers of a session receive the
 * message ("User rejected sampling request" by default).
 *
 * @example
 * if (!await approve(request)) throw new SamplingRefused({})
 */
export interface SamplingRefused extends Error {
  readonly _tag: "SamplingRefused"
}

export const SamplingRefused: ErrorClass<SamplingRefused, { readonly message?: string | undefined }> = CoreSampling
  .SamplingRefused as never
