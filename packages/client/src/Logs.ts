/**
 * The log messages of servers, in the log of the host.
 *
 * @example
 * yield* Effect.forkScoped(Logs.forward(client, { level: "info" }), { startImmediately: true })
 */
import type { LoggingLevel } from "@skein/protocol/Logging"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import type * as LogLevel from "effect/LogLevel"
import * as Stream from "effect/Stream"
import type { Client } from "./Client.ts"
import { printable } from "./internal/text.ts"
import type { LoggingMessage } from "./Notification.ts"

/** How messages are forwarded. */
export interface Options {
  /**
   * The least severe messages that the server is asked for (`client.setLoggingLevel`), once they are listened to: it is not asked by
   * default. Where it cannot be, since the server does not declare `logging` or refuses, a warning says so, and what comes is logged.
   */
  readonly level?: LoggingLevel | undefined
  /** How long a text of the server's may be, in UTF-16 units: 4,096 by default. The rest is cut off, and a "…" says so. */
  readonly maxLength?: number | undefined
}

/** The level of Effect's that a level of syslog (RFC 5424) comes nearest to. */
export const severity = (level: LoggingLevel): LogLevel.Severity => {
  switch (level) {
    case "debug":
      return "Debug"
    case "info":
    case "notice":
      return "Info"
    case "warning":
      return "Warn"
    case "error":
      return "Error"
    case "critical":
    case "alert":
    case "emergency":
      return "Fatal"
  }
}

// Names are shorter than texts.
const maxName = 128

const textOf = (data: unknown): string => {
  if (typeof data === "string") return data
  try {
    return JSON.stringify(data) ?? String(data)
  } catch {
    // Nested deeper than the stack.
    return "(cannot be written)"
  }
}

const nameOf = ({ server }: Client): string => printable(server?.name ?? "", maxName)

const write = (client: Client, { params: { data, level, logger } }: LoggingMessage, maxLength: number) =>
  Effect.annotateLogs(Effect.logWithLevel(severity(level))(printable(textOf(data), maxLength)), {
    "mcp.server": nameOf(client),
    "mcp.level": level,
    ...(logger === undefined ? undefined : { "mcp.logger": printable(logger, maxName) })
  })

/**
 * Logs what the server logs, until the client is closed: run it in a fiber that something owns. Lines are annotated with `mcp.server`,
 * the name that the server gives itself, `mcp.level` and `mcp.logger`. What the server writes is not to be trusted: it is one line of
 * text, in which what is not printable is escaped, of at most `maxLength`; what is no text is written as JSON.
 */
export const forward = (client: Client, options: Options = {}): Effect.Effect<void> => {
  const { level, maxLength = 4096 } = options
  const forwarding = Stream.runForEach(client.logs, (message) => write(client, message, maxLength))
  if (level === undefined) return forwarding
  const asking = Effect.catch(
    client.setLoggingLevel(level),
    ({ message }) =>
      Effect.annotateLogs(
        Effect.logWarning(`The log messages of the server cannot be asked for: ${printable(message, maxLength)}`),
        {
          "mcp.server": nameOf(client)
        }
      )
  )
  return Effect.flatMap(
    Effect.forkChild(forwarding, { startImmediately: true }),
    (fiber) => Effect.andThen(asking, Fiber.join(fiber))
  )
}
