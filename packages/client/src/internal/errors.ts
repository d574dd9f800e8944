/**
 * What the reason of a failure has, whichever reason it is.
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
