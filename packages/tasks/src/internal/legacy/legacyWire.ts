/** Encodes tasks for 2025-11-25: status notifications, and the results of `tasks/result`. */
import * as Codec from "@skein/protocol/Codec"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { withRelated } from "@skein/protocol/LegacyTask"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Task } from "@skein/protocol/Task"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { State } from "../../TaskState.ts"
import { resultOf } from "../protocol/wire.ts"

/** The one revision that has these tasks. */
export const legacyRevision = "2025-11-25"

/** The params of `notifications/tasks/status`, which "SHOULD NOT include the related-task metadata". */
export const statusParamsOf = (task: Task): JsonObject =>
  Result.getOrThrow(Codec.encodeParams(Method.LegacyTaskStatus, legacyRevision, task))

/**
 * The error code for the result of a cancelled task: a cancelled request has neither a result nor an error of its own.
 * Other protocols on JSON-RPC use this code for cancelled requests. It is outside of the range that JSON-RPC reserves.
 */
const cancelledCode = -32800

/**
 * "Receivers MUST return from `tasks/result` exactly what the underlying request would have returned, whether that is a
 * successful result or a JSON-RPC error"; with the related task in its `_meta`.
 */
export const payloadOf = (state: State): Effect.Effect<JsonObject, McpError.McpError> =>
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
