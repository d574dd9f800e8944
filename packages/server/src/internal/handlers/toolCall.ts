/**
 * Runs the calls of a tool: decodes the arguments, runs the handler, and encodes the result.
 */
import type * as Wire from "@skein/protocol/CallTool"
import * as Json from "@skein/protocol/Json"
import type { Meta } from "@skein/protocol/Message"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Nesting from "@skein/protocol/Nesting"
import { clip } from "@skein/protocol/Text"
import type { McpRequest } from "@skein/runtime/RequestContext"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type { Handled, ToolEntry } from "../../Catalog.ts"
import * as Content from "../../Content.ts"
import type { HandlerError } from "../../HandlerError.ts"
import * as Logging from "../../Logging.ts"
import { Refusal, resultBrand, toContent } from "./toolAnswer.ts"
import { checkBlocks } from "../catalog/validateDefinition.ts"
import type { Reader, Writer } from "../schema/standardReader.ts"
import { isUnknown, messageOf, recordFailure, toolErrorOf } from "./handlerError.ts"
import { maxProblemChars, mismatch } from "../schema/jsonSchema.ts"
import { notAnEffect } from "./wrongAnswer.ts"
import { type Later, mapLater, settle } from "../schema/standardSchema.ts"

/** The members of a result besides structured content. */
export interface ResultOptions {
  /**
   * The content blocks. By default the JSON of the structured content as text, for clients that do not read structured
   * content.
   */
  readonly content?: Content.Input | undefined
  /** Whether the tool failed. */
  readonly isError?: boolean | undefined
  readonly _meta?: Meta | undefined
}

/** The argument of `Tool.result`. */
export interface Parts<out Output> extends ResultOptions {
  readonly structured?: Output | undefined
}

/** A result with structured content, content blocks, or `isError`. Made by `Tool.result`. */
export class ToolResult<out Output> {
  readonly parts: Parts<Output>
  declare readonly [resultBrand]: true

  constructor(parts: Parts<Output>) {
    this.parts = parts
    // A member of the class with a computed name would keep the class in the bundle of a program that does not use it.
    Object.defineProperty(this, resultBrand, { value: true })
  }
}

/** Whether a value is a `ToolResult`, also of the class that the package `skein` has. */
const isToolResult = (value: unknown): value is ToolResult<unknown> => Predicate.hasProperty(value, resultBrand)

const failed = (text: string): Wire.CallToolResult => ({ content: [Content.text(text)], isError: true })

/** The result, or the JSON-RPC error, of a handler that failed. An unknown failure is a defect. */
export const recover = (error: HandlerError): Effect.Effect<Wire.CallToolResult, McpError.McpError> => {
  if (isUnknown(error)) return Effect.die(error)
  const fault = toolErrorOf(error)
  return fault === undefined
    ? Effect.succeed(recordFailure(failed(messageOf(error)), error))
    : Effect.fail(fault)
}

/** The part of a tool's definition that its calls need. */
export interface Schemas<Input, Output> {
  readonly name: string
  readonly input: Reader<Input> | undefined
  readonly output: Writer<Output> | undefined
}

/** "A tool that returns structured content SHOULD also return the serialized JSON in a TextContent block." */
const asText = (structuredContent: unknown): Wire.CallToolResult["content"] =>
  structuredContent === undefined ? [] : [Content.text(Json.stringify(structuredContent)!)]

const toWire = ({ _meta, content, isError }: ResultOptions, structuredContent: unknown): Wire.CallToolResult => ({
  content: content === undefined ? asText(structuredContent) : checkBlocks(Content.blocks(content)),
  ...(structuredContent === undefined ? undefined : { structuredContent }),
  ...(isError === undefined ? undefined : { isError }),
  ...(_meta === undefined ? undefined : { _meta })
})

/**
 * Compiles the function that turns the value of a handler into the result. It returns an effect that logs if the value
 * is refused, and a promise or an effect if the output schema does.
 */
