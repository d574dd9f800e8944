/** How 2025-11-25 sees a task. */
import * as Codec from "@skein/protocol/Codec"
import * as Cursor from "@skein/protocol/Cursor"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { withRelated } from "@skein/protocol/LegacyTask"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import type { Task } from "@skein/protocol/Task"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Position, State } from "../../../TaskState.ts"
import * as wire from "../wire.ts"

/** The one revision that has these tasks. */
export const revision = "2025-11-25"

/**
 * A task as `tasks/get`, `tasks/list`, `tasks/cancel` and its notifications show it, where a tool's own failure makes it fail: "for
 * `tools/call` specifically, this includes cases where the tool call result has `isError` set to true".
 */
export const taskOf = (state: State): Task => {
  const task = wire.task(state)
  return state.isError ? { ...task, status: "failed" } : task
}

/** The params of `notifications/tasks/status`, which "SHOULD NOT include the related-task metadata". */
export const noticeOf = (task: Task): JsonObject =>
  Result.getOrThrow(Codec.encodeParams(Method.LegacyTaskStatus, revision, task))

/**
 * What a cancelled request would have been answered with is nothing: no result, and no error of its own. The code is the one
 * that other protocols on JSON-RPC have for it, outside of what JSON-RPC reserves.
 */
const cancelled = -32800

/**
 * "Receivers MUST return from `tasks/result` exactly what the underlying request would have returned, whether that is a successful
 * result or a JSON-RPC error"; with the related task in its `_meta`.
 */
export const answerOf = (state: State): Effect.Effect<JsonObject, McpError.McpError> =>
  Effect.suspend(() => {
    const { id, message, outcome } = state
    if (outcome === undefined) {
      const why = message === undefined ? "" : `: ${message}`
      return Effect.fail(McpError.other(cancelled, `The task was cancelled${why}`))
    }
    if (outcome._tag === "Result") return Effect.succeed(withRelated(wire.result(state, revision), id))
    // An error of a reason has the code that its reason has here: this one has its own.
    const { error } = outcome
    return Effect.fail(McpError.other(error.code, error.message, error.data))
  })

// ---- pages

const list = "tasks"

/** The cursor that stands behind a task. It names a place in a caller's own list, and opens no other. */
export const cursorOf = ({ createdAt, id }: Position): string => Cursor.encode(list, `${createdAt} ${id}`)

/** Reads a cursor. "Invalid or nonexistent cursor in `tasks/list`: `-32602`." */
export const positionOf = (cursor: string): Result.Result<Position, McpError.McpError> =>
  Result.flatMap(Cursor.decode(list, cursor), (place) => {
    const [, createdAt, id] = /^(\d{1,15}) (.+)$/.exec(place) ?? []
    return createdAt === undefined || id === undefined
      ? Result.fail(McpError.invalidParams("Invalid cursor"))
      : Result.succeed({ createdAt: Number(createdAt), id })
  })
