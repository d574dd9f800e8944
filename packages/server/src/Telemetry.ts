/**
 * Telemetry: one span for each request, and metrics, named by the OpenTelemetry semantic conventions for MCP.
 *
 * Nothing is traced or measured without this layer. List it first, so that it also covers the requests that other
 * middleware refuses. Effect's `Tracer` and `Metric` decide where spans and metrics go, for example with
 * `effect/observability/Otlp`.
 *
 * The parent of a request's span is the span in the `traceparent` of its `_meta` (2026-07-28, basic/index,
 * OpenTelemetry trace context; read in every revision), with a link to the span of the HTTP request. Without a
 * `traceparent` the span of the HTTP request is the parent. The spans of handlers are its children. Logs are annotated
 * with `trace_id` and `span_id`, except for those that clients receive. `Telemetry.Remote` contains the `tracestate`
 * and `baggage` of the request.
 *
 * - Span: `{method} {target}`, of kind `server`, with `mcp.method.name`, `mcp.protocol.version`, `jsonrpc.request.id`,
 *   `network.transport`, `gen_ai.tool.name` and `gen_ai.operation.name`, `gen_ai.prompt.name` or `mcp.resource.uri`,
 *   and after a failure `error.type` and `rpc.response.status_code`. Its name contains only targets that the caller may
 *   see. A method that does not exist is `_OTHER`. A cancelled request has no `error.type`.
 * - `mcp.server.operation.duration` and `mcp.server.session.duration`: histograms in seconds.
 * - In addition to the conventions: `mcp.server.requests` by method and outcome, `mcp.server.active_requests` in progress
 *   now, without `subscriptions/listen`, `mcp.server.sessions` and `mcp.server.streams` that are open now, and
 *   `mcp.server.refusals` of HTTP requests by `http.response.status_code`.
 *
 * @example
 * const server = McpServer.layer(
 *   { name: "traced", version: "1.0.0" },
 *   Telemetry.layer(),
 *   Tool.layer(greet, greeting)
 * ).pipe(
 *   Layer.provide(Otlp.layerJson({ baseUrl: "http://localhost:4318" })),
 *   Layer.provide(FetchHttpClient.layer)
 * )
 */
import * as Conventions from "@skein/protocol/Conventions"
import * as McpError from "@skein/protocol/McpError"
import * as TraceContext from "@skein/protocol/TraceContext"
import { clip } from "@skein/protocol/Text"
import type { Answer, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Trace from "@skein/runtime/Trace"
import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { errorOf } from "@skein/runtime/RequestRunner"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import { Bounds } from "./internal/base/fixedBounds.ts"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import { internals } from "./internal/catalog/catalogState.ts"
import { registerLayer } from "./internal/handlers/captureServices.ts"
import { type Failure, makeServerMetrics, network, type ServerMetrics } from "./internal/middleware/metrics.ts"
import { type Outcome, outcomeOf } from "./internal/base/outcome.ts"
import { methodOf, targetOf } from "./internal/middleware/target.ts"
import type * as Middleware from "./Middleware.ts"
import { spanKey, traceKey } from "./internal/base/logs.ts"

/** Options of the spans and metrics. */
export interface Options {
  /** Whether spans are recorded. True by default. */
  readonly spans?: boolean | undefined
  /** Whether metrics are recorded. True by default. */
  readonly metrics?: boolean | undefined
  /**
   * How the span of the client is used: as `parent` (the default), as `link`, or not at all (`ignore`). With `link`,
   * clients decide neither the trace of a request nor its sampling.
   */
  readonly remote?: "parent" | "link" | "ignore" | undefined
  /**
   * Adds `mcp.session.id` to spans. False by default: for a server without authentication, the id grants access to the
   * session.
   */
  readonly sessionId?: boolean | undefined
  /** The `network.transport` of requests that did not arrive over HTTP: `pipe` for stdio. Absent by default. */
  readonly transport?: "pipe" | "unix" | "tcp" | undefined
}

/**
 * The trace context of the current request, for calls to other services. `undefined` outside of a request and without
 * telemetry.
 */
export const Remote: typeof Trace.Remote = Trace.Remote

/**
 * Records requests, sessions, streams and refusals.
 *
 * @example
 * Telemetry.layer({ remote: "link", transport: "pipe" })
 */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  registerLayer<McpRequest>((catalog, provide) =>
    Effect.contextWith((context: Context.Context<never>) => {
      const metrics = options.metrics === false
        ? undefined
        : makeServerMetrics(context, Context.get(catalog[internals].base, Bounds).maxSeries, options.transport)
      const record = recording(catalog, options, metrics)
      return Effect.andThen(
        catalog[internals].middleware.add((next) => {
          const handle = record(next)
          return (request) => provide(handle(request))
        }),
        metrics === undefined ? Effect.void : observe(catalog, metrics)
      )
    })
  )

const observe = (catalog: Catalog["Service"], metrics: ServerMetrics) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      catalog[internals].middleware.observer = metrics
    }),
    () =>
      Effect.sync(() => {
        if (catalog[internals].middleware.observer === metrics) catalog[internals].middleware.observer = undefined
      })
  )

