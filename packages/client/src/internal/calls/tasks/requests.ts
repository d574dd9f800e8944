/**
 * The requests about a task, in the form of the revision of the open connection.
 */
import type { InputResponses } from "@skein/protocol/InputRequired"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as Method from "@skein/protocol/Method"
import { quote } from "@skein/protocol/Text"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import { type ClientError, InvalidResponse } from "../../../ClientError.ts"
import type { Handle } from "../../../RemoteTask.ts"
import type { RequestOptions } from "../../base/callOptions.ts"
import { clientError } from "../../base/errors.ts"
import type { ClientContext } from "../context.ts"
import { send } from "../send.ts"
import { inLifecycle } from "../support.ts"
import type { TaskProgress } from "../taskRegistry.ts"
import type { NegotiatedConnection } from "../../connection/connection.ts"
import { isUnknown, taskNotFound } from "./failures.ts"
import { bare, type TaskStatus } from "./statusStream.ts"

/** The context in which a task is followed. */
export interface TaskContext {
  readonly client: ClientContext
  readonly handle: Handle
  /** When this client stops waiting, in milliseconds of the monotonic clock. */
  readonly deadline: number
  readonly leaveRunning: boolean
  /** The timeout of each request. */
  readonly timeout: Duration.Input | undefined
  /** The option of the call. */
  readonly roundedIntegers?: RequestOptions["roundedIntegers"]
  readonly reports: TaskProgress | undefined
  /** Whether its status must be requested before anything else. */
  readonly unseen: boolean
}

type Asked = Pick<TaskContext, "client" | "handle" | "timeout">

/**
 * Sends a request about a task. A server that has created a task supports these requests, even if it does not declare
 * them.
 */
const request = <P, R>(
  { client, timeout }: Asked,
  method: Method.RequestMethod<P, R>,
  params: P,
  maxTimeout?: number
): Effect.Effect<R, ClientError> => client.call({ ...method, capability: undefined }, params, { timeout, maxTimeout })

const foreign = (id: string): ClientError =>
  clientError(InvalidResponse, `The server returned the status of another task than ${quote(id)}`, "tasks/get")

/**
 * Requests the status of the task; fails with `TaskNotFound` if the server does not have it. All attempts together take
 * at most `atMost` milliseconds.
 */
export const look = (asked: Asked, atMost?: number): Effect.Effect<TaskStatus, ClientError> =>
  Effect.suspend(() => {
    const { client, handle: { taskId } } = asked
    const looked = inLifecycle<TaskStatus>(client.supervisor, (isStateless) =>
      isStateless
        ? request(asked, Method.GetTask, { taskId }, atMost)
        : Effect.map(request(asked, Method.LegacyGetTask, { taskId }, atMost), bare))
    return looked.pipe(
      Effect.filterOrFail((status) => status.taskId === taskId, () => foreign(taskId)),
      Effect.catchIf(isUnknown, (error) => Effect.fail(taskNotFound(taskId, "the server does not have it", error)))
    )
  })

/** Asks the server to cancel the task; returns its status if the response contains it. */
export const cancel = (asked: Asked, atMost?: number): Effect.Effect<TaskStatus | undefined, ClientError> => {
  const { client, handle: { taskId }, timeout } = asked
  return inLifecycle<TaskStatus | undefined>(client.supervisor, (isStateless) =>
    isStateless
      ? Effect.as(request(asked, Method.CancelTask, { taskId }, atMost), undefined)
      : Effect.map(client.call(Method.LegacyCancelTask, { taskId }, { timeout, maxTimeout: atMost }), bare))
}

/** Sends answers to input requests (stateless revision). */
export const update = (asked: Asked, inputResponses: InputResponses): Effect.Effect<void, ClientError> =>
  Effect.asVoid(request(asked, Method.UpdateTask, { taskId: asked.handle.taskId, inputResponses }))

/** Requests the result of a task that has ended (2025-11-25). */
export const payload = (asked: Asked, atMost?: number): Effect.Effect<JsonObject, ClientError> =>
  request(asked, Method.LegacyGetTaskPayload, { taskId: asked.handle.taskId }, atMost) as Effect.Effect<
    JsonObject,
    ClientError
  >

/**
 * Requests the result on one connection without a time limit: "when the requestor encounters the `input_required`
 * status, it SHOULD preemptively call `tasks/result`". The server sends its input requests on that stream.
 */
export const blockedPayload = (
  { handle: { taskId } }: Asked,
  connection: NegotiatedConnection
): Effect.Effect<JsonObject, ClientError> =>
  send(connection, Method.LegacyGetTaskPayload.name, { taskId }, { timeout: Infinity, maxTimeout: Infinity })
