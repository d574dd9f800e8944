/**
 * Reading a failure: the members of its reason, and whether another attempt may succeed.
 */
import type * as McpError from "@skein/protocol/McpError"
import type { SessionEnd } from "@skein/runtime/Session"
import type { ClientError } from "../ClientError.ts"

/** The error that the server answered with, if the failure is one. */
export const serverErrorOf = ({ reason }: ClientError): McpError.McpError | undefined =>
  reason._tag === "ProtocolError" || reason._tag === "NegotiationFailed" ? reason.error : undefined

/** How the connection ended, if the failure is the end of it. */
export const endOf = ({ reason }: ClientError): SessionEnd | undefined =>
  reason._tag === "Closed" ? reason.end : undefined

/** The HTTP status of the response that the failure is, if it is one. */
export const statusOf = ({ reason }: ClientError): number | undefined =>
  reason._tag === "HttpError" || reason._tag === "Unauthorized" ? reason.status : undefined

/** HTTP statuses below 500 of requests that were too slow, too early or too many. */
const transientStatuses: ReadonlySet<number> = new Set([408, 425, 429])

/** Whether the same request may be answered otherwise later, by the HTTP status of its response. */
const isTransientStatus = (status: number): boolean => status >= 500 || transientStatuses.has(status)

/**
 * Whether another attempt may succeed: no response came, nothing looked at the request, or the server or a gateway
 * could not answer now. This does not say that another attempt is harmless.
 */
export const isTransient = ({ reason, undelivered }: ClientError): boolean => {
  switch (reason._tag) {
    case "Closed":
    case "Timeout":
      return true
    case "HttpError":
      return undelivered === true || reason.status === undefined || isTransientStatus(reason.status)
    case "ProtocolError":
      return reason.error.reason === "InternalError"
    default:
      return false
  }
}
