/**
 * The failure of a request that this side sent and that got no response.
 */
import * as PrintableError from "@skein/protocol/PrintableError"
import type { SessionEnd } from "./Session.ts"
import type { TransportError } from "./TransportError.ts"

/**
 * The connection ended before the response came, or had ended before the request. Without `end`, the connection goes
 * on: only the stream of this request was lost, the other side ended a subscription, or the request that an input
 * request belongs to is over.
 */
export class Closed extends PrintableError.tagged("Closed")<{
  /** How the connection ended. */
  readonly end?: SessionEnd | undefined
  readonly cause?: unknown
}> {}

/** No response came within the timeout of the request. The other side was notified that the request is cancelled. */
export class Timeout extends PrintableError.tagged("Timeout") {}

/** Too many requests are waiting for a response (1,024). Nothing was sent. */
export class LimitExceeded extends PrintableError.tagged("LimitExceeded") {}

/**
 * The revision or the other side does not have the method, or the message has no form in the revision. Nothing was
 * sent.
 */
export class Unsupported extends PrintableError.tagged("Unsupported")<{
  readonly cause?: unknown
}> {}

/** The response is not valid for the method. */
export class InvalidResponse extends PrintableError.tagged("InvalidResponse") {}

/** The other side's transport rejected the request without a JSON-RPC response. */
export class MessageRejected extends PrintableError.tagged("MessageRejected")<{
  readonly cause: TransportError
}> {}

/** Why a request got no response. */
export type Reason = Closed | Timeout | LimitExceeded | Unsupported | InvalidResponse | MessageRejected

/**
 * The failure of a request that this side sent and that got no response. An error response of the other side is an
 * `McpError`.
 *
 * The `reason` has the details; `message` and `cause` are those of the reason. Handle one reason with
 * `Effect.catchReason("RequestError", "Timeout", …)`.
 */
export class RequestError extends PrintableError.tagged("RequestError")<{
  readonly reason: Reason
  readonly method: string
  /** True if the other side has certainly not begun to handle the request. */
  readonly undelivered?: boolean | undefined
  readonly cause?: unknown
}> {
  constructor({ method, reason, undelivered }: Pick<RequestError, "reason" | "method" | "undelivered">) {
    super({ reason, method, undelivered, message: reason.message, cause: reason.cause })
  }
}
