/**
 * The level of the log messages that the host wants, on whatever line there is.
 */
import type { LoggingLevel } from "@skein/protocol/Logging"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import type { ClientError } from "../ClientError.ts"
import type { ClientContext } from "./calls/context.ts"
import { send } from "./calls/send.ts"
import { closedFor, unsupportedOn } from "./calls/support.ts"
import type { Line } from "./connection/connection.ts"
import type { RequestOptions } from "./calls/options.ts"

// In the request era the requests carry the level, and the method is gone; the capability is the same.
const timeless = { ...Method.SetLevel, until: undefined }

/** Sets the level. A session that follows on one that was lost is told it again. */
export class LogLevel {
  readonly #desk: ClientContext
  #wanted: LoggingLevel | undefined = undefined

  constructor(desk: ClientContext) {
    this.#desk = desk
    desk.keeper.onReopened((line) => this.#again(line))
  }

  set(level: LoggingLevel, options: RequestOptions | undefined): Effect.Effect<void, ClientError> {
    return Effect.suspend(() => {
      const { keeper } = this.#desk
      const { last } = keeper
      const set = Effect.sync(() => {
        this.#wanted = level
      })
      if (!last.modern) return Effect.andThen(this.#desk.call(Method.SetLevel, { level }, options), set)
      const refused = closedFor(keeper, Method.SetLevel.name) ?? unsupportedOn(this.#desk, last, timeless)
      if (refused !== undefined) return Effect.fail(refused)
      last.level(level)
      return set
    })
  }

  #again(line: Line): Effect.Effect<void> {
    const level = this.#wanted
    if (level === undefined || unsupportedOn(this.#desk, line, timeless) !== undefined) return Effect.void
    if (line.modern) return Effect.sync(() => line.level(level))
    return Effect.match(send(line, Method.SetLevel.name, { level }, {}), {
      onFailure: (error) => this.#desk.warn("The level of the server's log messages was not set again:", error.message),
      onSuccess: () => {}
    })
  }
}
