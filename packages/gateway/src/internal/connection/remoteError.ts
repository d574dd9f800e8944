/**
 * The errors that callers receive for failures of a remote server.
 */
import type { ClientError } from "@skein/client/ClientError"
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as McpError from "@skein/protocol/McpError"
import type { HandlerError } from "@skein/server/HandlerError"
import { InputError, toMcpError as ofInputError } from "@skein/server/InputError"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"

/**
 * Why the proxy has no answer of the remote server: `data.reason` of an error with the code `-32603`.
 *
 * - `RemoteUnavailable`: the remote server cannot be reached, or the connection was lost before it answered.
 * - `RemoteTimeout`: it did not answer in time.
 * - `RemoteUnauthorized`: it requires authorization, or denies access.
 * - `RemoteFailed`: its answer is not valid, or cannot be passed on.
 * - `TooManyConnections`: `maxConnections` are in use.
 * - `CallEnded`: the call waited for the caller's answers, and is over: `waitTimeout` has passed, the proxy was
 *   restarted, or another instance of it received the answers.
 */
export type RemoteFailure =
  | "RemoteUnavailable"
  | "RemoteTimeout"
  | "RemoteUnauthorized"
  | "RemoteFailed"
  | "TooManyConnections"
  | "CallEnded"

/** Makes the error of a failure. Its message must not contain details of the remote server. */
export const remoteError = (reason: RemoteFailure, message: string): McpError.McpError =>
  new McpError.McpError({ reason: "InternalError", message, data: { reason } })

/** The errors whose messages are for the model, if the request is a call of a tool. */
const visible = new WeakSet<McpError.McpError>()

/** Fails with the error of a function of the application, by the rules for errors of handlers. */
export const failVisibly = (error: HandlerError): Effect.Effect<never, McpError.McpError> => {
  if (McpError.isMcpError(error)) return Effect.fail(error)
  // The message of an unknown error is that of a defect.
  if (Cause.isUnknownError(error)) return Effect.die(error)
  const made = new McpError.McpError({ reason: "InternalError", message: error.message })
  visible.add(made)
  return Effect.fail(made)
}

/** Recovers a call of a tool from such an error: a model sees a result, and may not see a JSON-RPC error. */
export const toToolResult = (error: McpError.McpError): Effect.Effect<CallToolResult, McpError.McpError> =>
  visible.has(error)
    ? Effect.succeed({ content: [{ type: "text", text: error.message }], isError: true })
    : Effect.fail(error)

/** The name of the remote server in messages. */
export interface RemoteName {
  /** The option of the proxy, or else that of the client, once one was made. */
  label: string | undefined
}

/** The name of the remote server in messages. */
export const named = ({ label }: RemoteName): string =>
  label === undefined ? "the remote server" : `the remote server ${label}`

/** A text with a capital letter at its start. */
export const upper = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)

/** The error for a remote server that is not connected. */
export const unavailable = (name: RemoteName): McpError.McpError =>
  remoteError("RemoteUnavailable", `${upper(named(name))} is not available now. Try again later`)

/** The error for a connection that was lost after the request was sent. */
const lost = (name: RemoteName): McpError.McpError => {
  const message = `The connection to ${named(name)} was lost before it answered`
  return remoteError("RemoteUnavailable", `${message}. The request may have run: check before you send it again`)
}

/**
 * The error that the caller receives for the failure of a client. An error of the remote server stays as it is. The
 * messages of other failures may contain addresses and output of the remote server, so they are logged only.
 */
export const toMcpError = ({ cause, reason, undelivered }: ClientError, name: RemoteName): McpError.McpError => {
  const who = upper(named(name))
  switch (reason._tag) {
    case "ProtocolError":
      return reason.error
    case "Closed":
      return undelivered === true ? unavailable(name) : lost(name)
    case "ConnectionFailed":
    case "HttpError":
      return unavailable(name)
    case "Timeout":
      return remoteError("RemoteTimeout", `${who} did not answer in time`)
    case "Unauthorized":
      return remoteError("RemoteUnauthorized", `${who} denies access`)
    default:
      // An input request of a task that the caller did not answer.
      return cause instanceof InputError
        ? ofInputError(cause)
        : remoteError("RemoteFailed", `${who} gave an answer that cannot be passed on`)
  }
}
