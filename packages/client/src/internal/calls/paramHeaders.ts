/**
 * The HTTP headers that repeat a part of a tool call's parameters (2026-07-28), and the list of tools that declares
 * them.
 */
import { serverErrorOf } from "../base/errors.ts"
import type { CallToolRequestParams } from "@skein/protocol/CallTool"
import * as Effect from "effect/Effect"
import { ClientError, Timeout } from "../../ClientError.ts"
import type { CallLayer } from "./context.ts"
import { mirrors } from "./toolCatalog.ts"
import { remainingTime } from "../base/callOptions.ts"

const isMismatch = (error: ClientError): boolean => serverErrorOf(error)?.reason === "HeaderMismatch"

/** The failure of a call that was not sent, because the tools were not listed again in its time. */
export const refreshTimedOut = (name: string): ClientError => {
  const message = `The tool ${JSON.stringify(name)} was not called: the tools were not listed again in time`
  return new ClientError({ reason: new Timeout({ message }), method: "tools/call", undelivered: true })
}

/**
 * Lists the tools again if the HTTP headers of a call, which repeat a part of its parameters, may be wrong. Either
 * happens at most once, and within the time of the call:
 *
 * - before the call is sent, if the list has changed since the headers were read: the headers MUST be sent;
 * - after the server finds headers missing: "the client SHOULD call `tools/list` to check for changes to the tool's
 *   `inputSchema`, then retry the original request with the appropriate headers" (2026-07-28, streamable HTTP, client
 *   behavior).
 */
export const refreshParamHeaders: CallLayer = (next) => (call) => {
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
        ? next({ ...call, options: { ...options, ...time } })
        : Effect.fail(error)
    })
  if (toolCatalog.outdated(name)) {
    return Effect.andThen(toolListRefresh.within(left()), again(refreshTimedOut(name)))
  }
  const { count } = toolListRefresh
  return Effect.catchIf(
    next(call),
    isMismatch,
    // Another call may have listed the tools again since this one was sent.
    (error) =>
      toolListRefresh.count === count ? Effect.andThen(toolListRefresh.within(left()), again(error)) : again(error)
  )
}
