/**
 * A tool that lets its client go, and come back for the answer.
 */
import * as Polling from "@skein/server/Polling"
import * as Tool from "@skein/server/Tool"
import * as Effect from "effect/Effect"

export const polling = Tool.layer(
  Tool.make("test_reconnection", { description: "Closes the stream while it works; its client comes back." }),
  () => Effect.as(Effect.andThen(Polling.disconnect(), Effect.sleep("100 millis")), "You have come back for this.")
)
