/**
 * Letting a client poll for the answer to a long request, instead of holding a connection open for it.
 *
 * @example
 * const slow = Tool.layer(Tool.make("slow"), () =>
 *   Effect.as(Effect.andThen(Polling.disconnect("30 seconds"), Effect.sleep("5 minutes")), "Done"))
 */
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/**
 * Ends the HTTP connection on which the client waits for this request, and lets the client come back for what is said from then
 * on, the answer included ("the server MAY close the connection (without terminating the SSE stream) at any time", 2025-11-25,
 * transports). The handler goes on. `retry` is how long the client shall wait; the endpoint's own `retry` by default, 1 second. It
 * should be less than the event log keeps the answer: 5 minutes by default.
 *
 * May be called as often as wanted: it ends the connection that the client has come back on. Where there is no such thing, on stdio
 * and in other revisions, it does nothing.
 */
export const disconnect = (retry?: Duration.Input): Effect.Effect<void, never, McpRequest> =>
  Effect.flatMap(
    McpRequest,
    (request) => request.disconnect(retry === undefined ? undefined : Math.ceil(Duration.toMillis(retry)))
  )
