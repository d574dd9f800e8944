/**
 * What happens in a call before its task begins, and what of it the task is given.
 *
 * It is the tool's own handler that prepares, since the arguments are read for it: called with the request of the call it leaves
 * what it has prepared in a cell; called with the request of the task it runs the body.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { RequestContext } from "@skein/runtime/RequestContext"
import type { Handled } from "@skein/server/Catalog"
import type { ToolCall } from "@skein/server/Extension"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** Where a call leaves what it has prepared, as JSON. */
export interface Cell {
  value: { readonly json: unknown } | undefined
}

/** Provided to a handler that is called to prepare. */
export class Preparing extends Context.Service<Preparing, Cell>()("@skein/tasks/Preparing") {}

/** The call is over before a task has begun: its arguments are bad, or what prepares it has failed. */
export class Unbegun {
  readonly result: CallToolResult

  constructor(result: CallToolResult) {
    this.result = result
  }
}

/** What is prepared is kept among the arguments, which are sealed as one. What a client says under this name is overwritten. */
const member = "@skein/tasks/prepared"

/** Prepares a call: the arguments that its task begins with, or why it does not begin. */
export const prepare = ({ params, request: exchange, tool }: ToolCall): Handled<JsonObject | Unbegun> =>
  Effect.suspend(() => {
    const cell: Cell = { value: undefined }
    const args = params.arguments ?? {}
    return Effect.map(
      Effect.provideService(tool.call(args, exchange), Preparing, cell),
      (result) => cell.value === undefined ? new Unbegun(result) : { ...args, [member]: cell.value.json }
    )
  })

/** What was prepared for the task of this request. */
export const preparedFor = ({ params }: RequestContext): unknown => argumentsOf(params)[member]

/** The arguments as the client gave them. */
export const given = ({ params }: RequestContext): JsonObject => without(argumentsOf(params))

/**
 * Arguments of which nothing was prepared, whatever the client says: the task may run when its tool has come to be one that is
 * prepared.
 */
export const without = (args: JsonObject): JsonObject => {
  if (!Object.hasOwn(args, member)) return args
  const { [member]: _, ...rest } = args
  return rest
}

const argumentsOf = (params: JsonObject | undefined): JsonObject => (params?.["arguments"] ?? {}) as JsonObject
