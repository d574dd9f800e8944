/**
 * The tasks of 2025-11-25, where it is the client that makes a call a task. "Tasks" of the specification's utilities, as a server
 * receives them: `tools/call` with `task`, `tasks/get`, `tasks/result`, `tasks/list`, `tasks/cancel`, and what a session hears.
 */
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
import { isFinal, type Owner, type State } from "../../../TaskState.ts"
import { type Face, told } from "../taskService.ts"
import { Desks } from "./legacyQuestions.ts"
import { follow } from "./legacyNotifications.ts"
import { answerOf, revision, taskOf } from "./legacyWire.ts"
import { page } from "../pages.ts"

/** What the key means stands in the specification: a text for the model to go on with, while the task runs. */
const immediate = "io.modelcontextprotocol/model-immediate-response"

const declared = { cancel: {}, requests: { tools: { call: {} } } }

/** The tasks of 2025-11-25, of one server. */
export class Legacy implements Pick<Extension, "capabilities" | "methods"> {
  readonly #face: Face
  readonly #desks: Desks
  readonly methods: Extension["methods"]

  constructor(face: Face) {
    this.#face = face
    this.#desks = new Desks(face.engine)
    this.methods = [
      method(Method.LegacyGetTask, ({ taskId }, { caller }) => Effect.map(face.find(taskId, caller), taskOf)),
      method(Method.LegacyGetTaskPayload, ({ taskId }, exchange) => this.#result(taskId, exchange)),
      method(Method.LegacyListTasks, ({ cursor }, { caller }) => this.#list(cursor, caller)),
      method(Method.LegacyCancelTask, ({ taskId }, { caller }) => this.#cancel(taskId, caller))
    ]
  }

  capabilities = (caller: Caller): JsonObject | undefined =>
    caller.revision === revision
      ? { tasks: { ...(this.#owners(caller).length > 0 ? { list: {} } : undefined), ...declared } }
      : undefined

  /** A call with `task`, or `undefined` for one without. */
  call(call: ToolCall): ToolCallResult | undefined {
    const { request: exchange, params } = call
    const { task } = params
    // "Receivers that do not declare the task capability … MUST process requests of that type normally, ignoring any
    // task-augmentation metadata if present": older revisions have none.
    if (exchange.caller.revision !== revision || task === undefined) return undefined
    return this.#begin(call, task.ttl)
  }

  #begin(call: ToolCall, ttl: number | undefined): ToolCallResult {
    const support = this.#face.held(call.tool)?.support ?? "forbidden"
    // "If `execution.taskSupport` is not present or `forbidden`, … servers SHOULD return a -32601 (Method not found) error."
    if (support === "forbidden") {
      const message = `Method not found: ${call.params.name} cannot be called as a task`
      return Effect.fail(new McpError.McpError({ reason: "MethodNotFound", message }))
    }
    return Effect.flatMap(
      this.#face.begin(call, ttl),
      (state) => Effect.as(this.#follow(state, call.request), this.#created(state))
    )
  }

  /** "Tasks MUST begin in the `working` status when created", however fast they are. */
  #created(state: State): CreateTaskResult {
    const said = this.#face.settings.immediateResponse?.(state)
    return {
      task: taskOf({ ...state, status: "working", isError: false, questions: [], outcome: undefined }),
      _meta: { ...related(state.id), ...(said === undefined ? undefined : { [immediate]: said }) }
    }
  }

  #follow(state: State, exchange: RequestContext): Effect.Effect<void> {
    return Effect.provideService(follow(this.#face.engine, state, exchange), Catalog, this.#face.catalog)
  }

  /**
   * "It MUST block the response until the task reaches a terminal status." Who stops waiting leaves the task as it is. A task that
   * is gone before its end, because its time is over, is as unknown as any other then.
   */
  #result(taskId: string, exchange: RequestContext): Effect.Effect<JsonObject, McpError.McpError> {
    return Effect.flatMap(this.#face.find(taskId, exchange.caller), (state) =>
      isFinal(state)
        ? answerOf(state)
        : Effect.andThen(Effect.scoped(this.#wait(state, exchange)), this.#result(taskId, exchange)))
  }

  /** Waits for the end of a task, and has its questions asked meanwhile. They are withdrawn before this ends. */
  #wait(state: State, exchange: RequestContext) {
    return Effect.flatMap(this.#desks.join(state, exchange), (see) =>
      told(Stream.runForEach(
        this.#face.engine.watch(state.id),
        (state) => Effect.sync(() => see(state))
      )))
  }

  /**
   * "For `tasks/list` requests, receivers MUST ensure the returned task list includes only tasks associated with the requestor's
   * authorization context."
   */
  #list(cursor: string | undefined, caller: Caller): Effect.Effect<ListTasksResult, McpError.McpError> {
    const owners = this.#owners(caller)
    if (owners.length === 0) return Effect.fail(McpError.methodNotFound(Method.LegacyListTasks.name))
    return Effect.map(
      page(this.#face, caller, owners, cursor),
      ({ nextCursor, tasks }) => ({
        tasks: tasks.map(taskOf),
        ...(nextCursor === undefined ? undefined : { nextCursor })
      })
    )
  }

  /**
   * Whose tasks a caller may list. "Receivers that cannot identify requestors SHOULD NOT declare the `tasks.list` capability":
   * tasks of nobody are in a list only where the host says so.
   */
  #owners(caller: Caller): ReadonlyArray<Owner> {
    const { list } = this.#face.settings
    if (list === "never") return []
    const owners = this.#face.owners(caller)
    return list === "always" ? [...owners, null] : owners
  }

  /** "MUST transition the task to `cancelled` status before sending the response." */
  #cancel(taskId: string, caller: Caller): Effect.Effect<GetTaskResult, McpError.McpError> {
    return Effect.flatMap(this.#face.find(taskId, caller), (state) => {
      if (isFinal(state)) return over(state)
      return Effect.flatMap(
        told(this.#face.engine.cancel(taskId, byRequest)),
        (cancelled) =>
          Effect.flatMap(
            this.#face.find(taskId, caller),
            (state) => cancelled ? Effect.succeed(taskOf(state)) : over(state)
          )
      )
    })
  }
}

const byRequest = "The task was cancelled by request"

/** "Receivers MUST reject cancellation requests for tasks already in a terminal status with error code -32602 (Invalid params)." */
const over = (state: State): Effect.Effect<never, McpError.McpError> =>
  Effect.fail(McpError.invalidParams(`Cannot cancel task: already in terminal status '${taskOf(state).status}'`))
