/**
 * Forwards Effect's logs to clients as `notifications/message`. `Logging.ts` describes the behavior for authors.
 */
import type { LoggingLevel, LoggingMessageNotificationParams } from "@skein/protocol/Logging"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { logLevels } from "@skein/protocol/RequestMeta"
import { McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type { LogLevel } from "effect/LogLevel"
import type * as Logger from "effect/Logger"
import { pipeArguments } from "effect/Pipeable"
import * as References from "effect/References"
import * as Logging from "../../Logging.ts"
import type { Fibers } from "./fibers.ts"
import { toBoundedJson } from "./json.ts"

/** From the least severe to the most. */
const rank = Object.fromEntries(logLevels.map((level, i) => [level, i])) as { readonly [l: string]: number }

/** The levels that clients receive instead of Effect's; `debug` for all others. */
const levels: ReadonlyMap<LogLevel, LoggingLevel> = new Map([
  ["Info", "info"],
  ["Warn", "warning"],
  ["Error", "error"],
  ["Fatal", "critical"]
])

/**
 * Whether the minimum level was lowered because a client requested `debug`. The other loggers then skip messages below
 * Effect's default.
 */
const Lowered: Context.Reference<boolean> = Context.Reference("@skein/server/internal/Lowered", {
  defaultValue: () => false
})

const isQuiet = (level: LogLevel): boolean => level === "Debug" || level === "Trace"

/** Lowers the minimum log level of a request, so that its client receives debug messages. */
export const lowerMinimum = <R>(context: Context.Context<R>): Context.Context<R> =>
  Context.add(Context.add(context, References.MinimumLogLevel, "Trace"), Lowered, true)

type Loggers = ReadonlySet<Logger.Logger<unknown, unknown>>

/** The forwarder of the server that handles the current request. */
export class CurrentForwarder
  extends Context.Service<CurrentForwarder, LogForwarder>()("@skein/server/internal/Logs")
{}

/**
 * An additional logger. It sends a message to the client of the current request if the client has requested the level.
 */
export class LogForwarder {
  readonly defaultLevel: LoggingLevel | undefined
  /** Whether the server was built with its own loggers. */
  readonly own: boolean
  readonly #maxChars: number
  readonly #fibers: Fibers
  readonly #logger: Logger.Logger<unknown, void>
  // The requests whose client is slow to read, with the number of dropped messages.
  readonly #slow = new Map<RequestContext, { dropped: number }>()

  // The wrapped loggers of the application.
  readonly #wrapped = new WeakSet<object>()

  constructor(
    { maxChars, defaultLevel }: Logging.Options,
    fibers: Fibers,
    context: Context.Context<never>
  ) {
    this.defaultLevel = defaultLevel === false ? undefined : defaultLevel ?? "info"
    this.own = context.mapUnsafe.has(References.CurrentLoggers.key)
    this.#maxChars = Math.max(256, maxChars ?? 16_384)
    this.#fibers = fibers
    this.#logger = makeLogger((entry) => this.#log(entry))
  }

  /** Adds this logger to the loggers among the services that handlers start with. */
  addTo<R>(context: Context.Context<R>): Context.Context<R> {
    const loggers = this.beside(Context.get(context, References.CurrentLoggers))
    return Context.add(
      Context.add(context, References.CurrentLoggers, loggers),
      CurrentForwarder,
      this
    ) as Context.Context<R>
  }

  /** Adds this logger to those of the application. */
  beside(loggers: Loggers): Loggers {
    return new Set([...Array.from(loggers, (logger) => this.#wrap(logger)), this.#logger])
  }

  /**
   * Wraps a logger of the application. It receives the messages that it would receive if no client had requested
   * `debug`.
   */
  #wrap(logger: Logger.Logger<unknown, unknown>): Logger.Logger<unknown, unknown> {
    if (logger === this.#logger || this.#wrapped.has(logger)) return logger
    const quiet = makeLogger((entry) => {
      if (!(isQuiet(entry.logLevel) && entry.fiber.getRef(Lowered))) logger.log(entry)
    })
    this.#wrapped.add(quiet)
    return quiet
  }

  /**
   * Sends a message of another server to the client of a request, if the client has requested its level. The data is cut
   * as that of other messages.
   */
  forward(request: RequestContext, { data, level, logger }: LoggingMessageNotificationParams): void {
    const requested = request.caller.logLevel
    if (requested === undefined || rank[level]! < rank[requested]!) return
    this.#offer(request, level, logger, () => data)
  }

  #log(entry: Logger.Options<unknown>): void {
    const { fiber } = entry
    const request = Context.getOrUndefined(fiber.context, McpRequest)
    const requested = request?.caller.logLevel
    if (request === undefined || requested === undefined) return
    // A server in the process of its client may have the loggers of the server that the client runs in.
    if (Context.getOrUndefined(fiber.context, CurrentForwarder) !== this) return
    const level = fiber.getRef(Logging.CurrentLevel) ?? levels.get(entry.logLevel) ?? "debug"
    if (rank[level]! < rank[requested]! || fiber.getRef(Logging.Withheld)) return
    // "The server MUST NOT deliver it on a subscriptions/listen stream" (2026-07-28, logging).
    if (request.method === "subscriptions/listen") return
    this.#offer(request, level, fiber.getRef(Logging.CurrentName), () => dataOf(entry))
  }

  /** Sends a message, or drops it if the client is slow to read. */
  #offer(request: RequestContext, level: LoggingLevel, logger: string | undefined, data: () => unknown): void {
    const slow = this.#slow.get(request)
    if (slow !== undefined) return void slow.dropped++
    const bounded = toBoundedJson(data(), this.#maxChars)
    this.#send(request, { level, ...(logger === undefined ? undefined : { logger }), data: bounded })
  }

  #send(request: RequestContext, params: JsonObject): void {
    const waiting = this.#fibers.fork(request.notify("notifications/message", params))
    if (waiting === undefined) return
    const slow = { dropped: 0 }
    this.#slow.set(request, slow)
    waiting.addObserver(() => {
      this.#slow.delete(request)
      const { dropped } = slow
      const requested = request.caller.logLevel
      if (dropped === 0 || requested === undefined) return
      const level = rank[requested]! > rank["warning"]! ? requested : "warning"
      this.#send(request, { level, data: `${dropped} log messages were dropped: the client was slow to read` })
    })
  }
}

/** Makes the data of a log message. */
const dataOf = ({ cause, date, fiber, message }: Logger.Options<unknown>): unknown => {
  const logged = Array.isArray(message) && message.length === 1 ? message[0] : message
  // The annotations of telemetry are for the operator only.
  const { [spanKey]: _span, [traceKey]: _trace, ...annotations } = fiber.getRef(References.CurrentLogAnnotations)
  const spans = fiber.getRef(References.CurrentLogSpans)
  const annotated = Object.keys(annotations).length > 0
  if (!annotated && spans.length === 0 && cause.reasons.length === 0) return logged
  return {
    message: logged,
    annotations: annotated ? annotations : undefined,
    spans: spans.length === 0
      ? undefined
      : Object.fromEntries(spans.map(([label, start]) => [label, date.getTime() - start])),
    causes: cause.reasons.length === 0
      ? undefined
      : Cause.prettyErrors(cause).map(({ name, message }) => `${name}: ${message}`)
  }
}

/**
 * Adds the forwarder to the captured loggers of a definition that has its own, so that clients receive its logs too.
 */
export const overrideLoggers = (
  missing: ReadonlyArray<[string, unknown]>,
  base: Context.Context<never>
): ReadonlyArray<[string, unknown]> => {
  const forwarder = Context.getOrUndefined(base, CurrentForwarder)
  if (forwarder === undefined) return missing
  const all = missing.map(([key, value]): [string, unknown] =>
    key === References.CurrentLoggers.key ? [key, forwarder.beside(value as Loggers)] : [key, value]
  )
  // A minimum level of the definition was set by its author and applies to clients too.
  return all.some(([key]) => key === References.MinimumLogLevel.key) ? [...all, [Lowered.key, false]] : all
}

/** The services of the current request that a definition added by its handler must not capture. */
export const requestScopedKeys = (captured: Context.Context<never>): ReadonlySet<string> => {
  const marks = [References.CurrentLogAnnotations.key, References.CurrentLogSpans.key]
  // The minimum level was lowered for the client of the current request only.
  const lowered = captured.mapUnsafe.get(Lowered.key) === true ? [Lowered.key, References.MinimumLogLevel.key] : []
  return new Set([...marks, ...lowered])
}

/**
 * Merges the services of a transport with those of the server, which take precedence. If the server was built without
 * its own loggers, the loggers of the transport stay.
 */
export const withServerServices = <R>(
  context: Context.Context<R>,
  base: Context.Context<never>
): Context.Context<R> => {
  const merged = Context.merge(context, base)
  const forwarder = Context.getOrUndefined(base, CurrentForwarder)
  const loggers = context.mapUnsafe.get(References.CurrentLoggers.key) as Loggers | undefined
  if (forwarder === undefined || forwarder.own || loggers === undefined) return merged
  return Context.add(merged, References.CurrentLoggers, forwarder.beside(loggers))
}

/**
 * A logger without `effect/Logger`. That module imports files, streams and queues: a third of the modules that a small
 * server loads.
 */
class LoggerImpl {
  readonly "~effect/Logger" = "~effect/Logger"
  readonly log: (entry: Logger.Options<unknown>) => void

  constructor(log: (entry: Logger.Options<unknown>) => void) {
    this.log = log
  }

  pipe(): unknown {
    return pipeArguments(this, arguments)
  }
}

/** Does what `Logger.make` does. */
const makeLogger = (log: (entry: Logger.Options<unknown>) => void): Logger.Logger<unknown, void> =>
  new LoggerImpl(log) as LoggerImpl & Pick<Logger.Logger<unknown, void>, "pipe">

/** The log annotations with the ids of the trace and the span. */
export const traceKey = "trace_id"
export const spanKey = "span_id"
