/**
 * The request that a task's handler sees: the call that made the task, as far as it is kept. What is asked through it is asked
 * durably; progress goes to the task's row; notifications about a request have nobody to go to.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import { type CallOptions, type Progress, RequestContext, type ResponseSink } from "@skein/runtime/RequestContext"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Effect from "effect/Effect"
import type { CurrentTask } from "../../CurrentTask.ts"
import * as refused from "./refused.ts"
import type { Work } from "../store/store.ts"

/** What a running task gives to its handler. */
export interface Running {
  readonly current: CurrentTask["Service"]
  readonly ask: (
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions | undefined
  ) => Effect.Effect<JsonRpc.JsonObject, McpError.McpError | RequestError>
  readonly progress: (progress: Progress) => Effect.Effect<void>
}

/** The worker of the task takes the result of the handler, and notifications have no receiver. */
const noSink: ResponseSink = {
  respond: () => {},
  discard: () => {},
  notify: () => true,
  drained: () => Effect.void
}

/** See the module's text. */
export class TaskExchange extends RequestContext {
  readonly #running: Running

  constructor({ args, caller, id, tool }: Work, running: Running) {
    super(noSink, { _tag: "Request", id, method: "tools/call", params: { name: tool, arguments: args } }, caller)
    this.#running = running
  }

  /** The task, for what only tasks can do. */
  get task(): CurrentTask["Service"] {
    return this.#running.current
  }

  /** A user may take as long as the task lives. */
  override get inputTimeout(): undefined {
    return undefined
  }

  override request(
    method: string,
    params?: JsonRpc.JsonObject,
    options?: CallOptions
  ): Effect.Effect<JsonRpc.JsonObject, McpError.McpError | RequestError> {
    return Effect.flatMap(this.#running.ask(method, params, options), (answer) => {
      const error = refused.read(answer)
      return error === undefined
        ? Effect.succeed(answer)
        : Effect.fail(McpError.fromErrorObject(error, this.caller.revision))
    })
  }

  override progress(progress: Progress): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (progress.progress > (this.lastProgress?.progress ?? -Infinity)) this.lastProgress = progress
      return this.#running.progress(progress)
    })
  }
}
