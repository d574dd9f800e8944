/**
 * The requests that are made about a task, in either shape: that of the line which is open.
 */
import type { InputResponses } from "@skein/protocol/InputRequired"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import { ClientError, InvalidResponse } from "../../ClientError.ts"
import { send } from "../calls/send.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import { isUnknown, taskNotFound } from "./failures.ts"
import { bare, type TaskStatus } from "./statusStream.ts"
import type { TaskContext } from "./policy.ts"

/** A server that has made a task has what it takes to ask for it, whatever it declares. */
const undeclared = <P, R>(method: Method.RequestMethod<P, R>): Method.RequestMethod<P, R> => {
  const { capability: _, ...rest } = method
  return rest
}

const getTask = undeclared(Method.GetTask)
const legacyGetTask = undeclared(Method.LegacyGetTask)
const updateTask = undeclared(Method.UpdateTask)
const cancelTask = undeclared(Method.CancelTask)
const getPayload = undeclared(Method.LegacyGetTaskPayload)

type Asked = Pick<TaskContext, "client" | "handle" | "timeout">

/** What a request may take: its own time, and what the whole has left. */
const optionsOf = ({ timeout }: Asked, atMost?: number) => ({ timeout, maxTimeout: atMost })

const foreign = (id: string): ClientError =>
  new ClientError({
    reason: new InvalidResponse({
      message: `The server answered for another task than ${JSON.stringify(id.slice(0, 128))}`
    }),
    method: "tasks/get"
  })

/**
 * Looks how the task stands; `TaskNotFound` where the server does not know it. `atMost` milliseconds, however often it
 * is tried.
 */
export const look = (asked: Asked, atMost?: number): Effect.Effect<TaskStatus, ClientError> =>
  Effect.suspend(() => {
    const { client, handle: { taskId } } = asked
    const options = optionsOf(asked, atMost)
    const looked: Effect.Effect<TaskStatus, ClientError> = client.supervisor.last.isRequestEra
      ? client.call(getTask, { taskId }, options)
      : Effect.map(client.call(legacyGetTask, { taskId }, options), bare)
    return looked.pipe(
      Effect.filterOrFail((told) => told.taskId === taskId, () => foreign(taskId)),
      Effect.catchIf(isUnknown, (error) => Effect.fail(taskNotFound(taskId, "the server does not know it", error)))
    )
  })

/** Asks the server to cancel it; gives how it stands where the server says so. */
export const cancel = (asked: Asked, atMost?: number): Effect.Effect<TaskStatus | undefined, ClientError> =>
  Effect.suspend(() => {
    const { client, handle: { taskId } } = asked
    const options = optionsOf(asked, atMost)
    return client.supervisor.last.isRequestEra
      ? Effect.as(client.call(cancelTask, { taskId }, options), undefined)
      : Effect.map(client.call(Method.LegacyCancelTask, { taskId }, options), bare)
  })

/** Answers some of its questions, in the request era. */
export const update = (asked: Asked, inputResponses: InputResponses): Effect.Effect<void, ClientError> => {
  const { client, handle: { taskId } } = asked
  return Effect.asVoid(client.call(updateTask, { taskId, inputResponses }, optionsOf(asked)))
}

/** Asks for its result when it is over, in 2025-11-25. */
export const payload = (asked: Asked, atMost?: number): Effect.Effect<JsonObject, ClientError> => {
  const { client, handle: { taskId } } = asked
  return client.call(getPayload, { taskId }, optionsOf(asked, atMost)) as Effect.Effect<JsonObject, ClientError>
}

/**
 * The same, on one line, for as long as it takes: "when the requestor encounters the `input_required` status, it SHOULD
 * preemptively call `tasks/result`", and is asked then.
 */
export const blockedPayload = (
  { handle: { taskId } }: Asked,
  connection: NegotiatedConnection
): Effect.Effect<JsonObject, ClientError> =>
  send(connection, Method.LegacyGetTaskPayload.name, { taskId }, { timeout: Infinity, maxTimeout: Infinity })
