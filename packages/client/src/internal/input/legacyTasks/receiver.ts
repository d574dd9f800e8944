/**
 * Answers input requests that a server sends as tasks (2025-11-25): what the client declares, and which requests
 * concern tasks. The module that stores the tasks is loaded when the first one arrives.
 */
import type { ClientTasksCapability } from "@skein/protocol/Capabilities"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import type { McpError } from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Answer, RequestContext } from "@skein/runtime/RequestContext"
import type { Peer } from "@skein/runtime/Peer"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { InputHandlers } from "../handlers.ts"
import type { Tasks } from "./tasks.ts"

/** The effect that answers a request, or why the request is refused before the host receives it. */
export type Ready = Result.Result<Effect.Effect<JsonObject, McpError>, McpError>

const samples = ({ sampling }: InputHandlers): boolean => sampling !== undefined

const elicits = ({ elicitation }: InputHandlers): boolean =>
  elicitation?.form !== undefined || elicitation?.url !== undefined

/** The declared capability: "The set of capabilities in `capabilities.tasks.requests` is exhaustive." */
export const capabilityOf = (services: InputHandlers): ClientTasksCapability | undefined =>
  samples(services) || elicits(services)
    ? {
      list: {},
      cancel: {},
      requests: {
        ...(samples(services) ? { sampling: { createMessage: {} } } : undefined),
        ...(elicits(services) ? { elicitation: { create: {} } } : undefined)
      }
    }
    : undefined

const methods: ReadonlySet<string> = new Set(
  [Method.LegacyGetTask, Method.LegacyGetTaskPayload, Method.LegacyListTasks, Method.LegacyCancelTask]
    .map(({ name }) => name)
)

/** Whether a request creates a task or is about one, as the client declared. */
export const concernsTasks = (services: InputHandlers, { caller, method, params }: RequestContext): boolean => {
  if (caller.revision !== "2025-11-25") return false
  switch (method) {
    case Method.CreateMessage.name:
      return samples(services) && isObject(params?.["task"])
    case Method.Elicit.name:
      return elicits(services) && isObject(params?.["task"])
    default:
      return methods.has(method) && (samples(services) || elicits(services))
  }
}

/** The tasks of the connection that a client has now. */
export class Receiving {
  #tasks: Tasks | undefined = undefined

  /** Whether a task runs that the server waits for. */
  hasRunningTask(peer: Peer): boolean {
    return this.#tasks?.peer === peer && this.#tasks.live > 0
  }

  /** Answers a request that concerns tasks. `ready` returns the effect that answers an input request. */
  answer(request: RequestContext, peer: Peer, ready: () => Ready): Effect.Effect<Answer, McpError> {
    if (methods.has(request.method)) return Effect.flatMap(this.#of(peer), (tasks) => tasks.answer(request))
    const question = ready()
    return Result.isFailure(question)
      ? Effect.fail(question.failure)
      : Effect.flatMap(this.#of(peer), (tasks) => tasks.create(request, question.success))
  }

  #of(peer: Peer): Effect.Effect<Tasks> {
    return Effect.suspend(() => {
      if (this.#tasks?.peer === peer) return Effect.succeed(this.#tasks)
      return Effect.flatMap(Effect.promise(() => import("./tasks.ts")), ({ make }) =>
        // Another request may have created it in the meantime.
        this.#tasks?.peer === peer ? Effect.succeed(this.#tasks) : Effect.map(make(peer), (tasks) => {
          this.#tasks = tasks
          return tasks
        }))
    })
  }
}
