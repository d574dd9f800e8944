/**
 * Why a question to the client has no answer.
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as Data from "effect/Data"

/**
 * - `MissingCapability`: the client has not declared what the question needs, which `missing` says. Nothing was sent.
 * - `Unsupported`: the revision cannot carry the question, or the request is one that may not be answered with questions. Nothing
 *   was sent.
 * - `InvalidQuestion`: the question is none that the specification allows: a form with a field of a field, for instance, which
 *   the message names. Nothing was sent.
 * - `InvalidAnswer`: the answer is not what was asked for.
 * - `Declined`, `Cancelled`: the user said no, or dismissed the question. Only `Elicitation.accepted` fails so.
 * - `Rejected`: the client answered with a JSON-RPC error, which is the `cause`. In the session era only.
 * - `TimedOut`: no answer in time (session era), or a `once` that took too long.
 * - `Limit`: too many questions wait for an answer (session era), or the request was answered with questions too often.
 * - `Closed`: the connection ended, or the request was over already.
 */
export type Reason =
  | "MissingCapability"
  | "Unsupported"
  | "InvalidQuestion"
  | "InvalidAnswer"
  | "Declined"
  | "Cancelled"
  | "Rejected"
  | "TimedOut"
  | "Limit"
  | "Closed"

/**
 * A question to the client that was not answered. A handler may let it pass: a tool answers its message as a result with
 * `isError`, prompts and resources as `-32603`. `MissingCapability` is a JSON-RPC error with the missing capability instead: in
 * the request era `-32021`, from tools too; in the session era `-32600` from prompts and resources.
 */
export class InputError extends Data.TaggedError("InputError")<{
  readonly reason: Reason
  /** What was asked, `elicitation/create` for instance; or the key of a `once`. */
  readonly method: string
  readonly message: string
  readonly revision: Revision.Revision
  /** The capabilities that are missing, as the client would have declared them. */
  readonly missing?: JsonObject | undefined
  readonly cause?: unknown
}> {
  /** The JSON-RPC error that this is where nothing catches it; `undefined` where it is none. */
  get fault(): McpError.McpError | undefined {
    return this.missing === undefined ? undefined : McpError.missingRequiredClientCapability(this.missing)
  }

  /** Whether a tool that lets it pass is answered with a JSON-RPC error, and not with a result that says that it failed. */
  get isProtocolFault(): boolean {
    return this.missing !== undefined && Revision.era(this.revision) === "request"
  }
}

/** As a JSON-RPC error, for a middleware that asks and has no other way to fail: `-32603` with the message, or the fault that it is. */
export const toMcpError = (error: InputError): McpError.McpError =>
  error.fault ?? new McpError.McpError({ reason: "InternalError", message: error.message })
