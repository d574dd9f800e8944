/**
 * The request that the handler of a task receives: the stored part of the call that created the task. Requests to the
 * client become questions of the task, progress is written to its row, and notifications about the request are dropped,
 * since the request has ended.
 */
import { type ErrorObject, isObject, type JsonObject, type Request } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import {
  type Caller,
  type CallOptions,
  type Derivation,
  Exchange,
  type Progress,
  RequestContext,
  type ResponseSink
} from "@skein/runtime/RequestContext"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Effect from "effect/Effect"
import type { CurrentTask } from "../../CurrentTask.ts"
import type { TaskRequest } from "../../TaskEngine.ts"
import type { StoredTask } from "../store/store.ts"

/** The operations of a run that the request uses. */
export interface RunningTask {
  readonly current: CurrentTask["Service"]
  /** Whether the run only compares the code with the log of the task. */
  readonly isCheck?: boolean | undefined
  readonly ask: RequestContext["request"]
  readonly progress: RequestContext["progress"]
}

/** The worker of the task takes the result of the handler, and notifications have no receiver. */
const noSink: ResponseSink = {
  respond: () => {},
  discard: () => {},
  notify: () => true,
  drained: () => Effect.void
}

/** The request of a running task. */
export class TaskRequestContext extends RequestContext implements TaskRequest {
  readonly #running: RunningTask

  private constructor(
    exchange: Exchange,
    params: JsonObject | undefined,
    caller: Caller,
    running: RunningTask,
    derivation?: Derivation
  ) {
    super(exchange, "tools/call", params, caller, derivation)
    this.#running = running
  }

  /** Makes the request of a task. */
  static make({ args, caller, id, tool }: StoredTask, running: RunningTask): TaskRequestContext {
    const params = { name: tool, arguments: args }
    const request: Request = { _tag: "Request", id, method: "tools/call", params }
    const receive = (exchange: Exchange) => new TaskRequestContext(exchange, params, caller, running)
    return new Exchange(noSink, request, caller, undefined, receive).received as TaskRequestContext
  }

  protected override derive(
    _method: string,
    params: JsonObject | undefined,
    caller: Caller,
    derivation: Derivation
  ): RequestContext {
    return new TaskRequestContext(this.exchange, params, caller, this.#running, derivation)
  }

  /** The task, for `Step`. */
  get task(): CurrentTask["Service"] {
    return this.#running.current
  }

  /** Whether the run only compares the code with the log of the task. Its outcome is not stored, and it logs nothing. */
  get isCheck(): boolean {
    return this.#running.isCheck === true
  }

  override get asksOthers(): boolean {
    return true
  }

  /** A question has no time limit: the user may answer while the task exists. */
  override get inputTimeout(): undefined {
    return undefined
  }

  override request(
    method: string,
    params?: JsonObject,
    options?: CallOptions
  ): Effect.Effect<JsonObject, McpError.McpError | RequestError> {
    return Effect.flatMap(this.#running.ask(method, params, options), (answer) => {
      const error = readRefusal(answer)
      return error === undefined
        ? Effect.succeed(answer)
        : Effect.fail(McpError.fromErrorObject(error, this.caller.revision))
    })
  }

  override progress(progress: Progress): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { exchange } = this
      if (progress.progress > (exchange.lastProgress?.progress ?? -Infinity)) exchange.lastProgress = progress
      return this.#running.progress(progress)
    })
  }
}

/**
 * The member of an answer that is a refusal. A client refuses a question with a JSON-RPC error ("User rejected sampling
 * request", -1). The store keeps the refusal as the answer: an object with this one member, which no other answer has.
 */
const refusalMember = "@skein/tasks/refused"

/** Encodes a refusal as an answer. */
export const makeRefusal = (error: ErrorObject): JsonObject => ({ [refusalMember]: error })

/** The error of a refusal; `undefined` for any other answer, and for a member of this name that is not an error. */
export const readRefusal = (answer: JsonObject): ErrorObject | undefined => {
  const error = answer[refusalMember]
  return isObject(error) && Number.isSafeInteger(error["code"]) && typeof error["message"] === "string"
    ? error as unknown as ErrorObject
    : undefined
}
