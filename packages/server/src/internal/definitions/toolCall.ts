/**
 * From the arguments of a call to a tool's result.
 */
import type * as Wire from "@skein/protocol/CallTool"
import type * as Common from "@skein/protocol/Common"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { Handled, ToolEntry } from "../../Catalog.ts"
import * as Content from "../../Content.ts"
import type { HandlerError } from "../../HandlerError.ts"
import { clip, maxProblem } from "../text.ts"
import * as details from "./validateDefinition.ts"
import type { Reader, Soon, Writer } from "./inputSchema.ts"
import { messageOf, toolFault } from "./handlerError.ts"

/** What an answer may have besides structured content. */
export interface Extras {
  /** Without it, structured content is also written as text, for clients that do not read it. */
  readonly content?: Content.Input | undefined
  /** Whether the tool failed. */
  readonly isError?: boolean | undefined
  readonly _meta?: Common.Meta | undefined
}

/** What `Tool.result` is given. */
export interface Parts<out Output> extends Extras {
  readonly structured?: Output | undefined
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
  return fault === undefined ? Effect.succeed(failed(messageOf(error))) : Effect.fail(fault)
}

/** What a call needs to know of a tool's definition. */
interface Schemas<Input, Output> {
  readonly name: string
  readonly input: Reader<Input> | undefined
  readonly output: Writer<Output> | undefined
}

/** "A tool that returns structured content SHOULD also return the serialized JSON in a TextContent block." */
const asText = (structuredContent: unknown): Wire.CallToolResult["content"] =>
  structuredContent === undefined ? [] : [Content.text(JSON.stringify(structuredContent))]

const whole = ({ _meta, content, isError }: Extras, structuredContent: unknown): Wire.CallToolResult => ({
  content: content === undefined ? asText(structuredContent) : details.checkBlocks(Content.blocks(content)),
  ...(structuredContent === undefined ? undefined : { structuredContent }),
  ...(isError === undefined ? undefined : { isError }),
  ...(_meta === undefined ? undefined : { _meta })
})

/** From what a handler answers to the result; later, where the output schema takes its time. */
const answering = <Output>(output: Writer<Output> | undefined): (value: unknown) => Soon<Wire.CallToolResult> => {
  const plain = (value: unknown): Wire.CallToolResult =>
    value instanceof ToolResult
      ? whole(value.parts, (value as ToolResult<unknown>).parts.structured)
      : { content: value === undefined ? [] : details.checkBlocks(Content.blocks(value as Content.Input)) }
  if (output === undefined) return plain
  const write = output.compile()
  return (value) => {
    const parts: Parts<unknown> = value instanceof ToolResult ? value.parts : { structured: value }
    // "If an output schema is provided: servers MUST provide structured results that conform to this schema." A failure need not.
    if (parts.structured === undefined && parts.isError === true) return whole(parts, undefined)
    const written = write(parts.structured as Output)
    return Predicate.isPromiseLike(written)
      ? written.then((structured) => whole(parts, structured))
      : whole(parts, written)
  }
}

/** The function that runs a tool's calls. Its schemas are compiled here, once. */
export const make = <Input, Output, E extends HandlerError>(
  tool: Schemas<Input, Output>,
  handler: (input: Input) => Effect.Effect<unknown, E, McpRequest>
): ToolEntry["call"] => {
  const read = tool.input?.compile()
  const answer = answering(tool.output)

  const settle: (effect: Effect.Effect<unknown, E, McpRequest>) => Effect.Effect<Wire.CallToolResult, E, McpRequest> =
    tool.output?.foreign === true
      ? (effect) => Effect.flatMap(effect, (value) => now(answer(value)))
      : (effect) => Effect.map(effect, answer as (value: unknown) => Wire.CallToolResult)

  const run = (input: Input): Handled<Wire.CallToolResult> => Effect.catch(settle(handler(input)), recover)

  const enter = (input: Result.Result<Input, string>, revision: string): Handled<Wire.CallToolResult> =>
    Result.isSuccess(input) ? run(input.success) : badArguments(tool.name, input.failure, revision)

  return (args: JsonObject, { caller }) => {
    if (read === undefined) return run({} as Input)
    const input = read(args)
    return Predicate.isPromiseLike(input)
      ? Effect.flatMap(now(input), (input) => enter(input, caller.revision))
      : enter(input, caller.revision)
  }
}

/** What is there, or will be; what it is rejected with is a defect. */
const now = <A>(value: Soon<A>): Effect.Effect<A> =>
  Predicate.isPromiseLike(value) ? Effect.promise(() => value as Promise<A>) : Effect.succeed(value)
