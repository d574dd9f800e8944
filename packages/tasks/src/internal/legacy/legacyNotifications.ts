/**
 * The notifications about a task to the session that created it: `notifications/tasks/status`, and the progress of the
 * call that became the task. They end with the session or the task, and are not stored for later.
 */
import { type Id, isId, isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { related } from "@skein/protocol/LegacyTask"
import * as Codec from "@skein/protocol/Codec"
import * as Method from "@skein/protocol/Method"
import { type Caller, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import type { Catalog } from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { TaskEngine } from "../../TaskEngine.ts"
import type { Task } from "@skein/protocol/Task"
import type { TaskError } from "../../TaskError.ts"
import { isFinal, type State } from "../../TaskState.ts"
import { taskOf } from "../protocol/wire.ts"

/** The one revision that has these tasks. */
export const legacyRevision = "2025-11-25"

/** The params of `notifications/tasks/status`, which "SHOULD NOT include the related-task metadata". */
const statusParamsOf = (task: Task): JsonObject =>
  Result.getOrThrow(Codec.encodeParams(Method.LegacyTaskStatus, legacyRevision, task))

const tokenOf = (params: JsonObject | undefined): Id | undefined => {
  const meta = params?.["_meta"]
  const token = isObject(meta) ? meta["progressToken"] : undefined
  return isId(token) ? token : undefined
}

/**
 * Waits until the response with the task id is sent: a client cannot use notifications about an unknown task. Then it
 * releases the request, whose arguments may be large, since the notifications may continue for days.
 */
const afterResponse = (request: RequestContext): Effect.Effect<unknown> => {
  let pending: RequestContext | undefined = request
  return Effect.andThen(
    Effect.yieldNow,
    Effect.suspend(() => {
      const { fiber, finished } = pending!.exchange
      pending = undefined
      return finished || fiber === undefined ? Effect.void : Fiber.await(fiber)
    })
  )
}

/** Notifies the session of the caller about a task from now on. Returns immediately. */
export const notifySession = (
  engine: TaskEngine["Service"],
  created: State,
  request: RequestContext
): Effect.Effect<void, never, Catalog> => {
  const { caller } = request
  return Effect.flatMap(Extension.session(caller), (session) => {
    if (session === undefined) return Effect.void
    const notifications = Effect.catch(
      Effect.andThen(afterResponse(request), notifyChanges(engine, created, caller, tokenOf(request.params))),
      logFailure
    )
    return Effect.updateContext(Effect.asVoid(Effect.forkIn(notifications, session)), withoutRequest)
  })
}

const withoutRequest = (context: Context.Context<Catalog>): Context.Context<Catalog> =>
  Context.omit(McpRequest)(context as Context.Context<Catalog | McpRequest>)

const logFailure = (error: TaskError): Effect.Effect<void> =>
  Effect.logDebug("stopped sending the notifications of a task", error)

/** Defined outside of `notifySession`, so that its closures do not keep the request in memory. */
const notifyChanges = (
  engine: TaskEngine["Service"],
  created: State,
  caller: Caller,
  progressToken: Id | undefined
): Effect.Effect<void, TaskError, Catalog> => {
  const { id } = created
  const key = `task ${id}`
  let last = taskOf(created)
  let lastProgress = -Infinity

  const notify = (state: State): Effect.Effect<unknown, never, Catalog> => {
    const { progress } = state
    const hasProgress = progressToken !== undefined && progress !== undefined && progress.progress > lastProgress
    if (hasProgress) lastProgress = progress.progress
    const task = taskOf(state)
    const hasChanged = task.status !== last.status || task.statusMessage !== last.statusMessage
    last = task
    // "Progress notifications MUST stop after completion": the last progress is sent before the end. The end has a key
    // of its own: of several notifications with one key, a slow reader receives the last in the position of the first.
    const sendProgress = hasProgress
      ? Extension.notify(caller, `${key} progress`, {
        method: Method.Progress.name,
        params: { progressToken, ...progress, _meta: related(id) }
      })
      : Effect.void
    return hasChanged
      ? Effect.andThen(
        sendProgress,
        Extension.notify(caller, isFinal(state) ? `${key} end` : key, {
          method: Method.LegacyTaskStatus.name,
          params: statusParamsOf(task)
        })
      )
      : sendProgress
  }

  return Stream.runForEach(engine.watch(id), notify)
}
