/**
 * The failures of a task.
 */
import { isTransient, serverErrorOf } from "../errors.ts"
import * as Method from "@skein/protocol/Method"
import { printableLines } from "@skein/protocol/Text"
import { ClientError, Closed, TaskCancelled, type TaskHandle, TaskNotFound, Timeout } from "../../ClientError.ts"

const method = Method.CallTool.name

/** The server does not have the task. */
export const taskNotFound = (id: string, why: string, cause?: ClientError): ClientError =>
  new ClientError({
    reason: new TaskNotFound({ message: `The task ${printableLines(id, 128)} is gone: ${why}`, cause }),
    method
  })

/** The task was cancelled. */
export const taskCancelled = (id: string, said: string | undefined, byUs: boolean): ClientError => {
  const who = byUs ? "as this client asked" : "and not by this client"
  const why = said === undefined ? "" : `: ${printableLines(said, 1_024)}`
  return new ClientError({
    reason: new TaskCancelled({ message: `The task ${printableLines(id, 128)} was cancelled, ${who}${why}` }),
    method
  })
}

/** The task took too long. */
export const taskTimedOut = (id: string): ClientError =>
  new ClientError({
    reason: new Timeout({ message: `The task ${printableLines(id, 128)} was not over in time (maxTimeout)` }),
    method
  })

/** The client has ended. */
export const clientClosed = (id: string): ClientError =>
  new ClientError({
    reason: new Closed({
      message: `The task ${printableLines(id, 128)} is not followed any more: the client has ended`
    }),
    method
  })

/** The same failure, with the handle of the task. */
export const withHandle = (error: ClientError, task: TaskHandle): ClientError => new ClientError({ ...error, task })

/** Whether another poll may succeed. */
export const mayLookAgain = (error: ClientError): boolean => isTransient(error) || error.reason._tag === "LimitExceeded"

/** "Invalid or nonexistent `taskId`: `-32602` (Invalid params)". */
export const isUnknown = (error: ClientError): boolean => {
  const reason = serverErrorOf(error)?.reason
  return reason === "InvalidParams" || reason === "ResourceNotFound"
}
