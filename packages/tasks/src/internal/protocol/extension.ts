/**
 * The extension `io.modelcontextprotocol/tasks` (2026-07-28): `tasks/get`, `tasks/update` and `tasks/cancel`.
 */
import { AnyObject, requestFields } from "@skein/protocol/Common"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as Task from "@skein/protocol/Task"
import type { RequestContext } from "@skein/runtime/RequestContext"
import type { ExtensionMethod } from "@skein/server/Extension"
import * as Extension from "@skein/server/Extension"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { State } from "../../TaskState.ts"
import { declares, undeclared } from "./call.ts"
import { type Face, told } from "./taskService.ts"
import * as wire from "./wire.ts"

/** What the server declares of it: "no extension-specific settings are currently defined". */
export const capabilities: JsonObject = { extensions: { [Task.extension]: {} } }

/**
 * The answers are not read by the model, which knows nothing of the questions: what comes under a key that is not open is to be
 * ignored, whatever it is, and what comes under one that is has to be an answer to that question.
 */
const UpdateTask: Method.RequestMethod<
  { readonly taskId: string; readonly inputResponses: JsonObject },
  Task.UpdateTaskResult
> = {
  ...Method.UpdateTask,
  params: Schema.Struct({ ...requestFields, taskId: Schema.String, inputResponses: AnyObject })
}

/** The methods of the extension. */
export const methods = (face: Face): ReadonlyArray<ExtensionMethod> => {
  /** "Servers MUST return this error for non-declaring clients issuing `tasks/get`, `tasks/update`, and `tasks/cancel`." */
  const find = ({ caller }: RequestContext, id: string): Effect.Effect<State, McpError.McpError> =>
    declares(caller.capabilities) ? face.find(id, caller) : undeclared

  return [
    Extension.method(
      Method.GetTask,
      ({ taskId }, exchange) => Effect.map(find(exchange, taskId), (state) => wire.detailed(state, exchange.caller))
    ),
    Extension.method(
      UpdateTask,
      ({ inputResponses, taskId }, exchange) =>
        Effect.flatMap(find(exchange, taskId), (state) => update(face, state, inputResponses, exchange))
    ),
    Extension.method(
      Method.CancelTask,
      ({ taskId }, exchange) =>
        Effect.flatMap(
          find(exchange, taskId),
          ({ id }) => Effect.as(told(face.engine.cancel(id, "The client has cancelled it")), {})
        )
    )
  ]
}

/** Every answer is looked at before the first one is given: of a request that is refused nothing has been done. */
const update = (
  { engine }: Face,
  state: State,
  given: JsonObject,
  { caller: { revision } }: RequestContext
): Effect.Effect<Task.UpdateTaskResult, McpError.McpError> =>
  Effect.suspend(() => {
    const answers: Array<readonly [key: string, answer: JsonObject]> = []
    for (const question of state.questions) {
      if (!Object.hasOwn(given, question.key)) continue
      const answer = wire.answer(state, question, revision, given[question.key])
      if (Result.isFailure(answer)) return Effect.fail(McpError.invalidParams(`Invalid params: ${answer.failure}`))
      answers.push([question.key, answer.success])
    }
    return Effect.as(
      told(Effect.forEach(answers, ([key, answer]) => engine.answer(state.id, key, answer), { discard: true })),
      {}
    )
  })
