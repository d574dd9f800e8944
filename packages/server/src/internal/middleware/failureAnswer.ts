/** The answers of middleware that refuses a request or discards its result. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import { logValue } from "@skein/protocol/Text"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** A tool's result with `isError`, which every revision has. */
const toolError = (text: string): JsonRpc.JsonObject => ({ content: [{ type: "text", text }], isError: true })

/** Describes a request for a message: `tools/call add`. */
export const describeRequest = (request: Pick<RequestContext, "method" | "target">): string => {
  const name = request.target
  return name === undefined ? logValue(request.method) : `${logValue(request.method)} ${logValue(name)}`
}

/**
 * Answers a request whose handler ran but has no usable result. The answer of a tool is a result with `isError`, from
 * which a model can learn ("Tool Execution Errors contain actionable feedback that language models can use to
 * self-correct"). The answer of any other method is `-32603`. For middleware only: the dispatcher adds `resultType` to
 * what middleware returns.
 */
export const failureAnswer = (
  request: RequestContext,
  text: string,
  data: JsonRpc.JsonObject
): Effect.Effect<JsonRpc.JsonObject, McpError.McpError> =>
  request.method === "tools/call"
    ? Effect.succeed(toolError(text))
    : Effect.fail(McpError.other(-32603, text, data))

/** Formats milliseconds for a message: `250 ms`, `1.5 s`. */
export const formatMillis = (millis: number): string =>
  millis < 1000 ? `${Math.ceil(millis)} ms` : `${Math.ceil(millis / 100) / 10} s`

/** Runs an effect outside of the request, so that its logs are not sent to the client. */
export const withoutRequest = <R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> =>
  Effect.updateContext(effect, (context: Context.Context<R>) => Context.omit(McpRequest)(context) as Context.Context<R>)
