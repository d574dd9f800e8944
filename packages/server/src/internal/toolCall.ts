/**
 * From the arguments of a call to a tool's result.
 */
import type * as Wire from "@skein/protocol/CallTool"
import type * as Common from "@skein/protocol/Common"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { McpRequest } from "@skein/runtime/Exchange"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { ToolEntry } from "../Catalog.ts"
import * as Content from "../Content.ts"
import type { HandlerError } from "../HandlerError.ts"
import { clip, maxProblem } from "./clip.ts"
import { describe, toolFault } from "./handlerError.ts"

/** What an answer may have besides structured content. */
export interface Extras {
  /** Without it, structured content is also written as text, for clients that do not read it. */
  readonly content?: Content.Input
  /** Whether the tool failed. */
  readonly isError?: boolean
  readonly _meta?: Common.Meta
}

/** What `Tool.result` is given. */
export interface Parts<out Output> extends Extras {
  readonly structured?: Output
}

/** What `Tool.result` makes. */
export class ToolResult<out Output> {
  readonly parts: Parts<Output>

  constructor(parts: Parts<Output>) {
    this.parts = parts
  }
}

const failed = (text: string): Wire.CallToolResult => ({ content: [Content.text(text)], isError: true })

/** The revisions before 2025-11-25 count bad arguments among the protocol errors. */
const badArguments = (
  tool: string,
  problem: string,
  revision: string
): Effect.Effect<Wire.CallToolResult, McpError.McpError> => {
  const message = `Invalid arguments for tool ${tool}: ${clip(problem, maxProblem)}`
  return revision >= "2025-11-25" ? Effect.succeed(failed(message)) : Effect.fail(McpError.invalidParams(message))
}

const recover = (error: HandlerError): Effect.Effect<Wire.CallToolResult, McpError.McpError> => {
  const fault = toolFault(error)
  return fault === undefined ? Effect.succeed(failed(describe(error))) : Effect.fail(fault)
}

/** What a call needs to know of a tool's definition. */
interface Schemas<Input, Output> {
  readonly name: string
  readonly input: Schema.ConstraintCodec<Input, unknown> | undefined
  readonly output: Schema.ConstraintCodec<Output, unknown> | undefined
}

/** The function that runs a tool's calls. Its schemas are compiled here, once. */
export const make = <Input, Output, E extends HandlerError>(
  tool: Schemas<Input, Output>,
  handler: (input: Input) => Effect.Effect<unknown, E, McpRequest>
): ToolEntry["call"] => {
  const decode = tool.input === undefined
    ? undefined
    : Schema.decodeUnknownResult(Schema.toCodecJson(tool.input), { errors: "all" })
  const encode = tool.output === undefined ? undefined : Schema.encodeUnknownSync(Schema.toCodecJson(tool.output))

  // "A tool that returns structured content SHOULD also return the serialized JSON in a TextContent block."
  const asText = (structuredContent: unknown): Wire.CallToolResult["content"] =>
    structuredContent === undefined ? [] : [Content.text(JSON.stringify(structuredContent))]

  const answer = (value: unknown): Wire.CallToolResult => {
    if (value instanceof ToolResult) return whole((value as ToolResult<unknown>).parts)
    if (encode === undefined) return { content: value === undefined ? [] : Content.blocks(value as Content.Input) }
    const structuredContent = encode(value)
    return { content: asText(structuredContent), structuredContent }
  }

  const whole = ({ _meta, content, isError, structured }: Parts<unknown>): Wire.CallToolResult => {
    // "If an output schema is provided: servers MUST provide structured results that conform to this schema." A failure need not.
    const left = structured === undefined && (encode === undefined || isError === true)
    const structuredContent = left || encode === undefined ? structured : encode(structured)
    return {
      content: content === undefined ? asText(structuredContent) : Content.blocks(content),
      ...(structuredContent === undefined ? undefined : { structuredContent }),
      ...(isError === undefined ? undefined : { isError }),
      ...(_meta === undefined ? undefined : { _meta })
    }
  }

  return (args: JsonObject, exchange) => {
    if (decode === undefined) return settle(handler({} as Input), answer)
    const input = decode(args)
    return Result.isSuccess(input)
      ? settle(handler(input.success), answer)
      : badArguments(tool.name, input.failure.message, exchange.caller.revision)
  }
}

const settle = <E extends HandlerError>(
  effect: Effect.Effect<unknown, E, McpRequest>,
  answer: (value: unknown) => Wire.CallToolResult
): Effect.Effect<Wire.CallToolResult, McpError.McpError, McpRequest> =>
  Effect.catch(Effect.map(effect, answer), recover)