const compileResult = <Output>(
  { name, output }: Pick<Schemas<never, Output>, "name" | "output">
): (value: unknown) => Later<Wire.CallToolResult> => {
  if (output === undefined) {
    return (value) => {
      if (isToolResult(value)) return toWire(value.parts, value.parts.structured)
      const content = toContent(value)
      return content instanceof Refusal ? refuseResult(name, content) : { content: checkBlocks(content) }
    }
  }
  const write = output.compile()
  return (value) => {
    const parts: Parts<unknown> = isToolResult(value) ? value.parts : { structured: value }
    // "If an output schema is provided: servers MUST provide structured results that conform to this schema." A failure
    // need not.
    if (parts.structured === undefined && parts.isError === true) return toWire(parts, undefined)
    return mapLater(write(parts.structured as Output), (written) => toWire(parts, orThrow(name, written)))
  }
}

/** The author reads the log; the model, and the author who tries the tool, read the result. */
const refuseResult = (tool: string, { error, problem }: Refusal): Effect.Effect<Wire.CallToolResult> => {
  const message = `The handler of the tool ${tool} returned ${problem}`
  const logged = error === undefined ? Effect.logError(message) : Effect.logError(message, Cause.die(error))
  return Effect.as(Logging.withheld(logged), failed(message))
}

const orThrow = (tool: string, written: Result.Result<unknown, string>): unknown => {
  if (Result.isFailure(written)) throw outputMismatch(tool, written.failure)
  if (written.success === undefined) throw outputMismatch(tool, "undefined has no JSON form")
  return written.success
}

/** The defect for structured content that does not match the output schema. */
export const outputMismatch = (tool: string, problem: string): Error =>
  mismatch(`The result of the tool ${tool} does not match its output schema`, problem)

/**
 * Answers a call with invalid arguments. Before 2025-11-25 they are protocol errors; since then a model receives the
 * message.
 */
export const refuseArguments = (tool: string, problem: string, revision: string): Handled<Wire.CallToolResult> => {
  const message = `Invalid arguments for tool ${tool}: ${clip(problem, maxProblemChars)}`
  return revision >= "2025-11-25" ? Effect.succeed(failed(message)) : Effect.fail(McpError.invalidParams(message))
}

/** Makes the function that runs a tool's calls. Compiles the schemas of the tool once. */
export const make = <Input, Output, E extends HandlerError>(
  tool: Schemas<Input, Output>,
  handler: (input: Input) => Effect.Effect<unknown, E, McpRequest>
): ToolEntry["call"] => {
  const read = tool.input?.compile()
  // A handler may return a value of the client, which can be nested too deeply to be written.
  const toResult = Nesting.refusing(
    compileResult(tool),
    () => failed(`The result of the tool ${Nesting.problem}`)
  )

  const finish = (effect: Effect.Effect<unknown, E, McpRequest>): Effect.Effect<Wire.CallToolResult, E, McpRequest> =>
    Effect.isEffect(effect)
      ? Effect.flatMap(effect, (value) => settle(toResult(value)))
      : refuseResult(tool.name, new Refusal(notAnEffect(effect, "Tool")))

  const run = (input: Input): Handled<Wire.CallToolResult> => Effect.catch(finish(handler(input)), recover)

  const enter = (input: Result.Result<Input, string>, revision: string): Handled<Wire.CallToolResult> =>
    Result.isSuccess(input) ? run(input.success) : refuseArguments(tool.name, input.failure, revision)

  return (args: JsonObject, { caller }) => {
    if (read === undefined) return run({} as Input)
    const rounded = Json.integerIn(args)
    if (rounded !== undefined) {
      return refuseArguments(tool.name, `${rounded.path} ${Json.problem(rounded)}`, caller.revision)
    }
    const input = read(args)
    return Result.isResult(input)
      ? enter(input, caller.revision)
      : Effect.flatMap(settle(input), (input) => enter(input, caller.revision))
  }
}
