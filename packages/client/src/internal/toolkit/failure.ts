/**
 * The failures of calls that a model makes.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Schema from "effect/Schema"
import type { ClientError } from "../../ClientError.ts"
import type { PoolError } from "../../PoolError.ts"
import { partsOf } from "./content.ts"
import type { ToolName } from "./names.ts"

/**
 * A failed call. The model receives the members of the schema. The application also gets `error` or `result`, which are
 * absent in a failure that was decoded from a stored conversation.
 */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  /** The name of the server; absent for the tools of a single client. */
  server: Schema.optionalKey(Schema.String),
  /** The tool's own name. */
  tool: Schema.String,
  /**
   * `ToolFailed`: the result has `isError`. `Arguments`: the model's arguments are not an object. Other reasons are
   * those of a `ClientError` or a `PoolError`.
   */
  reason: Schema.String,
  /** The content of the tool's result as text, or the message of the error. */
  message: Schema.String
}) {
  error?: ClientError | PoolError
  result?: CallToolResult
}

const make = ({ server, tool }: ToolName, reason: string, message: string): ToolFailure =>
  new ToolFailure({ ...(server === undefined ? undefined : { server }), tool, reason, message })

/** The arguments are not an object. */
export const ofArguments = (named: ToolName): ToolFailure =>
  make(named, "Arguments", "The arguments of a tool must be a JSON object")

/** The call could not be made, or had no response. */
export const ofError = (named: ToolName, error: ClientError | PoolError): ToolFailure =>
  Object.assign(make(named, error.reason._tag, error.message), { error })

/** The result has `isError`. `isBeside`: whether structured content follows other content. */
export const ofResult = (named: ToolName, result: CallToolResult, isBeside: boolean): ToolFailure => {
  const texts = partsOf(result, isBeside).map((part) => part.type === "text" ? part.text : `[${part.mediaType}]`)
  const message = texts.length > 0 ? texts.join("\n") : "The tool failed"
  return Object.assign(make(named, "ToolFailed", message), { result })
}
