/**
 * Logging to clients: the logs of handlers, written with Effect's own functions, reach the clients
 * (`notifications/message`).
 *
 * A client requests a level with `logging/setLevel` for its session up to 2025-11-25. A session without one receives
 * the messages from `defaultLevel` on, which is `info`. Since 2026-07-28 a client requests a level with each request
 * (`io.modelcontextprotocol/logLevel`), and receives nothing without one.
 *
 * - All logs during a request are forwarded, including those of fibers that the handler forks. Nothing is sent after
 *   the answer. The loggers of the application receive the same messages as without a client.
 * - `Trace` and `Debug` become `debug`, `Info` becomes `info`, `Warn` `warning`, `Error` `error`, and `Fatal`
 *   `critical`. `as` sets any of the eight levels, and `named` sets the name of the logger.
 * - The data is the message, or an object with `message`, `annotations`, `spans` (in milliseconds) and `causes` if the
 *   log has them. The client receives the names and messages of a cause, never a stack.
 * - A client that requests `debug` receives messages that Effect's default minimum (`Info`) suppresses. A
 *   `References.MinimumLogLevel` that the author sets, for the server or for one definition, applies to clients too.
 * - A log call never waits. While the client is slow to read, messages are dropped, and a later message contains their
 *   number.
 *
 * The specification deprecates this feature since 2026-07-28, in favor of stderr and OpenTelemetry. Effect's own
 * loggers and tracers work beside it.
 *
 * **Do not log secrets**: "Log messages MUST NOT contain credentials or secrets, personal identifying information,
 * internal system details that could aid attacks". `Redacted` values stay redacted. Use `withheld` for logs that
 * clients must not receive, or disable the feature with `logging: false`.
 *
 * @example
 * const work = Effect.logInfo("The table is empty").pipe(Logging.as("notice"), Logging.named("database"))
 */
import type { LoggingLevel } from "@skein/protocol/Logging"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** One of the eight levels of syslog (RFC 5424), from `debug` to `emergency`. */
export type Level = LoggingLevel

/** Options of the logs for clients. */
export interface Options {
  /**
   * The level of sessions whose client has not sent `logging/setLevel`: "If no logging/setLevel request has been sent
   * from the client, the server MAY decide which messages to send automatically" (2025-11-25, logging). `info` by
   * default; `false` sends nothing before `logging/setLevel`. It does not apply to the stateless revision, where the
   * server must not send logs that a request does not ask for.
   */
  readonly defaultLevel?: Level | false | undefined
  /**
   * The largest data of one message, in characters of its JSON: 16,384 by default, at least 256. Longer texts are cut
   * with a "…", and further members and items are left out. Raise it for logs with large data.
   */
  readonly maxChars?: number | undefined
}

/** The level that clients receive for the logs of this fiber, instead of Effect's level. Set it with `as`. */
export const CurrentLevel: Context.Reference<Level | undefined> = Context.Reference<Level | undefined>(
  "@skein/server/Logging/Level",
  { defaultValue: () => undefined }
)

/** The `logger` that clients receive for the logs of this fiber. Set it with `named`. */
export const CurrentName: Context.Reference<string | undefined> = Context.Reference<string | undefined>(
  "@skein/server/Logging/Name",
  { defaultValue: () => undefined }
)

/** Whether the logs of this fiber are hidden from clients. Set it with `withheld`. */
export const Withheld: Context.Reference<boolean> = Context.Reference("@skein/server/Logging/Withheld", {
  defaultValue: () => false
})

/**
 * Sets the level that clients receive for the logs of an effect. The loggers of the application receive Effect's level.
 *
 * @example
 * Effect.logInfo("The table is empty").pipe(Logging.as("notice"))
 */
export const as = (level: Level) => <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, CurrentLevel, level)

/**
 * Sets the `logger` that clients receive for the logs of an effect. "Servers SHOULD use consistent logger names."
 *
 * @example
 * const search = Effect.logInfo("index opened").pipe(Logging.named("search"))
 */
export const named = (logger: string) => <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, CurrentName, logger)

/**
 * Hides the logs of an effect from clients. The loggers of the application receive them.
 *
 * @example
 * const charge = Effect.logDebug("charged", { card }).pipe(Logging.withheld)
 */
export const withheld = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Withheld, true)
