/**
 * What the failure of a request means to a host.
 */
import * as McpError from "@skein/protocol/McpError"
import { TransportError } from "@skein/runtime/Connection"
import type { RequestError } from "@skein/runtime/RequestError"
import type { SessionEnd } from "@skein/runtime/Session"
import { ClientError } from "../../ClientError.ts"
import { legible } from "../text.ts"

// How much of what a server says is in a message, in characters.
const maxSaid = 4_096

/** How a session ended, as the end of a sentence. */
export const endText = (end: SessionEnd | undefined): string => {
  switch (end?._tag) {
    case "Lost":
      return `: ${end.cause.message}`
    case "Refused":
      return `: ${legible(end.message, maxSaid)}`
    case "Ended":
      return ": the server ended it"
    case "Closed":
      return ": this side closed it"
    default:
      return ""
  }
}

/** The failure that a call of the runtime stands for. */
export const fromRequest = (method: string, error: McpError.McpError | RequestError): ClientError => {
  if (McpError.isMcpError(error)) {
    const message = `${method}: ${legible(error.message, maxSaid)}`
    return new ClientError({ reason: "Protocol", method, message, error, cause: error })
  }
  const { end, message, reason, undelivered } = error
  if (reason === "Closed") {
    const cause = end?._tag === "Lost" ? end.cause : error.cause ?? error
    return new ClientError({ reason, method, message: `${message}${endText(end)}`, end, undelivered, cause })
  }
  const cause = error.cause ?? error
  const status = cause instanceof TransportError ? cause.status : undefined
  return new ClientError({
    reason: status === 401 || status === 403 ? "Unauthorized" : reason,
    method,
    message,
    status,
    undelivered,
    cause
  })
}
