/**
 * Polling: lets a client poll for the answer to a long request instead of holding a connection open.
 *
 * @example
 * const slow = Tool.layer(Tool.make("slow"), () =>
 *   Effect.as(Effect.andThen(Polling.disconnect("30 seconds"), Effect.sleep("5 minutes")), "Done"))
 */
import { McpRequest } from "@skein/runtime/RequestContext"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"

/**
 * Closes the HTTP connection on which the client waits for this request. The client reconnects later for the further
 * messages, including the answer ("the server MAY close the connection (without terminating the SSE stream) at any
 * time", 2025-11-25, transports). The handler continues. `retry` is how long the client should wait before it
 * reconnects: the endpoint's `retry` by default, 1 second. It should be shorter than the `retention` of the event
 * store, 5 minutes by default.
 *
 * It may be called repeatedly; each call closes the connection on which the client has reconnected. It does nothing on
 * stdio and in other revisions.
 *
 * @example
 * const report = Tool.layer(Tool.make("report"), () => Effect.andThen(Polling.disconnect("30 seconds"), writeReport))
 */
export const disconnect = (retry?: Duration.Input): Effect.Effect<void, never, McpRequest> =>
  Effect.flatMap(
    McpRequest,
    (request) => request.disconnect(retry === undefined ? undefined : Math.ceil(Duration.toMillis(retry)))
  )
