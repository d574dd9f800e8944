/**
 * The tasks of 2025-11-25, in which the client makes a call a task: `tools/call` with `task`, `tasks/get`,
 * `tasks/result`, `tasks/list`, `tasks/cancel`, and the notifications of a session ("Tasks" in the utilities of the
 * specification).
 *
 * Delete this folder, and its one import in `Tasks.ts`, to drop the tasks of 2025-11-25.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import {
  type CreateTaskResult,
  type GetTaskResult,
  type ListTasksResult,
  related,
  withRelated
} from "@skein/protocol/LegacyTask"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import { Catalog } from "@skein/server/Catalog"
import type { ExtensionMethod, ToolCall, ToolCallResult } from "@skein/server/Extension"
import { method } from "@skein/server/Extension"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isFinal, type Owner, type State } from "../../TaskState.ts"
import { NotStarted } from "../protocol/beforeTask.ts"
import { taskPage } from "../protocol/taskPage.ts"
import { type TaskService, withMcpErrors } from "../protocol/taskService.ts"
import { resultOf, taskOf } from "../protocol/wire.ts"
import { legacyRevision, notifySession } from "./legacyNotifications.ts"
import { makeQuestions } from "./legacyQuestions.ts"

/** The `_meta` key for a text with which the model continues while the task runs. */
const immediateResponseKey = "io.modelcontextprotocol/model-immediate-response"

const declaredCapabilities = { cancel: {}, requests: { tools: { call: {} } } }

/** Makes the tasks of 2025-11-25 of one server. */
export const makeLegacyTasks = (tasks: TaskService["Service"]) => {
  const { catalog, engine, settings } = tasks
  const askQuestions = makeQuestions(tasks)

  /** "Tasks MUST begin in the `working` status when created", even one that has already ended. */
  const createResult = (state: State): CreateTaskResult => {
    const response = settings.immediateResponse?.(state)
    return {
      task: taskOf({ ...state, status: "working", isError: false, questions: [], outcome: undefined }),
      _meta: { ...related(state.id), ...(response === undefined ? undefined : { [immediateResponseKey]: response }) }
    }
  }

  /**
   * "It MUST block the response until the task reaches a terminal status." The end of the request does not change the
   * task. A task that expires before its end is then reported as unknown.
   */
  const result = (taskId: string, request: RequestContext): Effect.Effect<JsonObject, McpError.McpError> =>
    Effect.flatMap(tasks.find(taskId, request.caller), (state) =>
      isFinal(state)
        ? payloadOf(state)
        : Effect.andThen(Effect.scoped(waitForEnd(state, request)), result(taskId, request)))

  /** Waits for the end of a task, and asks its questions meanwhile. They are withdrawn before this ends. */
  const waitForEnd = (state: State, request: RequestContext) =>
    Effect.flatMap(
      askQuestions(state, request),
      (update) => withMcpErrors(Stream.runForEach(engine.watch(state.id), (state) => Effect.sync(() => update(state))))
    )

  /**
   * "For `tasks/list` requests, receivers MUST ensure the returned task list includes only tasks associated with the
   * requestor's authorization context."
   */
  const list = (cursor: string | undefined, caller: Caller): Effect.Effect<ListTasksResult, McpError.McpError> => {
    const owners = listableOwners(caller)
    if (owners.length === 0) return Effect.fail(McpError.methodNotFound(Method.LegacyListTasks.name))
    return Effect.map(taskPage(tasks, caller, owners, cursor), (page) => ({ ...page, tasks: page.tasks.map(taskOf) }))
  }

  /**
   * The owners whose tasks a caller may list. "Receivers that cannot identify requestors SHOULD NOT declare the
   * `tasks.list` capability": tasks without an owner are listed only with `list: "always"`.
   */
  const listableOwners = (caller: Caller): ReadonlyArray<Owner> => {
    if (settings.list === "never") return []
    const owners = tasks.ownersOf(caller)
    return settings.list === "always" ? [...owners, null] : owners
  }

  /** "MUST transition the task to `cancelled` status before sending the response." */
  const cancel = (taskId: string, caller: Caller): Effect.Effect<GetTaskResult, McpError.McpError> =>
    Effect.gen(function*() {
      const state = yield* tasks.find(taskId, caller)
      if (isFinal(state)) return yield* alreadyTerminal(state)
      const isCancelled = yield* withMcpErrors(engine.cancel(taskId, "The task was cancelled by request"))
      const ended = yield* tasks.find(taskId, caller)
      return isCancelled ? taskOf(ended) : yield* alreadyTerminal(ended)
    })

  const methods: ReadonlyArray<ExtensionMethod> = [
    method(Method.LegacyGetTask, ({ taskId }, { caller }) => Effect.map(tasks.find(taskId, caller), taskOf)),
    method(Method.LegacyGetTaskPayload, ({ taskId }, request) => result(taskId, request)),
    method(Method.LegacyListTasks, ({ cursor }, { caller }) => list(cursor, caller)),
    method(Method.LegacyCancelTask, ({ taskId }, { caller }) => cancel(taskId, caller))
  ]

  return {
    methods,
    capabilities: (caller: Caller): JsonObject | undefined =>
      caller.revision === legacyRevision
        ? { tasks: { ...(listableOwners(caller).length > 0 ? { list: {} } : undefined), ...declaredCapabilities } }
        : undefined,
    /** Handles a call with `task`; `undefined` for a call without. */
    call: (call: ToolCall): ToolCallResult | undefined => {
      const { params, request } = call
      const { task } = params
      // "Receivers that do not declare the task capability … MUST process requests of that type normally, ignoring any
      // task-augmentation metadata if present": older revisions do not declare it.
      if (request.caller.revision !== legacyRevision || task === undefined) return undefined
      const support = tasks.policyFor(call.tool)?.support ?? "forbidden"
      // "If `execution.taskSupport` is not present or `forbidden`, … servers SHOULD return a -32601 (Method not found)
      // error."
      if (support === "forbidden") {
        const message = `Method not found: ${call.params.name} does not support task-augmented calls`
        return Effect.fail(new McpError.McpError({ reason: "MethodNotFound", message }))
      }
      return Effect.flatMap(tasks.start(call, task.ttl), (started) =>
        // In this revision the response is a task or an error.
        started instanceof NotStarted
          ? Effect.fail(McpError.invalidParams(textOf(started.result) ?? `${params.name} was not started`))
          : Effect.as(
            Effect.provideService(notifySession(engine, started, request), Catalog, catalog),
            createResult(started)
          ))
    }
  }
}

