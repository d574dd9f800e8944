/**
 * Pages of tasks, newest first, and their cursors: for `tasks/list` of 2025-11-25 and for the tool `task_list`.
 */
import * as Cursor from "@skein/protocol/Cursor"
import * as McpError from "@skein/protocol/McpError"
import type { Caller } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { ListPosition, Owner, State } from "../../TaskState.ts"
import { type TaskService, withMcpErrors } from "./taskService.ts"

/**
 * Reads one page of the tasks of these owners, in one read of the store, without questions and outcomes. Two tools may
 * name different owners by the same text: the page leaves out tasks that the caller may not see, so it may be shorter
 * than `pageSize`.
 */
export const taskPage = (
  tasks: TaskService["Service"],
  caller: Caller,
  owners: ReadonlyArray<Owner>,
  cursor: string | undefined
): Effect.Effect<
  { readonly tasks: ReadonlyArray<State>; readonly nextCursor?: string },
  McpError.McpError
> => {
  const after = cursor === undefined ? undefined : positionOf(cursor)
  if (after !== undefined && Result.isFailure(after)) return Effect.fail(after.failure)
  const { pageSize } = tasks.settings
  const read = withMcpErrors(tasks.engine.list(owners, { after: after?.success, limit: pageSize + 1 }))
  return Effect.map(read, (states) => {
    const page = states.slice(0, pageSize)
    const last = page.at(-1)
    return {
      tasks: page.filter((state) => tasks.canSee(caller, state)),
      ...(last !== undefined && states.length > page.length ? { nextCursor: cursorOf(last) } : undefined)
    }
  })
}

/** The kind of these cursors, for `Cursor`. */
const cursorKind = "tasks"

/**
 * The cursor of the position after a task. It names a position in the caller's own list, and gives no access to any
 * other.
 */
const cursorOf = ({ createdAt, id }: ListPosition): string => Cursor.encode(cursorKind, `${createdAt} ${id}`)

/** Reads a cursor. "Invalid or nonexistent cursor in `tasks/list`: `-32602`." */
export const positionOf = (cursor: string): Result.Result<ListPosition, McpError.McpError> =>
  Result.flatMap(Cursor.decode(cursorKind, cursor), (position) => {
    const [, createdAt, id] = /^(\d{1,15}) (.+)$/.exec(position) ?? []
    return createdAt === undefined || id === undefined
      ? Result.fail(McpError.invalidParams("Invalid cursor"))
      : Result.succeed({ createdAt: Number(createdAt), id })
  })
