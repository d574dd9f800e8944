/** Tasks in pages, newest first. */
import type * as McpError from "@skein/protocol/McpError"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Owner, State } from "../../TaskState.ts"
import { type Face, told } from "./face.ts"
import { cursorOf, positionOf } from "./legacyWire.ts"

/** One page of the tasks of these owners. It is one look into the store, and one for each of its tasks that has a result. */
export const page = (
  face: Face,
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
    return Effect.map(Effect.forEach(page, (state) => whole(face, state), { concurrency: 8 }), (tasks) => ({
      tasks: tasks.filter((state) => state !== undefined),
      ...(last !== undefined && states.length > page.length ? { nextCursor: cursorOf(last) } : undefined)
    }))
  })
}

/** A listing has no outcomes, and it is the outcome that tells whether a tool has failed. */
const whole = (face: Face, state: State): Effect.Effect<State | undefined, McpError.McpError> => {
  const over = state.status === "completed" || state.status === "failed"
  return over && state.outcome === undefined ? told(face.engine.get(state.id)) : Effect.succeed(state)
}
