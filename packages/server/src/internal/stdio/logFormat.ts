/**
 * The loggers of a process whose logs are read by programs. This module is loaded when such a format is used:
 * `effect/Logger` imports files, streams and queues, a third of the modules that a small server loads.
 *
 * They write to stderr. The stdout of a server on stdio carries protocol messages only, and a server on HTTP that moves
 * to stdio should not lose its logs, or break its connection with them.
 */
import * as Logger from "effect/Logger"

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
