/** Tasks in pages, newest first. */
import type * as McpError from "@skein/protocol/McpError"
import type { Caller } from "@skein/runtime/Exchange"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Outcome, Owner, State } from "../../TaskState.ts"
import { type Face, told } from "./face.ts"
import { cursorOf, positionOf } from "./legacyWire.ts"

/**
 * One page of the tasks of a caller who is these owners. It is one look into the store, and one for each of its tasks that has a
 * result. An owner of one tool may be called as somebody else of another: what the caller could not look at is not shown.
 */
export const page = (
  face: Face,
  caller: Caller,
  owners: ReadonlyArray<Owner>,
  cursor: string | undefined
): Effect.Effect<
  { readonly tasks: ReadonlyArray<State>; readonly nextCursor?: string | undefined },
  McpError.McpError
> => {
  const after = cursor === undefined ? undefined : positionOf(cursor)
  if (after !== undefined && Result.isFailure(after)) return Effect.fail(after.failure)
  const { pageSize } = face.settings
  return Effect.flatMap(told(face.engine.list(owners, { after: after?.success, limit: pageSize + 1 })), (states) => {
    const page = states.slice(0, pageSize)
    const last = page.at(-1)
    const seen = page.filter((state) => face.sees(caller, state))
    return Effect.map(Effect.forEach(seen, (state) => whole(face, state), { concurrency: 8 }), (tasks) => ({
      tasks: tasks.filter((state) => state !== undefined),
      ...(last !== undefined && states.length > page.length ? { nextCursor: cursorOf(last) } : undefined)
    }))
  })
}

/** A listing has no outcomes, and it is the outcome that tells whether a tool has failed. */
const whole = (face: Face, state: State): Effect.Effect<State | undefined, McpError.McpError> => {
  const over = state.status === "completed" || state.status === "failed"
  return over && state.outcome === undefined
    ? Effect.map(told(face.engine.get(state.id)), (state) => state && { ...state, outcome: brief(state.outcome) })
    : Effect.succeed(state)
}

/** What a listing says of an outcome. The rest is let go of: results may be large, and a page has many. */
const brief = (outcome: Outcome | undefined): Outcome | undefined => {
  if (outcome === undefined) return undefined
  if (outcome._tag === "Error") {
    return { _tag: "Error", error: { code: outcome.error.code, message: outcome.error.message } }
  }
  const { content, isError } = outcome.result
  const first = isError === true && Array.isArray(content) ? content.slice(0, 1) : []
  return { _tag: "Result", result: { content: first, isError: isError === true } }
}
