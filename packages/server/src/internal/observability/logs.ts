/**
 * From Effect's logs to `notifications/message`. What it means for authors stands in `Logging.ts`.
 */
import { LoggingLevel } from "@skein/protocol/Common"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import { type Dispatcher, McpRequest, type RequestContext } from "@skein/runtime/RequestContext"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { LogLevel } from "effect/LogLevel"
import type * as Logger from "effect/Logger"
import { pipeArguments } from "effect/Pipeable"
import * as References from "effect/References"
import * as Logging from "../../Logging.ts"
import type { Fibers } from "../dispatch/fibers.ts"
import { toBoundedJson } from "../json.ts"

/** From the least severe to the most. */
const rank = Object.fromEntries(LoggingLevel.literals.map((level, i) => [level, i])) as { readonly [l: string]: number }

const levels: { readonly [level in LogLevel]: LoggingLevel } = {
  All: "debug",
  Trace: "debug",
  Debug: "debug",
  Info: "info",
  Warn: "warning",
  Error: "error",
  Fatal: "critical",
  None: "debug"
}

/** The minimum was lowered for a client's sake: the host's loggers do not hear of what is below Effect's default. */
const Lowered: Context.Reference<boolean> = Context.Reference("@skein/server/internal/Lowered", {
  defaultValue: () => false
})

const isQuiet = (level: LogLevel): boolean => level === "Debug" || level === "Trace"

const lower = <R>(context: Context.Context<R>): Context.Context<R> =>
  Context.add(Context.add(context, References.MinimumLogLevel, "Trace"), Lowered, true)

type Loggers = ReadonlySet<Logger.Logger<unknown, unknown>>

/** Tells clients what is logged while their requests are handled. */
export class CurrentForwarder
  extends Context.Service<CurrentForwarder, LogForwarder>()("@skein/server/internal/Logs")
{}

/** Does nothing until a client asks: it is one more logger, which looks at the request that is being handled. */
export class LogForwarder {
  readonly defaultLevel: LoggingLevel | undefined
  /** Whether the server was built with loggers of its own. */
  readonly own: boolean
  readonly #maxMessageChars: number
  readonly #fibers: Fibers
  readonly #logger: Logger.Logger<unknown, void>
  // The requests whose client is slow to read, and how many messages it has missed.
  readonly #slow = new Map<RequestContext, { dropped: number }>()

  // What was made of the host's loggers.
  readonly #hosts = new WeakSet<object>()

  constructor(
    { maxMessageChars, defaultLevel }: Logging.Options,
    fibers: Fibers,
    context: Context.Context<never>
  ) {
    this.defaultLevel = defaultLevel
    this.own = context.mapUnsafe.has(References.CurrentLoggers.key)
    this.#maxMessageChars = Math.max(256, maxMessageChars ?? 16_384)
    this.#fibers = fibers
    this.#logger = makeLogger((entry) => this.#log(entry))
  }

  /** The services that handlers start with: those that are given, and this logger beside the others. */
  into<R>(context: Context.Context<R>): Context.Context<R> {
    const loggers = this.beside(Context.get(context, References.CurrentLoggers))
    return Context.add(
      Context.add(context, References.CurrentLoggers, loggers),
      CurrentForwarder,
      this
    ) as Context.Context<R>
  }

