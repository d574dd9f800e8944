/**
 * The failure of a client: of opening a connection, of a call, or of a task that a call has become.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { InputRequiredResult } from "@skein/protocol/InputRequired"
import type * as McpError from "@skein/protocol/McpError"
import type { Problem } from "@skein/protocol/SchemaValidation"
import type { SessionEnd } from "@skein/runtime/Session"
import * as PrintableError from "@skein/protocol/PrintableError"
import type { Revision } from "@skein/protocol/Revision"

/** The members of a reason without details of its own. */
export interface MessageAndCause {
  readonly message: string
  readonly cause?: unknown
}

/** The members of a reason that is a response over HTTP. */
export interface HttpDetails extends MessageAndCause {
  /** The HTTP status. It is 401 or 403 for `Unauthorized`. */
  readonly status?: number | undefined
}

/** The connection could not be opened. The `cause` is the `TransportError`. */
export class ConnectionFailed extends PrintableError.tagged("ConnectionFailed")<MessageAndCause> {}

/**
 * The connection ended before the response came, or had ended before the call. Without `end`, the connection goes on:
 * only this response was lost and could not be fetched again.
 *
 * The message contains the last lines that a spawned server wrote to its standard error, where the transport has them.
 * The `cause` is a `Reconnect.ReconnectExhausted` after the last attempt to reconnect.
 */
export class Closed extends PrintableError.tagged("Closed")<
  MessageAndCause & {
    /** How the connection ended. */
    readonly end?: SessionEnd | undefined
  }
> {}

/**
 * The server answered over HTTP with something that is not a JSON-RPC response. The `cause` is the `TransportError`.
 */
export class HttpError extends PrintableError.tagged("HttpError")<HttpDetails> {}

/**
 * The server requires authorization (status 401), or denies access (403).
 *
 * If the credentials failed to handle the refusal, the `cause` is their failure: `OAuthError` of `@skein/auth`, for
 * example, in which a web application finds the URL to redirect its user to. Otherwise it is the `TransportError`.
 */
export class Unauthorized extends PrintableError.tagged("Unauthorized")<HttpDetails> {}

/** No response came within the timeout of the call. The server was notified that the request is cancelled. */
export class Timeout extends PrintableError.tagged("Timeout")<MessageAndCause> {}

/** A limit of this client was reached: too many requests are waiting for a response, or a list has too many pages. */
export class LimitExceeded extends PrintableError.tagged("LimitExceeded")<MessageAndCause> {}

/**
 * The negotiated revision or the server does not support the call, or the revision cannot express the arguments.
 * Nothing was sent, with one exception: the server requested input (`input_required`) that this client does not
 * provide.
 */
export class Unsupported extends PrintableError.tagged("Unsupported")<MessageAndCause> {}

/**
 * The server requested input before it answers, and this client declined to give it, or its handler failed. The message
 * names the input request, and the `cause` is the failure of the handler.
 */
export class InputRefused extends PrintableError.tagged("InputRefused")<MessageAndCause> {}

/** The server requested input before it answers, and the option `inputRequests: "fail"` leaves the answer to the caller. */
export class InputRequired extends PrintableError.tagged("InputRequired")<
  MessageAndCause & {
    /** The input requests, and the state that the server needs back. */
    readonly required: InputRequiredResult
  }
> {}

/**
 * The server answered with a JSON-RPC error. The message contains the first 4,096 characters of the server's message,
 * with unprintable characters escaped.
 */
export class ProtocolError extends PrintableError.tagged("ProtocolError")<
  MessageAndCause & {
    /** The error as it was received, with the unprintable characters of its message escaped. */
    readonly error: McpError.McpError
  }
> {}

/**
 * The response is not valid for the method, or the structured content of a tool's result does not match its
 * `outputSchema`.
 */
export class InvalidResponse extends PrintableError.tagged("InvalidResponse")<
  MessageAndCause & {
    /** The result that does not match. */
    readonly result?: CallToolResult | undefined
    /** Where the structured content of the `result` does not match the tool's `outputSchema`: at most ten places. */
    readonly problems?: ReadonlyArray<Problem> | undefined
  }
> {}

/** A typed call of a tool ended with `isError`. */
export class ToolFailed extends PrintableError.tagged("ToolFailed")<{
  /** The result with `isError`. */
  readonly result: CallToolResult
}> {}

/** A middleware of this host refused the call (`Middleware.deny`). Nothing was sent. */
export class Denied extends PrintableError.tagged("Denied")<MessageAndCause> {}

/** The task that the call had become was cancelled. */
export class TaskCancelled extends PrintableError.tagged("TaskCancelled") {}

/** The server has no task with that id, or has deleted it. */
export class TaskNotFound extends PrintableError.tagged("TaskNotFound")<MessageAndCause> {}

/** The two sides share no revision, or the server refused the handshake. */
export class NegotiationFailed extends PrintableError.tagged("NegotiationFailed")<
  MessageAndCause & {
    /** The error of the server, if it sent one. */
    readonly error?: McpError.McpError | undefined
  }
> {}

/**
 * Identifies a task: a JSON value that can be stored and passed to `resumeTask`. Protect it: it may be sufficient to
 * access the task.
 */
export interface TaskHandle {
  readonly taskId: string
  /** The tool that was called. The result is validated by its schema. */
  readonly tool?: string | undefined
  /**
   * The name of the server, as it sent it. A server with another name is not asked for the task: its id may be all that
   * is needed to access it.
   */
  readonly server?: string | undefined
  /**
   * The revision in which it was started. The server decides whether the task is also available in the other revision
   * that has tasks.
   */
  readonly revision?: Revision | undefined
}

/** Why a client failed. */
export type Reason =
  | ConnectionFailed
  | Closed
  | HttpError
  | Unauthorized
  | Timeout
  | LimitExceeded
  | Unsupported
  | InputRefused
  | InputRequired
  | ProtocolError
  | InvalidResponse
  | ToolFailed
  | Denied
  | TaskCancelled
  | TaskNotFound
  | NegotiationFailed

/** The members of a `ClientError` beside its message and its cause. */
interface Fields {
  readonly reason: Reason
  /** The method that was called, or was about to be called. */
  readonly method?: string | undefined
  /** True if the server has certainly not begun to handle the request, so that any request may be sent again. */
  readonly undelivered?: boolean | undefined
  /** The task that the call had become and that may go on without this client. Pass it to `resumeTask`. */
  readonly task?: TaskHandle | undefined
}

/**
 * The failure of a client.
 *
 * The `reason` is a tagged error with the details, for `Effect.catchReason` and `Effect.catchReasons`; `message` and
 * `cause` are those of the reason.
 *
 * @example
 * ```ts
 * client.callTool("order", { tea }, { output: Order }).pipe(
 *   Effect.catchReasons("ClientError", {
 *     ToolFailed: ({ result }) => show(result.content),
 *     ProtocolError: ({ error }) => Effect.logError(error.code)
 *   })
 * )
 * ```
 */
export class ClientError extends PrintableError.tagged("ClientError")<Fields & { readonly cause?: unknown }> {
  constructor({ method, reason, task, undelivered }: Fields) {
    super({
      reason,
      ...(method === undefined ? {} : { method }),
      ...(undelivered === undefined ? {} : { undelivered }),
      ...(task === undefined ? {} : { task }),
      message: reason.message,
      cause: reason.cause
    })
  }
}
