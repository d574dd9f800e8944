/**
 * Telemetry: one span for each request, and metrics, with the names of the OpenTelemetry semantic conventions for MCP.
 *
 * Nothing is traced or measured without this layer. List it first, so that what other middleware refuses is in it too. Where spans
 * and metrics go is decided by what Effect's `Tracer` and `Metric` are given: `effect/observability/Otlp`, for instance.
 *
 * A request's span is a child of the span that its `_meta` names with `traceparent` (2026-07-28, basic/index, OpenTelemetry trace
 * context; read in every revision), and is linked to that of the HTTP request; without the former it is a child of the latter. The
 * spans of handlers are its children. Log lines are annotated with `trace_id` and `span_id`, but for those that go to the client.
 * `Telemetry.Remote` has what came with the request: `tracestate` and `baggage`.
 *
 * - Span: `{method} {target}`, of kind `server`, with `mcp.method.name`, `mcp.protocol.version`, `jsonrpc.request.id`,
 *   `network.transport`, `gen_ai.tool.name` and `gen_ai.operation.name`, `gen_ai.prompt.name` or `mcp.resource.uri`, and, where
 *   it failed, `error.type` and `rpc.response.status_code`. Its name has only targets that the caller may see; a method that does
 *   not exist is `_OTHER`. A cancelled request has no `error.type`.
 * - `mcp.server.operation.duration` and `mcp.server.session.duration`: histograms in seconds.
 * - Beside the conventions: `mcp.server.requests` by method and outcome, `mcp.server.sessions` and `mcp.server.streams` that are
 *   open now, and `mcp.server.refusals` of HTTP requests by `http.response.status_code`.
 *
 * @example
 * const server = McpServer.layer({ name: "traced", version: "1.0.0" }, Telemetry.layer(), Tool.layer(greet, greeting)).pipe(
 *   Layer.provide(Otlp.layerJson({ baseUrl: "http://localhost:4318" })),
 *   Layer.provide(FetchHttpClient.layer)
 * )
 */
import * as Conventions from "@skein/protocol/Conventions"
import * as McpError from "@skein/protocol/McpError"
import * as TraceContext from "@skein/protocol/TraceContext"
import type { Answer, McpRequest, RequestContext } from "@skein/runtime/RequestContext"
import * as Trace from "@skein/runtime/Trace"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Layer from "effect/Layer"
import * as References from "effect/References"
import * as Tracer from "effect/Tracer"
import type { Catalog } from "./Catalog.ts"
import type { DefinitionError } from "./DefinitionError.ts"
import * as captured from "./internal/definitions/captureServices.ts"
import { clip } from "./internal/text.ts"
import { type Failure, network, ServerMetrics } from "./internal/observability/metrics.ts"
import { errorOf, type Outcome, outcomeOf } from "./internal/observability/outcome.ts"
import { methodOf, namedBy, targetOf } from "./internal/dispatch/target.ts"
import type * as Middleware from "./Middleware.ts"
import { spanKey, traceKey } from "./internal/observability/logs.ts"

/** What is recorded. */
export interface Options {
  /** Whether there are spans: yes by default. */
  readonly spans?: boolean | undefined
  /** Whether there are metrics: yes by default. */
  readonly metrics?: boolean | undefined
  /**
   * What becomes of the span that a client names: `parent` by default; `link` where clients are not to decide which trace a
   * request belongs to, nor whether it is sampled; or `ignore`.
   */
  readonly remote?: "parent" | "link" | "ignore" | undefined
  /** `mcp.session.id` on spans. Off by default: to a server without authentication it is all that a caller needs. */
  readonly sessionId?: boolean | undefined
  /** `network.transport` of what did not come by HTTP: `pipe` for stdio. Not said by default. */
  readonly transport?: "pipe" | "unix" | "tcp" | undefined
  /**
   * How many series the metrics of requests may have: 2,000 by default. Beyond, new ones are counted together, with `_OTHER` for
   * the method and without a target.
   */
  readonly maxSeries?: number | undefined
}

/** What came with the request that is being handled, for whoever calls on: `undefined` outside of one, and without telemetry. */
export const Remote: typeof Trace.Remote = Trace.Remote

/** Records requests, sessions, streams and refusals. */
export const layer = (options: Options = {}): Layer.Layer<never, DefinitionError, Catalog> =>
  captured.layer<McpRequest>((catalog, provide) =>
    Effect.contextWith((context: Context.Context<never>) => {
      const measures = options.metrics === false
        ? undefined
        : new ServerMetrics(context, options.maxSeries ?? 2000, options.transport)
      const recorder = new Recorder(catalog, options, measures)
      return Effect.andThen(
        catalog.middleware.add((next) => (exchange) => provide(recorder.handle(next, exchange))),
        measures === undefined ? Effect.void : observe(catalog, measures)
      )
    })
  )

const observe = (catalog: Catalog["Service"], measures: ServerMetrics) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      catalog.middleware.observer = measures
    }),
    () =>
      Effect.sync(() => {
        if (catalog.middleware.observer === measures) catalog.middleware.observer = undefined
      })
  )

/** The spans that a request comes from: the one that its `_meta` names, and that of the HTTP request or of whoever embeds us. */
interface Sources {
  readonly remote: TraceContext.TraceContext | undefined
  readonly meta: Tracer.AnySpan | undefined
  readonly around: Tracer.AnySpan | undefined
  /** Whether the latter is a span of this process, which no client has chosen. */
  readonly own: boolean
}

