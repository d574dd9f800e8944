/**
 * The part of a call that runs before its task starts, for `Task.layerPrepared`.
 *
 * The tool's own handler prepares, since it decodes the arguments: with `Preparing` in its context it stores the
 * prepared value in a cell; without, in the run of the task, it runs the body.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { RequestContext } from "@skein/runtime/RequestContext"
import type { Handled } from "@skein/server/Catalog"
import type { ToolCall } from "@skein/server/Extension"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"

/** The place for the prepared value of a call, as JSON. */
export interface PreparedCell {
  value: { readonly json: unknown } | undefined
}

/** In the context of a handler that is called to prepare. */
export class Preparing extends Context.Service<Preparing, PreparedCell>()("@skein/tasks/Preparing") {}

/** The result of a call that ended before its task started: its arguments were invalid, or preparing it failed. */
export class NotStarted extends Data.Class<{ readonly result: CallToolResult }> {}

/**
 * The prepared value is stored among the arguments, which are encrypted together. A client's value under this name is
 * overwritten.
 */
const preparedMember = "@skein/tasks/prepared"

/** Prepares a call. Returns the arguments of its task, or the result of a call that does not start one. */
export const prepare = ({ params, request, tool }: ToolCall): Handled<JsonObject | NotStarted> =>
  Effect.suspend(() => {
    const cell: PreparedCell = { value: undefined }
    const args = params.arguments ?? {}
    return Effect.map(
      Effect.provideService(tool.call(args, request), Preparing, cell),
      (result) => cell.value === undefined ? new NotStarted({ result }) : { ...args, [preparedMember]: cell.value.json }
    )
  })

/** The prepared value of a task's request. */
export const preparedOf = ({ params }: RequestContext): unknown => argumentsOf(params)[preparedMember]

/** Other arguments for a task, with its prepared value. */
export const withPrepared = ({ params }: RequestContext, args: JsonObject): JsonObject => {
  const before = argumentsOf(params)
  return Object.hasOwn(before, preparedMember)
    ? { ...args, [preparedMember]: before[preparedMember] }
    : withoutPrepared(args)
}

/** The arguments of a task's request as the client sent them. */
export const clientArguments = ({ params }: RequestContext): JsonObject => withoutPrepared(argumentsOf(params))

/**
 * Arguments without a prepared value. A client may send a value under its name, and a later version of the tool may
 * read it when it runs the task.
 */
export const withoutPrepared = (args: JsonObject): JsonObject => {
  if (!Object.hasOwn(args, preparedMember)) return args
  const { [preparedMember]: _, ...rest } = args
  return rest
}

const argumentsOf = (params: JsonObject | undefined): JsonObject => (params?.["arguments"] ?? {}) as JsonObject
