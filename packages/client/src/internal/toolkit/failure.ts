/**
 * Why a call that a model has made came to nothing.
 */
import type { CallToolResult } from "@skein/protocol/CallTool"
import * as Schema from "effect/Schema"
import type { ClientError } from "../../ClientError.ts"
import type { PoolError } from "../../PoolError.ts"
import { partOf, structured } from "./content.ts"
import type { ToolName } from "./names.ts"

/**
 * A call that failed. The model is shown the members that the schema names; `error` and `result` are for the host, and are not
 * there in a failure that was read back from a conversation that was kept.
 */
export class ToolFailure extends Schema.TaggedError<ToolFailure>()("ToolFailure", {
  /** The name of the server; not there for the tools of a single client. */
  server: Schema.optionalKey(Schema.String),
  /** The tool's own name. */
  tool: Schema.String,
  /** `ToolFailed`: the tool says so by `isError`. `Arguments`: the model's arguments are no object. Others are those of a `ClientError`. */
  reason: Schema.String,
  /** What the tool said, as text, or what went wrong. */
  message: Schema.String
}) {
  error?: ClientError | PoolError
  result?: CallToolResult
}

const make = ({ server, tool }: ToolName, reason: string, message: string): ToolFailure =>
  new ToolFailure({ ...(server === undefined ? undefined : { server }), tool, reason, message })

/** The arguments are no object. */
export const ofArguments = (named: ToolName): ToolFailure =>
  make(named, "Arguments", "The arguments of a tool have to be a JSON object")

/** The call could not be made, or was not answered. */
export const ofError = (named: ToolName, error: ClientError | PoolError): ToolFailure =>
  Object.assign(make(named, error.reason._tag, error.message), { error })

/** The tool said that it failed. */
export const ofResult = (named: ToolName, result: CallToolResult): ToolFailure => {
  const said = result.content.map(partOf).map((part) => part.type === "text" ? part.text : `[${part.mediaType}]`)
  const message = said.length > 0
    ? said.join("\n")
    : result.structuredContent === undefined
    ? "The tool failed"
    : structured(result.structuredContent)
  return Object.assign(make(named, "ToolFailed", message), { result })
}