class Recorder {
  readonly #catalog: Catalog["Service"]
  readonly #options: Options
  readonly #measures: ServerMetrics | undefined
  readonly #outer: Tracer.AnySpan | undefined

  constructor(catalog: Catalog["Service"], options: Options, measures: ServerMetrics | undefined) {
    this.#catalog = catalog
    this.#options = options
    this.#measures = measures
    // In which the server was built. It is not what a request belongs to.
    this.#outer = Context.getOrUndefined(catalog.base, Tracer.ParentSpan)
  }

  handle(next: Middleware.Handler, exchange: RequestContext): ReturnType<Middleware.Handler> {
    return Effect.contextWith((context: Context.Context<McpRequest>) => {
      const clock = Context.get(context, Clock.Clock)
      const start = clock.monotonicTimeNanosUnsafe()
      const method = methodOf(exchange)
      const target = targetOf(this.#catalog, exchange)
      let span: Tracer.Span | undefined
      const handled = this.#options.spans === false ? next(exchange) : Effect.suspend(() => {
        const sources = this.#sources(exchange, context)
        return Effect.flatMap(this.#begin(exchange, method, target, sources), (begun) => {
          span = begun
          return Effect.provideContext(next(exchange), inside(context, begun, sources.remote))
        })
      })
      return Effect.onExitPrimitive(handled, (exit) => {
        const outcome = outcomeOf(exchange, exit)
        const failure = failureOf(exchange, exit, outcome)
        if (span !== undefined) {
          if (failure !== undefined) span.attribute("error.type", failure.type)
          if (failure?.code !== undefined) span.attribute("rpc.response.status_code", failure.code)
          span.end(clock.currentTimeNanosUnsafe(), exitOf(exit, outcome))
        }
        this.#measures?.request(exchange, method, target, outcome, failure, clock.monotonicTimeNanosUnsafe() - start)
        return undefined
      })
    })
  }

  #sources(exchange: RequestContext, context: Context.Context<McpRequest>): Sources {
    const ambient = Context.getOrUndefined(context, Tracer.ParentSpan)
    const own = ambient !== undefined && ambient !== this.#outer
    if (this.#options.remote === "ignore") {
      return { remote: undefined, meta: undefined, around: own ? ambient : undefined, own }
    }
    const { origin } = exchange
    const http = origin?.header === undefined ? undefined : TraceContext.fromHeaders((name) => origin.header!(name))
    const said = TraceContext.fromParams(exchange.params)
    return { remote: said ?? http, meta: externalSpan(said), around: own ? ambient : externalSpan(http), own }
  }

  #begin(
    exchange: RequestContext,
    method: string,
    target: string | undefined,
    { around, meta, own }: Sources
  ): Effect.Effect<Tracer.Span> {
    const linked = this.#options.remote === "link"
    // "SHOULD, by default, use context extracted from `params._meta` as a parent and SHOULD link current ambient context."
    const parent = linked ? (own ? around : undefined) : meta ?? around
    const links = [meta, around].filter((span) => span !== undefined && span !== parent)
    return Effect.makeSpan(Conventions.spanName(method, target), {
      kind: "server",
      ...(parent === undefined ? { root: true } : { parent }),
      links: links.map((span) => ({ span: span!, attributes: {} })),
      attributes: this.#attributes(exchange)
    })
  }

  #attributes(exchange: RequestContext): Record<string, unknown> {
    const { caller, id, method, origin } = exchange
    const name = namedBy(exchange)
    const session = this.#options.sessionId === true ? origin?.header?.("mcp-session-id") : undefined
    return {
      "mcp.method.name": clip(method),
      "mcp.protocol.version": caller.revision,
      "jsonrpc.request.id": clip(String(id)),
      ...network(exchange, this.#options.transport),
      ...(name === undefined
        ? undefined
        : Conventions.about(method, clip(name, Conventions.isNamed(method) ? undefined : maxUri))),
      ...(session === undefined ? undefined : { "mcp.session.id": clip(session) })
    }
  }
}

const externalSpan = (context: TraceContext.TraceContext | undefined): Tracer.ExternalSpan | undefined =>
  context?.parent === undefined
    ? undefined
    : Tracer.externalSpan({ ...context.parent, annotations: Context.make(Remote, context) })

/** The context of what is behind: the span, its ids for the log, and what came with the request. */
const inside = (
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
 * "SHOULD be set to the string representation of the JSON-RPC error code, if one is returned"; `tool_error` for a tool's. A defect
 * is answered with `-32603`.
 */
const failureOf = (
  exchange: RequestContext,
  exit: Exit.Exit<Answer, McpError.McpError>,
  outcome: Outcome
): Failure | undefined => {
  if (outcome === "tool_error") return { type: "tool_error", code: undefined }
  if (outcome !== "error" && outcome !== "defect") return undefined
  const error = errorOf(exit)
  const code = String(error === undefined ? -32603 : McpError.codeOf(error, exchange.caller.revision))
  return { type: code, code }
}

// A tool's failure is a result, but it is an error of the span.
const toolFailed = Exit.fail(Object.assign(new Error("The tool failed"), { name: "tool_error", stack: undefined }))

const exitOf = (exit: Exit.Exit<Answer, McpError.McpError>, outcome: Outcome): Exit.Exit<unknown, unknown> =>
  outcome === "tool_error" ? toolFailed : outcome === "input_required" ? Exit.void : exit

// A URI is an attribute up to this many characters.
const maxUri = 1024