  /** This logger beside the host's. */
  beside(loggers: Loggers): Loggers {
    return new Set([...Array.from(loggers, (logger) => this.#host(logger)), this.#logger])
  }

  /** A logger of the host's, which hears what it would hear if no client had asked. */
  #host(logger: Logger.Logger<unknown, unknown>): Logger.Logger<unknown, unknown> {
    if (logger === this.#logger || this.#hosts.has(logger)) return logger
    const quiet = makeLogger((entry) => {
      if (!(isQuiet(entry.logLevel) && entry.fiber.getRef(Lowered))) logger.log(entry)
    })
    this.#hosts.add(quiet)
    return quiet
  }

  /** Handles requests so that a client that wants to hear everything does, where the author has set no minimum. */
  around(dispatch: Dispatcher<McpRequest>, base: Context.Context<never>): Dispatcher<McpRequest> {
    if (base.mapUnsafe.has(References.MinimumLogLevel.key)) return dispatch
    return (exchange) =>
      exchange.caller.logLevel === "debug" ? Effect.updateContext(dispatch(exchange), lower) : dispatch(exchange)
  }

  #log(entry: Logger.Options<unknown>): void {
    const { fiber } = entry
    const exchange = Context.getOrUndefined(fiber.context, McpRequest)
    const asked = exchange?.caller.logLevel
    if (exchange === undefined || asked === undefined) return
    const level = fiber.getRef(Logging.CurrentLevel) ?? levels[entry.logLevel]
    if (rank[level]! < rank[asked]! || fiber.getRef(Logging.Withheld)) return
    // "The server MUST NOT deliver it on a subscriptions/listen stream" (2026-07-28, logging).
    if (exchange.method === "subscriptions/listen") return
    const slow = this.#slow.get(exchange)
    if (slow !== undefined) return void slow.dropped++
    const logger = fiber.getRef(Logging.CurrentName)
    this.#send(exchange, {
      level,
      ...(logger === undefined ? undefined : { logger }),
      data: toBoundedJson(dataOf(entry), this.#maxMessageChars)
    })
  }

  #send(exchange: RequestContext, params: JsonObject): void {
    const waiting = this.#fibers.fork(exchange.notify("notifications/message", params))
    if (waiting === undefined) return
    const slow = { dropped: 0 }
    this.#slow.set(exchange, slow)
    waiting.addObserver(() => {
      this.#slow.delete(exchange)
      const { dropped } = slow
      const asked = exchange.caller.logLevel
      if (dropped === 0 || asked === undefined) return
      const level = rank[asked]! > rank["warning"]! ? asked : "warning"
      this.#send(exchange, { level, data: `${dropped} log messages were dropped: the client was slow to read` })
    })
  }
}

/** What is told of a log entry. */
const dataOf = ({ cause, date, fiber, message }: Logger.Options<unknown>): unknown => {
  const said = Array.isArray(message) && message.length === 1 ? message[0] : message
  // What telemetry adds is for the operator.
  const { [spanKey]: _span, [traceKey]: _trace, ...annotations } = fiber.getRef(References.CurrentLogAnnotations)
  const spans = fiber.getRef(References.CurrentLogSpans)
  const annotated = Object.keys(annotations).length > 0
  if (!annotated && spans.length === 0 && cause.reasons.length === 0) return said
  return {
    message: said,
    annotations: annotated ? annotations : undefined,
    spans: spans.length === 0
      ? undefined
      : Object.fromEntries(spans.map(([label, start]) => [label, date.getTime() - start])),
    causes: cause.reasons.length === 0
      ? undefined
      : Cause.prettyErrors(cause).map(({ name, message }) => `${name}: ${message}`)
  }
}

/** The loggers of one definition, where it has its own: clients hear beside them all the same. */
export const overrideLoggers = (
  missing: ReadonlyArray<[string, unknown]>,
  base: Context.Context<never>
): ReadonlyArray<[string, unknown]> => {
  const forwarder = Context.getOrUndefined(base, CurrentForwarder)
  if (forwarder === undefined) return missing
  const all = missing.map(([key, value]): [string, unknown] =>
    key === References.CurrentLoggers.key ? [key, forwarder.beside(value as Loggers)] : [key, value]
  )
  // Its own minimum is the author's word.
  return all.some(([key]) => key === References.MinimumLogLevel.key) ? [...all, [Lowered.key, false]] : all
}

/** What a definition that is added while a request is handled does not keep of it. */
export const requestScopedKeys = (captured: Context.Context<never>): ReadonlySet<string> => {
  const marks = [References.CurrentLogAnnotations.key, References.CurrentLogSpans.key]
  // The minimum that was set for the client that asks now is nobody's word.
  const lowered = captured.mapUnsafe.get(Lowered.key) === true ? [Lowered.key, References.MinimumLogLevel.key] : []
  return new Set([...marks, ...lowered])
}

/**
 * The services that a transport's requests start with: the server's own before those of the transport. Where the server was built
 * without loggers of its own, those of the transport stay.
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

/** What `Logger.make` makes. */
export const makeLogger = (log: (entry: Logger.Options<unknown>) => void): Logger.Logger<unknown, void> =>
  new LoggerImpl(log) as LoggerImpl & Pick<Logger.Logger<unknown, void>, "pipe">

export const traceKey = "trace_id"
export const spanKey = "span_id"
