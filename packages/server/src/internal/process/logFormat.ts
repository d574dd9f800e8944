/**
 * The loggers of a process whose logs are read by programs. This module is loaded when such a format is used:
 * `effect/Logger` imports files, streams and queues, a third of the modules that a small server loads.
 *
 * They write to stderr. The stdout of a server on stdio carries protocol messages only, and a server on HTTP that moves
 * to stdio should not lose its logs, or break its connection with them.
 */
import type { LogLevel } from "effect/LogLevel"
import * as Logger from "effect/Logger"

/** The logs of the process. */
export interface LogOptions {
  /**
   * The format of the logs on stderr: `"pretty"`, lines for people, by default; `"json"`, one JSON object per line; or
   * `"logfmt"`, one line of `key=value` pairs. The cause of a failed start has this format too. It is the format of the
   * default logger: loggers of your own (`Logger.layer`) replace it.
   *
   * @example
   * NodeHttp.runMain(Server, { logFormat: "json" })
   */
  readonly logFormat?: "pretty" | "json" | "logfmt" | undefined
  /**
   * Loggers in the place of `logFormat`. They receive all logs of the process, and the cause of a failed start.
   *
   * @example
   * Stdio.runMain(Server, { loggers: new Set([Logger.make(({ message }) => audit.write(message))]) })
   */
  readonly loggers?: ReadonlySet<Logger.Logger<unknown, unknown>> | undefined
  /** The least severe level that is logged: `"Info"` by default. */
  readonly logLevel?: LogLevel | undefined
  /**
   * The beginning of the names of the environment variables that set options: `SKEIN_` by default, as in
   * `SKEIN_LOG_FORMAT`. The guide to HTTP lists the variables. An option in the code wins over its variable. A value that
   * is not valid fails the start. `false` reads no variable.
   */
  readonly environment?: string | false | undefined
}

/** A format for programs. */
export type Format = "json" | "logfmt"

/** One object per line, with the fields of `Logger.formatStructured`: `message`, `level`, `timestamp`, `cause`, … */
const json: Logger.Logger<unknown, void> = /* @__PURE__ */ Logger.withConsoleError(Logger.formatJson)

/** One line of `key=value` pairs. Values with spaces are quoted, and line breaks in them are escaped. */
const logfmt: Logger.Logger<unknown, void> = /* @__PURE__ */ Logger.withConsoleError(Logger.formatLogFmt)

const loggers: { readonly [format in Format]: Logger.Logger<unknown, void> } = { json, logfmt }

/**
 * The loggers of a format, in place of Effect's default loggers: the one that writes lines for people, and the one that
 * adds logs to the current span, which stays.
 */
export const loggersOf = (format: Format): ReadonlySet<Logger.Logger<unknown, unknown>> =>
  new Set([loggers[format], Logger.tracerLogger])
