/**
 * What a handler logs with Effect's own functions reaches the client that asked for it (`notifications/message`): at the level of
 * `logging/setLevel`, which holds for the session, up to 2025-11-25, and at the one that the request itself names since
 * 2026-07-28 (`io.modelcontextprotocol/logLevel`). Whoever has not asked gets nothing.
 *
 * - Everything that is logged while the request is handled counts, in the fibers that the handler forks too; after the answer
 *   nothing is sent. The host's own loggers go on as before, and hear nothing more for it.
 * - `Trace` and `Debug` are `debug`, `Info` is `info`, `Warn` is `warning`, `Error` is `error`, `Fatal` is `critical`. With `as` a
 *   message is at any of the eight levels; with `named` it says which part of the server speaks.
 * - The data is the message, or an object of `message`, `annotations`, `spans` (milliseconds) and `causes`, where there are such. Of a
 *   cause the client gets names and messages, never a stack.
 * - A client that asks for `debug` gets what Effect's own default minimum (`Info`) holds back. A `References.MinimumLogLevel` that
 *   the author has set, for the server or for one definition, holds for clients too.
 * - A log call never waits. While the client is slow to read, messages are dropped, and it is told how many when it reads again.
 *   That is the limit of the rate.
 *
 * The specification has deprecated it since 2026-07-28, in favour of stderr and of OpenTelemetry; both are Effect's own loggers and
 * tracers, which go on beside this.
 *
 * **Secrets are the author's matter**: "Log messages MUST NOT contain credentials or secrets, personal identifying information,
 * internal system details that could aid attacks". `Redacted` values stay so. What no client may have is logged `withheld`, or
 * the server takes no part in it, with `logging: false`.
 *
 * @example
 * const work = Effect.logInfo("The table is empty").pipe(Logging.as("notice"), Logging.named("database"))
 */
import type { LoggingLevel } from "@skein/protocol/Logging"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"

/** One of the eight levels of syslog (RFC 5424), from `debug` to `emergency`. */
export type Level = LoggingLevel

/** How a server tells clients its logs. */
export interface Options {
  /**
   * What clients of a session get that have not said `logging/setLevel`: "If no logging/setLevel request has been sent from the
   * client, the server MAY decide which messages to send automatically". Nothing by default.
   */
  readonly defaultLevel?: Level | undefined
  /**
   * How large the data of one message may be, in characters of its JSON: 16,384 by default, 256 at least. Texts are cut there
   * with a "…", and members and items beyond are left out.
   */
  readonly maxMessageChars?: number | undefined
}

/** At which level what is logged here is told to clients, whatever Effect's own level says. */
export const CurrentLevel: Context.Reference<Level | undefined> = Context.Reference<Level | undefined>(
  "@skein/server/Logging/Level",
  { defaultValue: () => undefined }
)

/** The `logger` of what is logged here. */
export const CurrentName: Context.Reference<string | undefined> = Context.Reference<string | undefined>(
  "@skein/server/Logging/Name",
  { defaultValue: () => undefined }
)

/** Whether clients hear nothing of what is logged here. */
export const Withheld: Context.Reference<boolean> = Context.Reference("@skein/server/Logging/Withheld", {
  defaultValue: () => false
})

/** What the effect logs is at this level for clients; for the host's loggers it stays what it is. */
export const as = (level: Level) => <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, CurrentLevel, level)

/** What the effect logs comes from this part of the server. "Servers SHOULD use consistent logger names." */
export const named = (logger: string) => <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, CurrentName, logger)

/** What the effect logs is for the host's loggers alone. */
export const withheld = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, Withheld, true)
