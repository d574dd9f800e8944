/** Tasks in pages, newest first. */
import type * as McpError from "@skein/protocol/McpError"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Owner, State } from "../../TaskState.ts"
import { type Face, told } from "./taskService.ts"
import { cursorOf, positionOf } from "./legacy/legacyWire.ts"

/**
 * One page of the tasks of a caller who is these owners, which is one look into the store. They have no questions and no outcomes. An
 * owner of one tool may be called as somebody else of another: what the caller could not look at is not shown.
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
  return Effect.map(told(face.engine.list(owners, { after: after?.success, limit: pageSize + 1 })), (states) => {
    const page = states.slice(0, pageSize)
    const last = page.at(-1)
    return {
      tasks: page.filter((state) => face.sees(caller, state)),
      ...(last !== undefined && states.length > page.length ? { nextCursor: cursorOf(last) } : undefined)
    }
  })
}
