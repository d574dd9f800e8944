/**
 * Why a task does not give its result.
 */
import * as Method from "@skein/protocol/Method"
import { ClientError } from "../../ClientError.ts"
import { legible } from "../text.ts"
import type { Handle } from "./handle.ts"

const method = Method.CallTool.name

/** The task is not there. */
export const gone = (id: string, why: string, cause?: ClientError): ClientError =>
  new ClientError({ reason: "Gone", method, message: `The task ${legible(id, 128)} is gone: ${why}`, cause })

/** It was cancelled. */
export const cancelled = (id: string, said: string | undefined, byUs: boolean): ClientError => {
  const who = byUs ? "as this client asked" : "and not by this client"
  const why = said === undefined ? "" : `: ${legible(said, 1_024)}`
  return new ClientError({
    reason: "Cancelled",
    method,
    message: `The task ${legible(id, 128)} was cancelled, ${who}${why}`
  })
}

/** It took too long. */
export const late = (id: string): ClientError =>
  new ClientError({
    reason: "TimedOut",
    method,
    message: `The task ${legible(id, 128)} was not over in time (maxTimeout)`
  })

/** The client has ended. */
export const closed = (id: string): ClientError =>
  new ClientError({
    reason: "Closed",
    method,
    message: `The task ${legible(id, 128)} is not followed any more: the client has ended`
  })

/** The same failure, with what the task is found again by. */
export const withHandle = (error: ClientError, task: Handle): ClientError =>
  new ClientError({ ...error, cause: error.cause, message: error.message, task })

/** Statuses of HTTP after which it may go better another time, besides those from 500 on. */
const passing: ReadonlySet<number> = new Set([408, 425, 429])

/** Whether a look may fare better another time. */
export const mayPass = ({ error, reason, status, undelivered }: ClientError): boolean => {
  switch (reason) {
    case "Closed":
    case "TimedOut":
    case "Limit":
      return true
    case "Refused":
      return undelivered === true || status === undefined || status >= 500 || passing.has(status)
    case "Protocol":
      return error?.reason === "InternalError"
    default:
      return false
  }
}

/** "Invalid or nonexistent `taskId`: `-32602` (Invalid params)". */
export const isUnknown = ({ error }: ClientError): boolean =>
  error?.reason === "InvalidParams" || error?.reason === "ResourceNotFound"