/** The spans around a request: that of its `_meta`, and that of the HTTP request or of the embedding program. */
interface Sources {
  readonly remote: TraceContext.TraceContext | undefined
  readonly meta: Tracer.AnySpan | undefined
  readonly around: Tracer.AnySpan | undefined
  /** Whether `around` is a span of this process, which no client has chosen. */
  readonly own: boolean
}

/** Makes the middleware that records requests. */
const recording = (
  catalog: Catalog["Service"],
  options: Options,
  metrics: ServerMetrics | undefined
): Middleware.Middleware => {
  // The span in which the server was built. Requests do not belong to it.
  const outer = Context.getOrUndefined(catalog[internals].base, Tracer.ParentSpan)

  const sourcesOf = (request: RequestContext, context: Context.Context<McpRequest>): Sources => {
    const ambient = Context.getOrUndefined(context, Tracer.ParentSpan)
    const own = ambient !== undefined && ambient !== outer
    if (options.remote === "ignore") {
      return { remote: undefined, meta: undefined, around: own ? ambient : undefined, own }
    }
    const { origin } = request
    const http = origin?.header === undefined ? undefined : TraceContext.fromHeaders((name) => origin.header!(name))
    const fromMeta = TraceContext.fromParams(request.params)
    return { remote: fromMeta ?? http, meta: externalSpan(fromMeta), around: own ? ambient : externalSpan(http), own }
  }

  const attributesOf = (request: RequestContext): Record<string, unknown> => {
    const { caller, id, method, origin } = request
    const name = request.target
    const session = options.sessionId === true ? origin?.header?.("mcp-session-id") : undefined
    return {
      "mcp.method.name": clip(method),
      "mcp.protocol.version": caller.revision,
      "jsonrpc.request.id": clip(String(id)),
      ...network(request.origin, options.transport),
      ...(name === undefined
        ? undefined
        : Conventions.about(method, clip(name, Conventions.isNamed(method) ? undefined : maxUri))),
      ...(session === undefined ? undefined : { "mcp.session.id": clip(session) })
    }
  }

  const begin = (
    request: RequestContext,
    method: string,
    target: string | undefined,
    { around, meta, own }: Sources
  ): Effect.Effect<Tracer.Span> => {
    const linked = options.remote === "link"
    // "SHOULD, by default, use context extracted from `params._meta` as a parent and SHOULD link current ambient
    // context."
    const parent = linked ? (own ? around : undefined) : meta ?? around
    const links = [meta, around].filter((span) => span !== undefined && span !== parent)
    return Effect.makeSpan(Conventions.spanName(method, target), {
      kind: "server",
      ...(parent === undefined ? { root: true } : { parent }),
      links: links.map((span) => ({ span: span!, attributes: {} })),
      attributes: attributesOf(request)
    })
  }

  return (next) => (request) =>
    Effect.contextWith((context: Context.Context<McpRequest>) => {
      const clock = Context.get(context, Clock.Clock)
      const start = clock.monotonicTimeNanosUnsafe()
      const method = methodOf(request)
      const target = targetOf(catalog, request)
      let span: Tracer.Span | undefined
      // A subscription is open for as long as its client listens.
      const isCounted = metrics !== undefined && method !== "subscriptions/listen"
      let isActive = false
      const handled = Effect.suspend(() => {
        if (isCounted) {
          isActive = true
          metrics.requestBegan()
        }
        if (options.spans === false) return next(request)
        const sources = sourcesOf(request, context)
        return Effect.flatMap(begin(request, method, target, sources), (begun) => {
          span = begun
          return Effect.provideContext(next(request), withSpan(context, begun, sources.remote))
        })
      })
      return Effect.onExitPrimitive(handled, (exit) => {
        if (isActive) metrics?.requestEnded()
        const outcome = outcomeOf(request, exit)
        const failure = failureOf(request, exit, outcome)
        if (span !== undefined) {
          if (failure !== undefined) span.attribute("error.type", failure.type)
          if (failure?.code !== undefined) span.attribute("rpc.response.status_code", failure.code)
          span.end(clock.currentTimeNanosUnsafe(), exitOf(exit, outcome))
        }
        metrics?.request(request, method, target, outcome, failure, clock.monotonicTimeNanosUnsafe() - start)
        return undefined
      })
    })
}

