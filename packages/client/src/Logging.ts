/**
 * Writes the log messages of servers to the log of the host. Deprecated since 2026-07-28 (SEP-2577), but supported there:
 * new servers write to stderr, or report to OpenTelemetry.
 *
 * @example
 * ```ts
 * yield* Effect.forkScoped(Logging.forward(client, { level: "info" }), { startImmediately: true })
 * ```
 */
import type { LoggingLevel } from "@skein/protocol/Logging"
import * as Nesting from "@skein/protocol/Nesting"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as LogLevel from "effect/LogLevel"
import * as Stream from "effect/Stream"
import type { Client } from "./Client.ts"
import { printable } from "@skein/protocol/Text"
import type { LoggingMessage } from "./Notification.ts"

/** The options of {@link forward}. */
export interface Options {
  /**
   * The least severe level that the server is asked to send (`client.setLoggingLevel`). Default: the server is not
   * asked. A server that does not declare `logging` is not asked either. If the server refuses the level, a warning is
   * logged. The messages that the server sends anyway are logged in each case.
   */
  readonly level?: LoggingLevel | undefined
}

const severities: Readonly<Record<LoggingLevel, LogLevel.Severity>> = {
  debug: "Debug",
  info: "Info",
  notice: "Info",
  warning: "Warn",
  error: "Error",
  critical: "Fatal",
  alert: "Fatal",
  emergency: "Fatal"
}

/** The level of Effect that is nearest to a level of syslog (RFC 5424). */
export const severity = (level: LoggingLevel): LogLevel.Severity => severities[level]

// The UTF-16 units of a text and of a name. The rest is cut off.
const maxChars = 4_096
const maxName = 128

const textOf = Nesting.refusing(
  (data: unknown) => typeof data === "string" ? data : JSON.stringify(data) ?? String(data),
  () => "(nested too deeply to be written)"
)

const nameOf = ({ label, server }: Client): string => printable(label ?? server?.name ?? "", maxName)

const write = (client: Client, { params: { data, level, logger } }: LoggingMessage) =>
  Effect.annotateLogs(Effect.logWithLevel(severity(level))(printable(textOf(data), maxChars)), {
    "mcp.server": nameOf(client),
    "mcp.level": level,
    ...(logger === undefined ? undefined : { "mcp.logger": printable(logger, maxName) })
  })

/**
 * Logs the messages of the server until the client is closed. Run it in a fiber that a scope owns. Lines are annotated
 * with `mcp.server` (the `label` that the host gives the server, or else the name that the server gives itself),
 * `mcp.level` and `mcp.logger`. Messages of a server are not trusted: each one becomes one line of at most
 * 4,096 characters, in which unprintable characters are escaped. A message that is not a text is written as JSON.
 */
export const forward = (client: Client, options: Options = {}): Effect.Effect<void> => {
  const { level } = options
  const forwarding = Stream.runForEach(client.logs, (message) => write(client, message))
  if (level === undefined) return forwarding
  const asking = Effect.catch(
    client.setLoggingLevel(level),
    ({ message, reason }) =>
      reason._tag === "Unsupported" ? Effect.void : Effect.annotateLogs(
        Effect.logWarning(`The level of the server's log messages could not be set: ${printable(message, maxChars)}`),
        "mcp.server",
        nameOf(client)
      )
  )
  return Effect.flatMap(
    Effect.forkChild(forwarding, { startImmediately: true }),
    (fiber) => Effect.andThen(asking, Fiber.join(fiber))
  )
}
