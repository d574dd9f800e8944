/**
 * The extension `io.modelcontextprotocol/tasks` (2026-07-28): `tasks/get`, `tasks/update` and `tasks/cancel`, and
 * `notifications/tasks` through `subscriptions/listen` ("Task Status Notifications").
 */
import * as Codec from "@skein/protocol/Codec"
import { requestFields } from "@skein/protocol/Message"
import { AnyObject } from "@skein/protocol/Primitive"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type * as Task from "@skein/protocol/Task"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import type { Extension as ServerExtension, ExtensionMethod, Publish } from "@skein/server/Extension"
import * as Extension from "@skein/server/Extension"
import * as Logging from "@skein/server/Logging"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import type { State } from "../../TaskState.ts"
import { type TaskService, withMcpErrors } from "./taskService.ts"
import { declaresTasks, missingTasksCapability } from "./taskDecision.ts"
import * as wire from "./wire.ts"

/**
 * `tasks/update` with answers of any shape. The decoding of the params does not have the questions: an answer to a
 * question that is not open must be ignored, whatever it is, and an answer to an open question is validated against
 * that question.
 */
const UpdateTask: Method.RequestMethod<
  { readonly taskId: string; readonly inputResponses: JsonObject },
  Task.UpdateTaskResult
> = {
  ...Method.UpdateTask,
  params: Schema.Struct({ ...requestFields, taskId: Schema.String, inputResponses: AnyObject })
}

/** The methods of the extension. */
export const methods = (tasks: TaskService["Service"]): ReadonlyArray<ExtensionMethod> => {
  /**
   * "Servers MUST return this error for non-declaring clients issuing `tasks/get`, `tasks/update`, and `tasks/cancel`."
   */
  const find = ({ caller }: RequestContext, id: string): Effect.Effect<State, McpError.McpError> =>
    declaresTasks(caller.capabilities) ? tasks.find(id, caller) : missingTasksCapability

  return [
    Extension.method(
      Method.GetTask,
      ({ taskId }, request) => Effect.map(find(request, taskId), (state) => wire.toDetailedTask(state, request.caller))
    ),
    Extension.method(
      UpdateTask,
      ({ inputResponses, taskId }, request) =>
        Effect.flatMap(find(request, taskId), (state) => answerQuestions(tasks, state, inputResponses, request))
    ),
    Extension.method(
      Method.CancelTask,
      ({ taskId }, request) =>
        Effect.flatMap(
          find(request, taskId),
          ({ id }) => Effect.as(withMcpErrors(tasks.engine.cancel(id, "The client cancelled the task")), {})
        )
    )
  ]
}

/** Validates all answers before it gives the first one: a rejected request changes nothing. */
const answerQuestions = (
  { engine }: TaskService["Service"],
  state: State,
  inputResponses: JsonObject,
  { caller: { revision } }: RequestContext
): Effect.Effect<Task.UpdateTaskResult, McpError.McpError> =>
  Effect.suspend(() => {
    const answers: Array<readonly [key: string, answer: JsonObject]> = []
    for (const question of state.questions) {
      if (!Object.hasOwn(inputResponses, question.key)) continue
      const answer = wire.toStoredAnswer(state, question, revision, inputResponses[question.key])
      if (Result.isFailure(answer)) return Effect.fail(McpError.invalidParams(`Invalid params: ${answer.failure}`))
      answers.push([question.key, answer.success])
    }
    return Effect.as(
      withMcpErrors(
        Effect.forEach(answers, ([key, answer]) => engine.answer(state.id, key, answer), { discard: true })
      ),
      {}
    )
  })

/**
 * "Each notification carries a complete `DetailedTask` …, identical to what `tasks/get` would have returned at that
 * moment."
 */
const statusParams = (state: State, reader: Caller): JsonObject =>
  wire.encodedOrThrow(
    Codec.encodeParams(Method.TaskStatus, reader.revision, wire.toDetailedTask(state, reader)),
    `a task in ${reader.revision}`
  )

/** Publishes the current state of a task, and each later one until the task ends. */
const publishChanges = (
  tasks: TaskService["Service"],
  publish: Publish,
  reader: Caller,
  id: string
): Effect.Effect<void> =>
  tasks.watch(id, reader).pipe(
    Stream.runForEach((state) =>
      Effect.sync(() => publish(`task:${id}`, Method.TaskStatus.name, statusParams(state, reader)))
    ),
    Effect.catchCause((cause) =>
      Logging.withheld(Effect.logWarning("stopped sending the status notifications of a task", cause))
    )
  )

/** The part of `subscriptions/listen` that names tasks. */
export const subscribe =
  (tasks: TaskService["Service"], maxWatchedTasks: number): NonNullable<ServerExtension["listen"]> =>
  ({ taskIds }, { caller }) => {
    if (taskIds === undefined) return Effect.undefined
    if (!declaresTasks(caller.capabilities)) return missingTasksCapability
    // Ids beyond the limit are not read; the acknowledgement lists the watched tasks.
    const requested = [...new Set(taskIds as ReadonlyArray<string>)].slice(0, maxWatchedTasks)
    const found = Effect.filter(
      requested,
      (id) =>
        Effect.map(withMcpErrors(tasks.engine.get(id)), (state) => state !== undefined && tasks.canSee(caller, state))
    )
    return Effect.map(found, (ids) => ({
      agreed: { taskIds: ids },
      run: (publish) =>
        Effect.forEach(ids, (id) => publishChanges(tasks, publish, caller, id), {
          concurrency: "unbounded",
          discard: true
        })
    }))
  }
