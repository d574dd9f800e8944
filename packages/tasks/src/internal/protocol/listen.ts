/**
 * `notifications/tasks` through `subscriptions/listen` (2026-07-28, the tasks extension, "Task Status Notifications").
 */
import * as Codec from "@skein/protocol/Codec"
import * as Method from "@skein/protocol/Method"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Caller } from "@skein/runtime/RequestContext"
import type { Extension, Publish } from "@skein/server/Extension"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import type { State } from "../../TaskState.ts"
import { declares, undeclared } from "./call.ts"
import { type Face, told } from "./taskService.ts"
import * as wire from "./wire.ts"

/** "Each notification carries a complete `DetailedTask` …, identical to what `tasks/get` would have returned at that moment." */
const notice = (state: State, reader: Caller): JsonObject => {
  const params = Codec.encodeParams(Method.TaskStatus, reader.revision, wire.detailed(state, reader))
  if (Result.isSuccess(params)) return params.success
  throw new Error(`A task cannot be said in ${reader.revision}: ${params.failure.message}`)
}

/** Tells the state of a task now, and each one after it, until it is over. */
const follow = (face: Face, tell: Publish, reader: Caller, id: string): Effect.Effect<void> =>
  face.engine.watch(id).pipe(
    Stream.runForEach((state) => Effect.sync(() => tell(`task:${id}`, Method.TaskStatus.name, notice(state, reader)))),
    Effect.catchCause((cause) => Effect.logWarning("The changes of a task are not told any more", cause))
  )

/** See the module's text. */
export const listen = (face: Face): NonNullable<Extension["listen"]> => ({ taskIds }, { caller }) => {
  if (taskIds === undefined) return Effect.undefined
  if (!declares(caller.capabilities)) return undeclared
  // What lies beyond the bound is not looked at: the acknowledgement says what is agreed.
  const asked = [...new Set(taskIds as ReadonlyArray<string>)].slice(0, face.settings.maxWatched)
  const found = Effect.filter(
    asked,
    (id) => Effect.map(told(face.engine.get(id)), (state) => state !== undefined && face.sees(caller, state))
  )
  return Effect.map(found, (ids) => ({
    agreed: { taskIds: ids },
    run: (tell) =>
      Effect.forEach(ids, (id) => follow(face, tell, caller, id), { concurrency: "unbounded", discard: true })
  }))
}
