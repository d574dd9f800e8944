/**
 * The options `logger`, `level` and `telemetry` of servers, clients and pools, as services of Effect. The modules of spans
 * and metrics are loaded by programs that use them.
 */
import type * as ClientTelemetryModule from "@skein/client/Telemetry"
import * as Trace from "@skein/runtime/Trace"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import { levels, type Logger, loggersOf, type LogLevel } from "./logger.ts"
import type { ClientTelemetry, ServerTelemetry } from "./openTelemetry.ts"

/** The logs of a server, a client or a pool. */
export interface Logged {
  /**
   * Receives the events of the runtime, and the logs of handlers: pino, winston, `console`, or any object with `info` and
   * `error`. Without it, a process that `runStdio` or `runHttp` runs writes its logs to stderr, and any other one to stdout.
   */
  readonly logger?: Logger | undefined
  /** The least severe level of these logs: `info` by default. */
  readonly level?: LogLevel | undefined
}

/** The options of a server. */
export interface ObservedServer extends Logged {
  /** Records a span for each request, and metrics, with OpenTelemetry's API. Nothing by default. */
  readonly telemetry?: ServerTelemetry | undefined
}

/** The options of a client or a pool. */
export interface ObservedClient extends Logged {
  /**
   * Records a span for each request, with OpenTelemetry's API, and sends its `traceparent` to servers. Nothing by default.
   */
  readonly telemetry?: ClientTelemetry | undefined
}

/** The telemetry of the server that a definition belongs to, for definitions that record more than requests. */
export const CurrentTelemetry: Context.Reference<ServerTelemetry | undefined> = Context.Reference<
  ServerTelemetry | undefined
>("skein/internal/CurrentTelemetry", { defaultValue: () => undefined })

/** The loggers and the level of a program, as services. */
const logged = ({ level, logger }: Logged): Context.Context<never> => {
  const loggers = logger === undefined
    ? Context.empty()
    : Context.make(References.CurrentLoggers, loggersOf(logger))
  return level === undefined ? loggers : Context.add(loggers, References.MinimumLogLevel, levels[level])
}

/** The logs of a process, for the core. They include those of its start and its end, which no service reaches. */
export const processLogs = ({ level, logger }: Logged) => ({
  ...(logger === undefined ? undefined : { loggers: loggersOf(logger) }),
  ...(level === undefined ? undefined : { logLevel: levels[level] })
})

/** Throws for a value that is not the telemetry of a server or a client, such as the API itself. */
const checked = <T extends ClientTelemetry | ServerTelemetry>(telemetry: T): T => {
  if (typeof telemetry.api?.context?.with === "function" && telemetry.api.ROOT_CONTEXT !== undefined) return telemetry
  throw new TypeError(
    "the option telemetry needs OpenTelemetry's API: { api }, with import * as api from \"@opentelemetry/api\""
  )
}

const load = <A>(module: () => Promise<A>): Effect.Effect<A> => Effect.promise(module)

/** The tracer and the metrics of a server, as services. */
const traced = (telemetry: ServerTelemetry): Layer.Layer<never> => {
  const { api, meter, metrics, spans, tracer } = telemetry
  const spanServices = Effect.map(
    load(() => import("./otelTracer.ts")),
    ({ around, makeTracer }) =>
      Context.make(Tracer.Tracer, makeTracer(api, tracer)).pipe(
        Context.add(Trace.Around, () => around(api))
      )
  )
  const registry = Effect.flatMap(load(() => import("./otelMetrics.ts")), ({ OtelRegistry }) =>
    Effect.acquireRelease(
      Effect.sync(() => new OtelRegistry(meter ?? api.metrics.getMeter("skein"))),
      (registry) => Effect.sync(() => registry.close())
    ))
  return Layer.mergeAll(
    Layer.succeed(CurrentTelemetry, telemetry),
    spans === false ? Layer.empty : Layer.effectContext(spanServices),
    metrics === false
      ? Layer.empty
      : Layer.effectContext(Effect.map(registry, (registry) => Context.make(Metric.MetricRegistry, registry)))
  )
}

/** The services of a server. Provide them to it, and merge them into its layer for the transport that serves it. */
export const observed = ({ telemetry, ...options }: ObservedServer): Layer.Layer<never> => {
  const logs = Layer.succeedContext(logged(options))
  return telemetry === undefined ? logs : Layer.merge(logs, traced(checked(telemetry)))
}

/** The definitions that record the requests of a server. They come before all others. */
export const recorded = ({ telemetry }: ObservedServer) =>
  telemetry === undefined
    ? []
    : [Layer.unwrap(Effect.map(load(() => import("@skein/server/Telemetry")), ({ layer }) => layer(telemetry)))]

/** The options of the core's client or pool, for those of the facade. */
export const observedClient = async ({ telemetry, ...options }: ObservedClient): Promise<{
  readonly services?: () => Context.Context<never>
  readonly telemetry?: ClientTelemetryModule.Telemetry
}> => {
  const logs = logged(options)
  if (telemetry === undefined) return logs.mapUnsafe.size === 0 ? {} : { services: () => logs }
  const { api, tracer } = checked(telemetry)
  const { aroundCall, makeTracer } = await import("./otelTracer.ts")
  const { make } = await import("@skein/client/Telemetry")
  const fixed = Context.add(logs, Tracer.Tracer, makeTracer(api, tracer))
  return { services: () => Context.merge(fixed, aroundCall(api)), telemetry: make(telemetry) }
}
