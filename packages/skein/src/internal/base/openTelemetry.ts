/**
 * The parts of OpenTelemetry's API that spans and metrics need, as types: the package does not depend on that API.
 */

/** A context of OpenTelemetry. */
export interface OtelContext {
  getValue(key: symbol): unknown
  setValue(key: symbol, value: unknown): OtelContext
  deleteValue(key: symbol): OtelContext
}

/** The ids of a span. */
export interface OtelSpanContext {
  readonly traceId: string
  readonly spanId: string
  readonly traceFlags: number
  readonly isRemote?: boolean
  readonly traceState?: OtelTraceState
}

/** The data of tracing systems about a trace. */
export interface OtelTraceState {
  get(key: string): string | undefined
  set(key: string, value: string): OtelTraceState
  unset(key: string): OtelTraceState
  serialize(): string
}

/** Seconds and nanoseconds since 1970. */
export type OtelTime = [seconds: number, nanos: number]

/** Attributes of a span, an event or a measurement. */
export interface OtelAttributes {
  [name: string]: string | number | boolean
}

/** A span. */
export interface OtelSpan {
  spanContext(): OtelSpanContext
  setAttribute(name: string, value: string | number | boolean): unknown
  addEvent(name: string, attributes: OtelAttributes, time: OtelTime): unknown
  addLink(link: OtelLink): unknown
  setStatus(status: { code: number; message?: string }): unknown
  recordException(error: Error, time: OtelTime): void
  end(time: OtelTime): void
}

/** A link from a span to another one. */
export interface OtelLink {
  context: OtelSpanContext
  attributes: OtelAttributes
}

/** Makes spans. */
export interface OtelTracer {
  startSpan(
    name: string,
    options: { kind: number; links: Array<OtelLink>; root: boolean; startTime: OtelTime },
    context: OtelContext
  ): OtelSpan
}

/** The description of an instrument. */
export interface OtelMetricOptions {
  description?: string
  unit?: string
  advice?: { explicitBucketBoundaries?: Array<number> }
}

/** Reads a gauge when it is exported. */
export type OtelCallback = (result: { observe(value: number, attributes: OtelAttributes): void }) => void

/** Makes the instruments of metrics. */
export interface OtelMeter {
  createCounter(name: string, options: OtelMetricOptions): { add(value: number, attributes: OtelAttributes): void }
  createUpDownCounter(
    name: string,
    options: OtelMetricOptions
  ): { add(value: number, attributes: OtelAttributes): void }
  createHistogram(
    name: string,
    options: OtelMetricOptions
  ): { record(value: number, attributes: OtelAttributes): void }
  createObservableGauge(
    name: string,
    options: OtelMetricOptions
  ): { addCallback(callback: OtelCallback): void; removeCallback(callback: OtelCallback): void }
}

/** OpenTelemetry's API: `import * as api from "@opentelemetry/api"`. */
export interface OpenTelemetryApi {
  readonly ROOT_CONTEXT: OtelContext
  readonly context: {
    active(): OtelContext
    with<A>(context: OtelContext, run: () => A): A
  }
  readonly trace: {
    getTracer(name: string): OtelTracer
    getSpanContext(context: OtelContext): OtelSpanContext | undefined
    isSpanContextValid(context: OtelSpanContext): boolean
    setSpan(context: OtelContext, span: OtelSpan): OtelContext
    setSpanContext(context: OtelContext, span: OtelSpanContext): OtelContext
  }
  readonly metrics: {
    getMeter(name: string): OtelMeter
  }
  createTraceState(text: string): OtelTraceState
}

/** The spans of a client. */
export interface ClientTelemetry {
  /**
   * OpenTelemetry's API. Set up its SDK as usual, before or after: without it, nothing is recorded.
   *
   * @example
   * import * as api from "@opentelemetry/api"
   * await AsyncClient.connect("https://mcp.example.com/mcp", { telemetry: { api } })
   */
  readonly api: OpenTelemetryApi
  /** The tracer that makes the spans: `api.trace.getTracer("skein")` by default. */
  readonly tracer?: OtelTracer | undefined
  /** The attribute `network.transport` of requests that are not sent over HTTP: `pipe` for stdio. Absent by default. */
  readonly transport?: "pipe" | "unix" | "tcp" | undefined
  /** Attributes of every span, such as `server.address`. */
  readonly attributes?: { readonly [name: string]: string | number | boolean } | undefined
}

/** The spans and metrics of a server. */
export interface ServerTelemetry {
  /**
   * OpenTelemetry's API. Set up its SDK as usual, before or after: without it, nothing is recorded.
   *
   * @example
   * import * as api from "@opentelemetry/api"
   * new AsyncServer({ name: "shop", version: "1.0.0", telemetry: { api } })
   */
  readonly api: OpenTelemetryApi
  /** The tracer that makes the spans: `api.trace.getTracer("skein")` by default. */
  readonly tracer?: OtelTracer | undefined
  /** The meter of the metrics: `api.metrics.getMeter("skein")` by default. */
  readonly meter?: OtelMeter | undefined
  /** Whether spans are recorded. True by default. */
  readonly spans?: boolean | undefined
  /** Whether metrics are recorded. True by default. */
  readonly metrics?: boolean | undefined
  /**
   * How the span of the client is used: as `parent` (the default), as `link`, or not at all (`ignore`). With `link`,
   * clients decide neither the trace of a request nor its sampling.
   */
  readonly remote?: "parent" | "link" | "ignore" | undefined
  /** Adds `mcp.session.id` to spans. False by default: without authentication, the id grants access to the session. */
  readonly sessionId?: boolean | undefined
  /** The attribute `network.transport` of requests that did not arrive over HTTP: `pipe` for stdio. Absent by default. */
  readonly transport?: "pipe" | "unix" | "tcp" | undefined
}
