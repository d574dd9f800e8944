/**
 * The tasks of 2025-11-25, in which the client makes a call a task: `tools/call` with `task`, `tasks/get`,
 * `tasks/result`, `tasks/list`, `tasks/cancel`, and the notifications of a session ("Tasks" in the utilities of the
 * specification).
 *
 * Delete this folder, and its one import in `Tasks.ts`, to drop the tasks of 2025-11-25.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { type CreateTaskResult, type GetTaskResult, type ListTasksResult, related } from "@skein/protocol/LegacyTask"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import { Catalog } from "@skein/server/Catalog"
import type { Extension, ToolCall, ToolCallResult } from "@skein/server/Extension"
import { method } from "@skein/server/Extension"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { isFinal, type Owner, type State } from "../../TaskState.ts"
import { NotStarted } from "../protocol/beforeTask.ts"
import { taskPage } from "../protocol/taskPage.ts"
import { type TaskService, withMcpErrors } from "../protocol/taskService.ts"
import { taskOf } from "../protocol/wire.ts"
import { notifySession } from "./legacyNotifications.ts"
import { LegacyQuestions } from "./legacyQuestions.ts"
import { legacyRevision, payloadOf } from "./legacyWire.ts"

/** The `_meta` key for a text with which the model continues while the task runs. */
const immediateResponseKey = "io.modelcontextprotocol/model-immediate-response"

const declaredCapabilities = { cancel: {}, requests: { tools: { call: {} } } }

/** The tasks of 2025-11-25 of one server. */
export class LegacyTasks implements Pick<Extension, "capabilities" | "methods"> {
  readonly #tasks: TaskService["Service"]
  readonly #questions: LegacyQuestions
  readonly methods: Extension["methods"]

  constructor(tasks: TaskService["Service"]) {
    this.#tasks = tasks
    this.#questions = new LegacyQuestions(tasks.engine)
    this.methods = [
      method(Method.LegacyGetTask, ({ taskId }, { caller }) => Effect.map(tasks.find(taskId, caller), taskOf)),
      method(Method.LegacyGetTaskPayload, ({ taskId }, request) => this.#result(taskId, request)),
      method(Method.LegacyListTasks, ({ cursor }, { caller }) => this.#list(cursor, caller)),
      method(Method.LegacyCancelTask, ({ taskId }, { caller }) => this.#cancel(taskId, caller))
    ]
  }

  capabilities = (caller: Caller): JsonObject | undefined =>
    caller.revision === legacyRevision
      ? { tasks: { ...(this.#listableOwners(caller).length > 0 ? { list: {} } : undefined), ...declaredCapabilities } }
      : undefined

  /** Handles a call with `task`; `undefined` for a call without. */
  call(call: ToolCall): ToolCallResult | undefined {
    const { params, request } = call
    const { task } = params
    // "Receivers that do not declare the task capability … MUST process requests of that type normally, ignoring any
    // task-augmentation metadata if present": older revisions do not declare it.
    if (request.caller.revision !== legacyRevision || task === undefined) return undefined
    const support = this.#tasks.policyFor(call.tool)?.support ?? "forbidden"
    // "If `execution.taskSupport` is not present or `forbidden`, … servers SHOULD return a -32601 (Method not found)
    // error."
    if (support === "forbidden") {
      const message = `Method not found: ${call.params.name} does not support task-augmented calls`
      return Effect.fail(new McpError.McpError({ reason: "MethodNotFound", message }))
    }
    return Effect.flatMap(this.#tasks.start(call, task.ttl), (started) =>
      // In this revision the response is a task or an error.
      started instanceof NotStarted
        ? Effect.fail(McpError.invalidParams(textOf(started.result) ?? `${params.name} was not started`))
        : Effect.as(this.#notify(started, request), this.#createResult(started)))
  }

  /** "Tasks MUST begin in the `working` status when created", even one that has already ended. */
  #createResult(state: State): CreateTaskResult {
    const response = this.#tasks.settings.immediateResponse?.(state)
    return {
      task: taskOf({ ...state, status: "working", isError: false, questions: [], outcome: undefined }),
      _meta: { ...related(state.id), ...(response === undefined ? undefined : { [immediateResponseKey]: response }) }
    }
  }

  #notify(state: State, request: RequestContext): Effect.Effect<void> {
    return Effect.provideService(notifySession(this.#tasks.engine, state, request), Catalog, this.#tasks.catalog)
  }

  /**
   * "It MUST block the response until the task reaches a terminal status." The end of the request does not change the
   * task. A task that expires before its end is then reported as unknown.
   */
  #result(taskId: string, request: RequestContext): Effect.Effect<JsonObject, McpError.McpError> {
    return Effect.flatMap(this.#tasks.find(taskId, request.caller), (state) =>
      isFinal(state)
        ? payloadOf(state)
        : Effect.andThen(Effect.scoped(this.#waitForEnd(state, request)), this.#result(taskId, request)))
  }

  /** Waits for the end of a task, and asks its questions meanwhile. They are withdrawn before this ends. */
  #waitForEnd(state: State, request: RequestContext) {
    return Effect.flatMap(this.#questions.add(state, request), (update) =>
      withMcpErrors(Stream.runForEach(
        this.#tasks.engine.watch(state.id),
        (state) => Effect.sync(() => update(state))
      )))
  }

  /**
   * "For `tasks/list` requests, receivers MUST ensure the returned task list includes only tasks associated with the
   * requestor's authorization context."
   */
  #list(cursor: string | undefined, caller: Caller): Effect.Effect<ListTasksResult, McpError.McpError> {
    const owners = this.#listableOwners(caller)
    if (owners.length === 0) return Effect.fail(McpError.methodNotFound(Method.LegacyListTasks.name))
    return Effect.map(
      taskPage(this.#tasks, caller, owners, cursor),
      ({ nextCursor, tasks }) => ({
        tasks: tasks.map(taskOf),
        ...(nextCursor === undefined ? undefined : { nextCursor })
      })
    )
  }

  /**
   * The owners whose tasks a caller may list. "Receivers that cannot identify requestors SHOULD NOT declare the
   * `tasks.list` capability": tasks without an owner are listed only with `list: "always"`.
   */
  #listableOwners(caller: Caller): ReadonlyArray<Owner> {
    const { list } = this.#tasks.settings
    if (list === "never") return []
    const owners = this.#tasks.ownersOf(caller)
    return list === "always" ? [...owners, null] : owners
  }

  /** "MUST transition the task to `cancelled` status before sending the response." */
  #cancel(taskId: string, caller: Caller): Effect.Effect<GetTaskResult, McpError.McpError> {
    return Effect.flatMap(this.#tasks.find(taskId, caller), (state) => {
      if (isFinal(state)) return alreadyTerminal(state)
      return Effect.flatMap(
        withMcpErrors(this.#tasks.engine.cancel(taskId, cancelledByRequest)),
        (cancelled) =>
          Effect.flatMap(
            this.#tasks.find(taskId, caller),
            (state) => cancelled ? Effect.succeed(taskOf(state)) : alreadyTerminal(state)
          )
      )
    })
  }
}

const textOf = ({ content: [first] }: CallToolResult): string | undefined =>
  first?.type === "text" ? first.text : undefined

const cancelledByRequest = "The task was cancelled by request"

/**
 * "Receivers MUST reject cancellation requests for tasks already in a terminal status with error code -32602 (Invalid
 * params)."
 */
const alreadyTerminal = (state: State): Effect.Effect<never, McpError.McpError> =>
  Effect.fail(McpError.invalidParams(`Cannot cancel task: already in terminal status '${taskOf(state).status}'`))
