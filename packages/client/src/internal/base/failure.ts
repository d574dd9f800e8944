/**
 * Converts the failure of a request to a `ClientError`.
 */
import { isObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import { printableLines } from "@skein/protocol/Text"
import type { TransportError } from "@skein/runtime/TransportError"
import type { RequestError } from "@skein/runtime/RequestError"
import type { SessionEnd } from "@skein/runtime/Session"
import {
  ClientError,
  Closed,
  HttpError,
  InvalidResponse,
  LimitExceeded,
  ProtocolError,
  type Reason,
  Timeout,
  Unauthorized,
  Unsupported
} from "../../ClientError.ts"

// How many characters of a server's message an error message contains.
const maxMessage = 4_096

/** The message of a server, as a part of an error message. */
export const quotedMessage = (message: string): string => printableLines(message, maxMessage)

/** How a session ended, as the end of a sentence. */
export const endText = (end: SessionEnd | undefined): string => {
  switch (end?._tag) {
    case "Lost":
      return `: ${end.cause.message}`
    case "Refused":
      return `: ${quotedMessage(end.message)}`
    case "ClosedByPeer":
      return ": the server ended it"
    case "ClosedByUs":
      return ": this client closed it"
    default:
      return ""
  }
}

/** The URI that the server has no resource for, unless its message has it. */
const missingResource = ({ data, message, reason }: McpError.McpError): string => {
  const uri = reason === "ResourceNotFound" && isObject(data) ? data["uri"] : undefined
  return typeof uri !== "string" || message.includes(uri) ? "" : `: ${quotedMessage(uri)}`
}

/** The `ClientError` for the failure of a request. */
export const fromRequest = (method: string, error: McpError.McpError | RequestError): ClientError => {
  if (McpError.isMcpError(error)) {
    const message = `${method}: ${quotedMessage(error.message)}${missingResource(error)}`
    return new ClientError({ reason: new ProtocolError({ message, error, cause: error }), method })
  }
  const { undelivered } = error
  return new ClientError({ reason: reasonOf(error, method), method, undelivered })
}

// The reasons that have a message and a cause alone.
const plainReasons = { InvalidResponse, LimitExceeded, Timeout }

const reasonOf = (error: RequestError, method: string): Reason => {
  const { message, reason } = error
  switch (reason._tag) {
    case "Closed": {
      const { end } = reason
      const cause = end?._tag === "Lost" ? end.cause : reason.cause ?? error
      const advice = method === "initialize" && end?._tag === "ClosedByPeer"
        ? ". A module that only exports a server needs skein run, or runStdio()"
        : ""
      return new Closed({ message: `${message}${endText(end)}${advice}`, end, cause })
    }
    case "MessageRejected":
      return fromRejection(reason.cause)
    case "Unsupported":
      return new Unsupported({ message, cause: reason.cause ?? error })
    default:
      return new plainReasons[reason._tag]({ message, cause: error })
  }
}

/** The reason for a message that the other side's transport rejected. */
export const fromRejection = (cause: TransportError): HttpError | Unauthorized => {
  const { message, status } = cause
  return status === 401 || status === 403
    // The cause of a refusal is the failure of the credentials.
    ? new Unauthorized({ message, status, cause: cause.cause ?? cause })
    : new HttpError({ message, status, cause })
}
