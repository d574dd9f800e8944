/**
 * The failure of a transport: opening it, keeping it open, or delivering one message.
 */
import * as PrintableError from "@skein/protocol/PrintableError"

/** The transport could not be opened: the command was not found, the port is taken, the server was not reached. */
export class OpenFailed extends PrintableError.tagged("OpenFailed")<{
  readonly cause?: unknown
}> {}

/** The connection broke after it was opened. */
export class ConnectionLost extends PrintableError.tagged("ConnectionLost")<{
  /** The HTTP status that ended the connection: 404 for a session that the server has deleted. */
  readonly status?: number | undefined
  readonly cause?: unknown
}> {}

/**
 * The other side's transport rejected one message without a JSON-RPC response, or answered with something else. Over
 * HTTP the answer usually has a status that is not 2xx.
 */
export class MessageRejected extends PrintableError.tagged("MessageRejected")<{
  /** The HTTP status of the response. */
  readonly status?: number | undefined
  readonly cause?: unknown
}> {}

/** Why a transport failed. */
export type Reason = OpenFailed | ConnectionLost | MessageRejected

/**
 * The failure of a transport. The `reason` has the details; `message` and `cause` are those of the reason.
 *
 * @example
 * ```ts
 * Stdio.connect({ command: "weather-server" }).pipe(
 *   Effect.catchReason("TransportError", "OpenFailed", ({ message }) => Effect.die(message))
 * )
 * ```
 */
export class TransportError extends PrintableError.tagged("TransportError")<{
  readonly reason: Reason
  /** True if the other side has certainly not begun to handle the message, so that any message may be sent again. */
  readonly undelivered?: boolean | undefined
  /** How long the other side asks to wait before another attempt, in milliseconds (`Retry-After`). */
  readonly retryAfter?: number | undefined
  readonly cause?: unknown
}> {
  constructor({ reason, retryAfter, undelivered }: Pick<TransportError, "reason" | "undelivered" | "retryAfter">) {
    super({ reason, undelivered, retryAfter, message: reason.message, cause: reason.cause })
  }

  /** The HTTP status of the response that caused the failure, if there was one. */
  get status(): number | undefined {
    return this.reason._tag === "OpenFailed" ? undefined : this.reason.status
  }
}
