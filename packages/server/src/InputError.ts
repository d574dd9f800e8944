/**
 * The errors of input requests: why the client or its user gave no answer.
 *
 * @example
 * Elicitation.accepted(Elicitation.form("How many?", { people: Schema.Int })).pipe(
 *   Effect.catchReasons("InputError", {
 *     MissingCapability: () => Effect.succeed({ people: 2 }),
 *     Declined: () => Effect.succeed({ people: 0 })
 *   })
 * )
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type * as Revision from "@skein/protocol/Revision"
import * as PrintableError from "@skein/protocol/PrintableError"

interface Failure {
  readonly message: string
  readonly cause?: unknown
}

/** The client has not declared a capability that the input request needs. Nothing was sent. */
export class MissingCapability extends PrintableError.tagged("MissingCapability")<{
  /** The missing capabilities, as the client would have declared them. */
  readonly capabilities: JsonObject
}> {}

/**
 * The revision cannot carry the input request, or this request may not be answered with input requests. Nothing was
 * sent.
 */
export class Unsupported extends PrintableError.tagged("Unsupported")<Failure> {}

/**
 * The specification does not allow the input request. For example, a form has a field with fields of its own, which the
 * message names. Nothing was sent.
 */
export class InvalidRequest extends PrintableError.tagged("InvalidRequest") {}

/** The client's answer is not valid for the input request. */
export class InvalidResponse extends PrintableError.tagged("InvalidResponse")<Failure> {}

/** The user declined. Only `Elicitation.accepted` fails with it. */
export class Declined extends PrintableError.tagged("Declined") {}

/** The user dismissed the input request without an answer. Only `Elicitation.accepted` fails with it. */
export class Cancelled extends PrintableError.tagged("Cancelled") {}

/** The client answered with a JSON-RPC error. It happens only in a session-based revision. */
export class ProtocolError extends PrintableError.tagged("ProtocolError")<{
  /** The error as it was received, with the unprintable characters of its message escaped. */
  readonly error: McpError.McpError
}> {}

/** No answer came within the `timeout`, or the effect of a `once` took longer than its `timeout`. */
export class Timeout extends PrintableError.tagged("Timeout")<Failure> {}

/**
 * Too many input requests wait for an answer (session-based revisions, 1,024), or the request was
 * answered with input requests too often (stateless revision, `RequestState.Options.maxRounds`).
 */
export class LimitExceeded extends PrintableError.tagged("LimitExceeded")<Failure> {}

/** The connection ended, or the request that the input request belongs to was over already. */
export class Closed extends PrintableError.tagged("Closed")<Failure> {}

/** Why an input request has no answer. */
export type Reason =
  | MissingCapability
  | Unsupported
  | InvalidRequest
  | InvalidResponse
  | Declined
  | Cancelled
  | ProtocolError
  | Timeout
  | LimitExceeded
  | Closed

/**
 * An input request without an answer.
 *
 * The `reason` is a tagged error with the details, for `Effect.catchReason` and `Effect.catchReasons`. The `message` is
 * that of the reason.
 *
 * A handler may let the error pass. A tool then answers with a result with `isError` and the message, a prompt or
 * resource with `-32603`. `MissingCapability` is a JSON-RPC error that names the missing capability instead: `-32021`
 * in the stateless revision, from tools too, and `-32600` from prompts and resources in a session-based revision.
 */
export class InputError extends PrintableError.withReason("InputError")<{
  readonly reason: Reason
  /** The method of the input request, for example `elicitation/create`, or the key of a `once`. */
  readonly method: string
  readonly revision: Revision.Revision
}> {}

/**
 * Turns the error into a JSON-RPC error, for middleware that sends input requests and can only fail with `McpError`.
 * `MissingCapability` becomes the error that names the capability; every other reason becomes `-32603` with the
 * message.
 */
export const toMcpError = ({ message, reason }: InputError): McpError.McpError =>
  reason._tag === "MissingCapability"
    ? McpError.missingRequiredClientCapability(reason.capabilities)
    : new McpError.McpError({ reason: "InternalError", message })
