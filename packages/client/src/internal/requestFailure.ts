/**
 * What the failure of a request means to a host.
 */
import * as McpError from "@skein/protocol/McpError"
import type { RequestError } from "@skein/runtime/RequestError"
import type { SessionEnd } from "@skein/runtime/Session"
import { ClientError } from "../ClientError.ts"

const endText = (end: SessionEnd | undefined): string => {
  switch (end?._tag) {
    case "Lost":
      return `: ${end.cause.message}`
    case "Refused":
      return `: ${end.message}`
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
    return new ClientError({ reason: "Protocol", method, message: `${method}: ${error.message}`, error, cause: error })
  }
  if (error.reason !== "Closed") {
    return new ClientError({ reason: error.reason, method, message: error.message, cause: error.cause ?? error })
  }
  const { end } = error
  const cause = end?._tag === "Lost" ? end.cause : error
  return new ClientError({ reason: "Closed", method, message: `${error.message}${endText(end)}`, end, cause })
}
