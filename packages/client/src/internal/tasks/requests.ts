/**
 * The requests about a task, in the form of the revision of the open connection.
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

/** A server that has created a task supports the requests about it, even if it does not declare them. */
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

/** The timeouts of a request: its own, and the remaining time of the task. */
const optionsOf = ({ timeout }: Asked, atMost?: number) => ({ timeout, maxTimeout: atMost })

const foreign = (id: string): ClientError =>
  new ClientError({
    reason: new InvalidResponse({
      message: `The server answered for another task than ${JSON.stringify(id.slice(0, 128))}`
    }),
    method: "tasks/get"
  })

/**
 * Requests the status of the task; fails with `TaskNotFound` if the server does not have it. All attempts together take
 * at most `atMost` milliseconds.
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

/** Asks the server to cancel the task; returns its status if the response contains it. */
export const cancel = (asked: Asked, atMost?: number): Effect.Effect<TaskStatus | undefined, ClientError> =>
  Effect.suspend(() => {
    const { client, handle: { taskId } } = asked
    const options = optionsOf(asked, atMost)
    return client.supervisor.last.isRequestEra
      ? Effect.as(client.call(cancelTask, { taskId }, options), undefined)
      : Effect.map(client.call(Method.LegacyCancelTask, { taskId }, options), bare)
  })

/** Sends answers to input requests (stateless revision). */
export const update = (asked: Asked, inputResponses: InputResponses): Effect.Effect<void, ClientError> => {
  const { client, handle: { taskId } } = asked
  return Effect.asVoid(client.call(updateTask, { taskId, inputResponses }, optionsOf(asked)))
}

/** Requests the result of a task that has ended (2025-11-25). */
export const payload = (asked: Asked, atMost?: number): Effect.Effect<JsonObject, ClientError> => {
  const { client, handle: { taskId } } = asked
  return client.call(getPayload, { taskId }, optionsOf(asked, atMost)) as Effect.Effect<JsonObject, ClientError>
}

/**
 * Requests the result on one connection without a time limit: "when the requestor encounters the `input_required`
 * status, it SHOULD preemptively call `tasks/result`". The server sends its input requests on that stream.
 */
export const blockedPayload = (
  { handle: { taskId } }: Asked,
  connection: NegotiatedConnection
): Effect.Effect<JsonObject, ClientError> =>
  send(connection, Method.LegacyGetTaskPayload.name, { taskId }, { timeout: Infinity, maxTimeout: Infinity })
