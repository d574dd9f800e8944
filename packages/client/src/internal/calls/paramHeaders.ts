/**
 * The HTTP headers that repeat a part of a tool call's parameters (2026-07-28), and the list of tools that declares
 * them.
 */
import { serverErrorOf } from "../base/errors.ts"
import type { CallToolRequestParams } from "@skein/protocol/CallTool"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { ClientError, Timeout } from "../../ClientError.ts"
import type { CallContext, CallHandler, CallLayer } from "./context.ts"
import { encodeParams } from "./send.ts"
import { mirrors } from "./toolCatalog.ts"
import { remainingTime } from "../base/callOptions.ts"
import { refreshed } from "./toolListRefresh.ts"

const isMismatch = (error: ClientError): boolean => serverErrorOf(error)?.reason === "HeaderMismatch"

/** The failure of a call that was not sent, because the tools were not listed again in its time. */
export const refreshTimedOut = (name: string): ClientError => {
  const message = `The tool ${JSON.stringify(name)} was not called: the tools were not listed again in time`
  return new ClientError({ reason: new Timeout({ message }), method: "tools/call", undelivered: true })
}

const withHeaders = (next: CallHandler, call: CallContext): ReturnType<CallHandler> => {
  const encoded = encodeParams(call)
  if (Result.isFailure(encoded)) return Effect.fail(encoded.failure)
  const headers = call.client.toolCatalog.headers(encoded.success)
  if (Result.isFailure(headers)) return Effect.fail(headers.failure)
  return next({ ...call, encoded: encoded.success, headers: headers.success })
}

/**
 * Sends a call of a tool with the HTTP headers that repeat a part of its parameters, and again when the server finds
 * headers missing: "the client SHOULD call `tools/list` to check for changes to the tool's `inputSchema`, then retry
 * the original request with the appropriate headers" (2026-07-28, streamable HTTP, client behavior). If the list has
 * changed since the headers were read, it is read again first: the headers MUST be sent. Either happens at most once,
 * and within the time of the call.
 */
export const sendParamHeaders: CallLayer = (next) => (call) => {
  const { client: { toolCatalog, supervisor, toolListRefresh }, connection, method, options, params, sentAt } = call
  if (method.name !== "tools/call" || !mirrors(connection)) {
    return next(call)
  }
  const { name } = params as CallToolRequestParams
  const left = () => remainingTime(supervisor.timeouts, options, supervisor.now() - sentAt)
  const again = (error: ClientError) =>
    Effect.suspend(() => {
      const time = left()
      return Math.min(time.timeout, time.maxTimeout) > 0
        ? withHeaders(next, { ...call, options: { ...options, ...time } })
        : Effect.fail(error)
    })
  if (toolCatalog.outdated(name)) {
    return Effect.andThen(refreshed(call.client, left()), again(refreshTimedOut(name)))
  }
  const { count } = toolListRefresh
  return Effect.catchIf(
    withHeaders(next, call),
    isMismatch,
    // Another call may have listed the tools again since this one was sent.
    (error) =>
      toolListRefresh.count === count ? Effect.andThen(refreshed(call.client, left()), again(error)) : again(error)
  )
}