const externalSpan = (context: TraceContext.TraceContext | undefined): Tracer.ExternalSpan | undefined =>
  context?.parent === undefined
    ? undefined
    : Tracer.externalSpan({ ...context.parent, annotations: Context.make(Remote, context) })

/** Adds the span, its ids for logs, and the remote trace context to the services of a request. */
const withSpan = (
  context: Context.Context<McpRequest>,
  span: Tracer.Span,
  remote: TraceContext.TraceContext | undefined
): Context.Context<McpRequest> => {
  const annotations = {
    ...Context.get(context, References.CurrentLogAnnotations),
    [traceKey]: span.traceId,
    [spanKey]: span.spanId
  }
  const traced = Context.add(
    Context.add(context, Tracer.ParentSpan, span),
    References.CurrentLogAnnotations,
    annotations
  )
  return remote === undefined ? traced : Context.add(traced, Remote, remote)
}

/**
 * "SHOULD be set to the string representation of the JSON-RPC error code, if one is returned"; `tool_error` for a result
 * of a tool with `isError`. So is a defect of a tool; any other defect is answered with `-32603`.
 */
const failureOf = (
  request: RequestContext,
  exit: Exit.Exit<Answer, McpError.McpError>,
  outcome: Outcome
): Failure | undefined => {
  if (outcome === "tool_error") return { type: "tool_error", code: undefined }
  if (outcome !== "error" && outcome !== "defect") return undefined
  const error = errorOf(exit)
  const isDefect = Exit.isFailure(exit) && exit.cause.reasons.some(Cause.isDieReason)
  if (isDefect && request.method === "tools/call") return { type: "tool_error", code: undefined }
  const code = String(error === undefined ? -32603 : McpError.codeOf(error, request.caller.revision))
  return { type: code, code }
}

// A tool's failure is a result of the request and an error of the span.
const toolFailed = Exit.fail(Object.assign(new Error("the tool failed"), { name: "tool_error", stack: undefined }))

const exitOf = (exit: Exit.Exit<Answer, McpError.McpError>, outcome: Outcome): Exit.Exit<unknown, unknown> =>
  outcome === "tool_error" ? toolFailed : outcome === "input_required" ? Exit.void : exit

// The largest URI in an attribute, in characters.
const maxUri = 1024
