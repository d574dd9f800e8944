/**
 * The level of the log messages that the host wants, on whatever line there is.
 */
import type { LoggingLevel } from "@skein/protocol/Common"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import type { ClientError } from "../ClientError.ts"
import { call, type Desk, overFor, refusal, send } from "./calls.ts"
import type { Line } from "./line.ts"
import type { RequestOptions } from "./requestOptions.ts"

// In the request era the requests carry the level, and the method is gone; the capability is the same.
const timeless = { ...Method.SetLevel, until: undefined }

/** Gives what sets the level. A session that follows on one that was lost is told it again. */
export const make = (
  desk: Desk
): (level: LoggingLevel, options?: RequestOptions) => Effect.Effect<void, ClientError> => {
  const { keeper, warn } = desk
  let wanted: LoggingLevel | undefined
  const again = (line: Line): Effect.Effect<void> => {
    if (wanted === undefined || refusal(desk, line, timeless) !== undefined) return Effect.void
    if (line.modern) return Effect.sync(() => line.level(wanted!))
    return Effect.match(send(line, Method.SetLevel.name, { level: wanted }, {}), {
      onFailure: (error) => warn("The level of the server's log messages was not set again:", error.message),
      onSuccess: () => {}
    })
  }
  keeper.onReopened(again)
  return (level, options) =>
    Effect.suspend(() => {
      const { last } = keeper
      const set = Effect.sync(() => {
        wanted = level
      })
      if (!last.modern) return Effect.andThen(call(desk, Method.SetLevel, { level }, options), set)
      const refused = overFor(keeper, Method.SetLevel.name) ?? refusal(desk, last, timeless)
      if (refused !== undefined) return Effect.fail(refused)
      last.level(level)
      return set
    })
}
