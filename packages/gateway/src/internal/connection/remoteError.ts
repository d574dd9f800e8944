/**
 * The errors that callers receive for failures of a remote server.
 */
import type { ClientError } from "@skein/client/ClientError"
import * as McpError from "@skein/protocol/McpError"
import { InputError, toMcpError as ofInputError } from "@skein/server/InputError"

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
