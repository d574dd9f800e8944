/**
 * The level of log messages that the host has set, across connections.
 */
import type { LoggingLevel } from "@skein/protocol/Logging"
import * as Method from "@skein/protocol/Method"
import * as Effect from "effect/Effect"
import type { ClientError } from "../../ClientError.ts"
import type { ClientContext } from "../calls/context.ts"
import { send } from "../calls/send.ts"
import { closedFor, inLifecycle, unsupportedOn } from "../calls/support.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import type { RequestOptions } from "../base/callOptions.ts"

// The stateless revision sends the level with each request and has no such method, but the same capability.
const timeless = { ...Method.SetLevel, until: undefined }

/** Sets the level, and sets it again on each later connection. */
export class LogLevel {
  readonly #client: ClientContext
  #wanted: LoggingLevel | undefined = undefined

  constructor(client: ClientContext) {
    this.#client = client
    client.supervisor.onReopened((connection) => this.#again(connection))
  }

  set(level: LoggingLevel, options: RequestOptions | undefined): Effect.Effect<void, ClientError> {
    const { supervisor } = this.#client
    return inLifecycle(supervisor, (isStateless) => {
      const { last } = supervisor
      const set = Effect.sync(() => {
        this.#wanted = level
      })
      if (!isStateless) return Effect.andThen(this.#client.call(Method.SetLevel, { level }, options), set)
      const refused = closedFor(supervisor, Method.SetLevel.name) ?? unsupportedOn(this.#client, last, timeless)
      if (refused !== undefined) return Effect.fail(refused)
      last.setLogLevel(level)
      return set
    })
  }

  #again(connection: NegotiatedConnection): Effect.Effect<void> {
    const level = this.#wanted
    if (level === undefined || unsupportedOn(this.#client, connection, timeless) !== undefined) return Effect.void
    if (connection.isStateless) return Effect.sync(() => connection.setLogLevel(level))
    return Effect.match(send(connection, Method.SetLevel.name, { level }, {}), {
      onFailure: (error) =>
        this.#client.warn("The level of the server's log messages was not set again:", error.message),
      onSuccess: () => {}
    })
  }
}
