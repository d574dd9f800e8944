/**
 * A tool that closes the SSE stream of its call. The client reconnects to receive the result.
 */
import * as Polling from "@skein/server/Polling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"

export const polling = Tool.layer(
  Tool.make("test_reconnection", { description: "Closes the stream of the call; the client reconnects." }),
  () => Effect.as(Effect.andThen(Polling.disconnect(), Effect.sleep("100 millis")), "Received after a reconnect.")
)
