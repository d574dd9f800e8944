/** What a middleware answers in the place of a handler. */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { logged } from "../text.ts"
import { namedBy } from "../dispatch/target.ts"

/** A tool's result that says that it failed. Every revision has it. */
const toolError = (text: string): JsonRpc.JsonObject => ({ content: [{ type: "text", text }], isError: true })

/** The request, for people: `tools/call add`. */
export const describeRequest = (exchange: RequestContext): string => {
  const name = namedBy(exchange)
  return name === undefined ? logged(exchange.method) : `${logged(exchange.method)} ${logged(name)}`
}

/**
 * The handler ran, and nothing comes of it: for a tool that is a result with `isError`, from which a model can learn ("Tool
 * Execution Errors contain actionable feedback that language models can use to self-correct"); otherwise it is `-32603`.
 */
export const failRequest = (
  exchange: RequestContext,
  text: string,
  data: JsonRpc.JsonObject
): Effect.Effect<JsonRpc.JsonObject, McpError.McpError> =>
  exchange.method === "tools/call"
    ? Effect.succeed(toolError(text))
    : Effect.fail(McpError.other(-32603, text, data))

/** Milliseconds, for people. */
export const formatMillis = (millis: number): string =>
  millis < 1000 ? `${Math.ceil(millis)} ms` : `${Math.ceil(millis / 100) / 10} s`

/** Not in the context of the request: what is logged in there may be meant for the client. */
export const withoutRequest = <R>(effect: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> =>
  Effect.updateContext(effect, (context: Context.Context<R>) => Context.omit(McpRequest)(context) as Context.Context<R>)
