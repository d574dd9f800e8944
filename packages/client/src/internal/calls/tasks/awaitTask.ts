/**
 * The layer that awaits the result of a call which the server answered with a task. The module that follows tasks is
 * loaded with the first task: most clients never have one.
 */
import type { CallToolRequestParams, CallToolResult } from "@skein/protocol/CallTool"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import { type ClientError, InvalidResponse } from "../../../ClientError.ts"
import { clientError } from "../../base/errors.ts"
import type { CallLayer, ClientContext } from "../context.ts"
import { onResponse } from "../onResponse.ts"
import type { CreatedTask } from "../taskRegistry.ts"

/** The module that follows tasks. */
export const taskClient = Effect.promise(() => import("./taskClient.ts"))

/** Follows a task to the result of the call. */
const finish = (client: ClientContext, created: CreatedTask): Effect.Effect<CallToolResult, ClientError> =>
  // From here on there is a task, which an interruption must not lose.
  Effect.uninterruptibleMask((restore) => Effect.flatMap(taskClient, ({ finish }) => finish(client, created, restore)))

/** Awaits the result of the task that a call was answered with, or passes the task to the option `handleTask`. */
export const awaitTask: CallLayer = onResponse(({ client, deadline, method: { name }, options, params }, response) => {
  const { answer, augmented, connection } = response
  if (answer?._tag !== "Task" && answer?._tag !== "LegacyTask") return undefined
  // A server "MUST NOT return `CreateTaskResult`" to a client that did not declare the extension. In 2025-11-25 it must
  // not do so unless the client requested a task.
  const isExpected = answer._tag === "LegacyTask" ? augmented !== undefined : client.tasks.enabled
  if (name !== Method.CallTool.name || !isExpected) {
    const message = `The server answered ${name} with a task, which was not requested`
    return Effect.fail(clientError(InvalidResponse, message, name))
  }
  const seed = answer._tag === "Task" ? answer.result : answer.result.task
  const { name: tool } = params as CallToolRequestParams
  const created = { seed, connection, tool, options, deadline, reports: augmented?.reports }
  const handled: Effect.Effect<unknown, ClientError> = options.handleTask?.(created) ?? finish(client, created)
  return Effect.map(handled, (result) => {
    response.result = result
    return response
  })
})
