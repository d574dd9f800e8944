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

/** What `Tool.result` makes. */
export class ToolResult<out Output> {
  readonly structured?: Output
  readonly content?: Content.Input
  readonly isError?: boolean
  readonly _meta?: Common.Meta
  constructor(answer: {
    readonly structured?: Output
    readonly content?: Content.Input
    readonly isError?: boolean
    readonly _meta?: Common.Meta
  }) {
    Object.assign(this, answer)
  }
}

const failed = (text: string): Wire.CallToolResult => ({ content: [Content.text(text)], isError: true })

/** The revisions before 2025-11-25 count bad arguments among the protocol errors. */
const badArguments = (tool: string, problem: string, revision: string): Effect.Effect<Wire.CallToolResult, McpError.McpError> => {
  const message = `Invalid arguments for tool ${tool}: ${problem}`
  return revision >= "2025-11-25" ? Effect.succeed(failed(message)) : Effect.fail(McpError.invalidParams(message))
}

const recover = (error: HandlerError): Effect.Effect<Wire.CallToolResult, McpError.McpError> =>
  McpError.isMcpError(error) ? Effect.fail(error) : Effect.succeed(failed(error.message))

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

  const answer = (value: unknown): Wire.CallToolResult => {
    const full = value instanceof ToolResult ? value as ToolResult<unknown> : undefined
    const structured = full === undefined ? encode === undefined ? undefined : value : full.structured
    const content = full === undefined ? encode === undefined ? value as Content.Input | undefined : undefined : full.content
    const structuredContent = structured === undefined || encode === undefined ? structured : encode(structured)
    return {
      // "A tool that returns structured content SHOULD also return the serialized JSON in a TextContent block."
      content: content !== undefined
        ? Content.blocks(content)
        : structuredContent === undefined
        ? []
        : [Content.text(JSON.stringify(structuredContent))],
      ...(structuredContent === undefined ? undefined : { structuredContent }),
      ...(full?.isError === undefined ? undefined : { isError: full.isError }),
      ...(full?._meta === undefined ? undefined : { _meta: full._meta })
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
  Effect.matchEffect(effect, { onFailure: recover, onSuccess: (value) => Effect.sync(() => answer(value)) })
