/**
 * The failures of a task.
 */
import { clientError, isTransient, serverErrorOf } from "../../base/errors.ts"
import * as Method from "@skein/protocol/Method"
import { printableLines } from "@skein/protocol/Text"
import { ClientError, Closed, TaskCancelled, type TaskHandle, TaskNotFound, Timeout } from "../../../ClientError.ts"

const method = Method.CallTool.name

const failure = (
  Reason: typeof Closed | typeof TaskCancelled | typeof Timeout,
  id: string,
  what: string
): ClientError => clientError(Reason, `The task ${printableLines(id, 128)} ${what}`, method)

/** The server does not have the task. */
export const taskNotFound = (id: string, why: string, cause?: ClientError): ClientError =>
  clientError(TaskNotFound, `The task ${printableLines(id, 128)} does not exist: ${why}`, method, cause)

/** The task was cancelled. */
export const taskCancelled = (id: string, statusMessage: string | undefined, byClient: boolean): ClientError => {
  const why = statusMessage === undefined ? "" : `: ${printableLines(statusMessage, 1_024)}`
  return failure(TaskCancelled, id, `was cancelled ${byClient ? "by this client" : "at the server"}${why}`)
}

/** The task took too long. */
export const taskTimedOut = (id: string): ClientError => failure(Timeout, id, "did not end within maxTimeout")

/** The client has ended. */
export const clientClosed = (id: string): ClientError =>
  failure(Closed, id, "is no longer followed: the client has ended")

/** The same failure, with the handle of the task. */
export const withHandle = (error: ClientError, task: TaskHandle): ClientError => new ClientError({ ...error, task })

/** Whether another poll may succeed. */
export const mayPollAgain = (error: ClientError): boolean => isTransient(error) || error.reason._tag === "LimitExceeded"

/** "Invalid or nonexistent `taskId`: `-32602` (Invalid params)". */
export const isUnknown = (error: ClientError): boolean => {
  const reason = serverErrorOf(error)?.reason
  return reason === "InvalidParams" || reason === "ResourceNotFound"
}