const textOf = ({ content: [first] }: CallToolResult): string | undefined =>
  first?.type === "text" ? first.text : undefined

/**
 * "Receivers MUST reject cancellation requests for tasks already in a terminal status with error code -32602 (Invalid
 * params)."
 */
const alreadyTerminal = (state: State): Effect.Effect<never, McpError.McpError> =>
  Effect.fail(McpError.invalidParams(`Cannot cancel task: already in terminal status '${taskOf(state).status}'`))

/**
 * The error code for the result of a cancelled task: a cancelled request has neither a result nor an error of its own.
 * Other protocols on JSON-RPC use this code for cancelled requests. It is outside of the range that JSON-RPC reserves.
 */
const cancelledCode = -32800

/**
 * "Receivers MUST return from `tasks/result` exactly what the underlying request would have returned, whether that is a
 * successful result or a JSON-RPC error"; with the related task in its `_meta`.
 */
const payloadOf = (state: State): Effect.Effect<JsonObject, McpError.McpError> =>
  Effect.suspend(() => {
    const { id, outcome, statusMessage } = state
    if (outcome === undefined) {
      const detail = statusMessage === undefined ? "" : `: ${statusMessage}`
      return Effect.fail(McpError.other(cancelledCode, `The task was cancelled${detail}`))
    }
    if (outcome._tag === "Result") return Effect.succeed(withRelated(resultOf(state, legacyRevision), id))
    // The stored error keeps its own code; an error with a reason would get the code of its reason in this revision.
    const { error } = outcome
    return Effect.fail(McpError.other(error.code, error.message, error.data))
  })
