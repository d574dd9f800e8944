/**
 * What the session hears that made a task: `notifications/tasks/status`, and the progress of the call that became the task. It
 * is told unasked, as long as the session is open, and nothing is kept after the session's end or the task's.
 */
import { type Id, isId, isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import { related } from "@skein/protocol/LegacyTask"
import * as Method from "@skein/protocol/Method"
import { type Caller, McpRequest, type Progress, type RequestContext } from "@skein/runtime/RequestContext"
import type { Catalog } from "@skein/server/Catalog"
import * as Extension from "@skein/server/Extension"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Stream from "effect/Stream"
import type { TaskEngine } from "../../../TaskEngine.ts"
import type { TaskError } from "../../../TaskError.ts"
import { isFinal, type State } from "../../../TaskState.ts"
import { noticeOf, taskOf } from "./legacyWire.ts"

const tokenOf = (params: JsonObject | undefined): Id | undefined => {
  const meta = params?.["_meta"]
  const token = isObject(meta) ? meta["progressToken"] : undefined
  return isId(token) ? token : undefined
}

const progressOf = (id: string, progressToken: Id, { message, progress, total }: Progress): JsonObject => ({
  progressToken,
  progress,
  ...(Number.isFinite(total) ? { total } : undefined),
  ...(message === undefined ? undefined : { message }),
  _meta: related(id)
})

/**
 * The handle goes out first: nobody can make anything of what is said of an unknown task. The request, whose arguments may be large,
 * is let go of then: what tells of its task may do so for days.
 */
const answered = (exchange: RequestContext): Effect.Effect<unknown> => {
  let asked: RequestContext | undefined = exchange
  return Effect.andThen(
    Effect.yieldNow,
    Effect.suspend(() => {
      const { fiber, finished } = asked!
      asked = undefined
      return finished || fiber === undefined ? Effect.void : Fiber.await(fiber)
    })
  )
}

/** Tells the session of the caller what happens to a task from now on. Does not wait for it. */
export const follow = (
  engine: TaskEngine["Service"],
  made: State,
  exchange: RequestContext
): Effect.Effect<void, never, Catalog> => {
  const { caller } = exchange
  return Effect.flatMap(Extension.session(caller), (session) => {
    if (session === undefined) return Effect.void
    const told = Effect.catch(
      Effect.andThen(answered(exchange), tellAll(engine, made, caller, tokenOf(exchange.params))),
      lost
    )
    return Effect.updateContext(Effect.asVoid(Effect.forkIn(told, session)), withoutRequest)
  })
}

const withoutRequest = (context: Context.Context<Catalog>): Context.Context<Catalog> =>
  Context.omit(McpRequest)(context as Context.Context<Catalog | McpRequest>)

const lost = (error: TaskError): Effect.Effect<void> => Effect.logDebug("A task is not followed any more", error)

/** Made where the request is not seen, which would be kept with it. */
const tellAll = (
  engine: TaskEngine["Service"],
  made: State,
  caller: Caller,
  progressToken: Id | undefined
): Effect.Effect<void, TaskError, Catalog> => {
  const { id } = made
  const key = `task ${id}`
  let last = taskOf(made)
  let reported = -Infinity

  const tell = (state: State): Effect.Effect<unknown, never, Catalog> => {
    const { progress } = state
    const grown = progressToken !== undefined && progress !== undefined && progress.progress > reported
    if (grown) reported = progress.progress
    const task = taskOf(state)
    const changed = task.status !== last.status || task.statusMessage !== last.statusMessage
    last = task
    // "Progress notifications MUST stop after completion": the last of it goes before the end, which is told under a key of its
    // own, since a slow reader hears of each key in the place of the first that it has not heard of.
    const progressed = grown
      ? Extension.notify(caller, `${key} progress`, {
        method: Method.Progress.name,
        params: progressOf(id, progressToken, progress)
      })
      : Effect.void
    return changed
      ? Effect.andThen(
        progressed,
        Extension.notify(caller, isFinal(state) ? `${key} end` : key, {
          method: Method.LegacyTaskStatus.name,
          params: noticeOf(task)
        })
      )
      : progressed
  }

  return Stream.runForEach(engine.watch(id), tell)
}
