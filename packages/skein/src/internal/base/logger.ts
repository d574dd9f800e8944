/**
 * Loggers of other libraries, as loggers of Effect.
 */
import * as Cause from "effect/Cause"
import type * as EffectLevel from "effect/LogLevel"
import * as EffectLogger from "effect/Logger"
import * as Predicate from "effect/Predicate"
import * as References from "effect/References"

/** The data of an event: the members of logged objects, and `err` for an error. */
export interface LogFields {
  readonly [name: string]: unknown
}

/**
 * A logger: one of pino or winston, `console`, or any object with these methods. Each event is one call, with its message
 * and its fields. A logger of pino is called with the fields first.
 *
 * @example
 * new AsyncServer({ name: "shop", version: "1.0.0", logger: pino(pino.destination(2)) })
 */
export interface Logger {
  info(message: string, fields: LogFields): unknown
  error(message: string, fields: LogFields): unknown
  /** Warnings go to `info` without it. */
  warn?(message: string, fields: LogFields): unknown
  /** Events of the level `debug` go to `info` without it. */
  debug?(message: string, fields: LogFields): unknown
}

/** The least severe level of events. */
export type LogLevel = "debug" | "info" | "warn" | "error"

type Method = keyof Logger

const methods: { readonly [level in EffectLevel.LogLevel]?: Method } = {
  Fatal: "error",
  Error: "error",
  Warn: "warn",
  Debug: "debug",
  Trace: "debug"
}

/** The level of Effect that a level stands for. */
export const levels: { readonly [level in LogLevel]: EffectLevel.LogLevel } = {
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  error: "Error"
}

/** Whether a logger takes the fields before the message. Loggers of pino and their children have this symbol. */
const isFieldsFirst = (logger: object): boolean => Symbol.for("pino.serializers") in logger

/**
 * Makes the loggers of a program of the logger that a user passes. They replace Effect's logger for the console, and not
 * the one that adds logs to the current span.
 */
export const loggersOf = (logger: Logger): ReadonlySet<EffectLogger.Logger<unknown, unknown>> => {
  if (typeof logger?.info !== "function" || typeof logger.error !== "function") {
    throw new TypeError("the option logger must have the methods info and error, as pino, winston and console have")
  }
  const fieldsFirst = isFieldsFirst(logger)
  const write = (level: EffectLevel.LogLevel, message: string, fields: LogFields): void => {
    const wanted = methods[level] ?? "info"
    const method = typeof logger[wanted] === "function" ? wanted : "info"
    const call = logger[method] as (...args: ReadonlyArray<unknown>) => unknown
    if (fieldsFirst) call.call(logger, fields, message)
    else call.call(logger, message, fields)
  }
  const own = EffectLogger.make((entry) => {
    const { fields, message } = eventOf(entry)
    try {
      write(entry.logLevel, message, fields)
    } catch (error) {
      // A logger that is closed, for example, must not fail the request that logs, nor lose its event.
      EffectLogger.defaultLogger.log({ ...entry, cause: Cause.combine(entry.cause, Cause.die(error)) })
    }
  })
  return new Set([own, EffectLogger.tracerLogger])
}

/** The message of a log, which consists of its texts, and its fields. */
const eventOf = (
  { cause, date, fiber, message }: EffectLogger.Options<unknown>
): { readonly message: string; readonly fields: LogFields } => {
  const texts: Array<string> = []
  const values: Array<unknown> = []
  const errors = Cause.prettyErrors(cause)
  const fields: Record<string, unknown> = { ...fiber.getRef(References.CurrentLogAnnotations) }
  for (const part of Array.isArray(message) ? message : [message]) {
    if (part instanceof Error) errors.push(...Cause.prettyErrors(Cause.die(part)))
    else if (isPlain(part)) Object.assign(fields, part)
    else if (typeof part === "object" && part !== null) values.push(part)
    else texts.push(String(part))
  }
  const spans = fiber.getRef(References.CurrentLogSpans)
  if (spans.length > 0) {
    fields["spans"] = Object.fromEntries(spans.map(([name, start]) => [name, date.getTime() - start]))
  }
  if (values.length > 0) fields["values"] = values
  const [first, ...more] = errors.map(visible)
  if (first !== undefined) fields["err"] = first
  if (more.length > 0) fields["errors"] = more
  return { message: texts.length === 0 ? first?.message ?? "" : texts.join(" "), fields }
}

const isPlain = (value: unknown): value is LogFields =>
  Predicate.isObject(value) && [null, Object.prototype].includes(Object.getPrototypeOf(value))

/** Makes the members of an error visible for loggers that write the JSON of fields. */
const visible = (error: Error): Error => {
  for (const name of ["name", "message", "stack"] as const) {
    Object.defineProperty(error, name, { value: error[name], enumerable: true, configurable: true, writable: true })
  }
  if (error.cause === undefined) delete error.cause
  return error
}

/**
 * Throws if a logger writes to the file descriptor of stdout, as pino does unless it has another destination. It bypasses
 * `process.stdout`, which a server on stdio redirects to stderr, and would break the connection.
 */
export const refuseStdout = (logger: Logger): void => {
  for (let at: object | null = logger; at !== null; at = Object.getPrototypeOf(at)) {
    const key = Object.getOwnPropertySymbols(at).find(({ description }) => description === "pino.stream")
    if (key === undefined) continue
    const { fd } = (at as { readonly [key: symbol]: { readonly fd?: unknown } })[key]!
    if (fd !== 1) return
    throw new TypeError(
      "the logger writes to stdout, which carries protocol messages on stdio: use pino(pino.destination(2))"
    )
  }
}
