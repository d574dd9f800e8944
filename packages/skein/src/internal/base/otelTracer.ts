/**
 * A tracer of Effect that makes the spans of OpenTelemetry, and runs handlers in their context.
 */
import type { TraceContext } from "@skein/protocol/TraceContext"
import { Remote } from "@skein/runtime/Trace"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Exit from "effect/Exit"
import * as Tracer from "effect/Tracer"
import type {
  OpenTelemetryApi,
  OtelAttributes,
  OtelContext,
  OtelLink,
  OtelSpan,
  OtelSpanContext,
  OtelTime,
  OtelTracer
} from "./openTelemetry.ts"

/** The context of OpenTelemetry in which a span was active. */
const ActiveContext: Context.Reference<OtelContext | undefined> = Context.Reference<OtelContext | undefined>(
  "skein/internal/ActiveContext",
  { defaultValue: () => undefined }
)

const kinds = { internal: 0, server: 1, client: 2, producer: 3, consumer: 4 } as const
const errorStatus = 2
const sampledFlag = 1

const second = 1_000_000_000n
const timeOf = (nanos: bigint): OtelTime => [Number(nanos / second), Number(nanos % second)]

const attributeOf = (value: unknown): string | number | boolean =>
  typeof value === "string" || typeof value === "number" || typeof value === "boolean"
    ? value
    : typeof value === "object"
    ? JSON.stringify(value)
    : String(value)

const attributesOf = (attributes: Readonly<Record<string, unknown>> = {}): OtelAttributes =>
  Object.fromEntries(Object.entries(attributes).map(([name, value]) => [name, attributeOf(value)]))

const isSampled = ({ traceFlags }: OtelSpanContext): boolean => (traceFlags & sampledFlag) === sampledFlag

const stateOf = (api: OpenTelemetryApi, { annotations, traceId }: Tracer.ExternalSpan) => {
  const remote = Context.get(annotations, Remote)
  return remote?.tracestate === undefined || remote.parent?.traceId !== traceId
    ? undefined
    : { traceState: api.createTraceState(remote.tracestate) }
}

const spanContextOf = (api: OpenTelemetryApi, span: Tracer.AnySpan): OtelSpanContext => ({
  traceId: span.traceId,
  spanId: span.spanId,
  traceFlags: span.sampled ? sampledFlag : 0,
  ...(span._tag === "ExternalSpan" ? { isRemote: true, ...stateOf(api, span) } : undefined)
})

const linkOf = (api: OpenTelemetryApi, { attributes, span }: Tracer.SpanLink): OtelLink => ({
  context: spanContextOf(api, span),
  attributes: attributesOf(attributes)
})

/** A span of OpenTelemetry, as a span of Effect. */
class BridgedSpan implements Tracer.Span {
  readonly _tag = "Span"
  readonly name: string
  readonly kind: Tracer.SpanKind
  readonly parent: Tracer.Span["parent"]
  readonly annotations: Context.Context<never>
  readonly attributes = new Map<string, unknown>()
  readonly links: Array<Tracer.SpanLink>
  readonly traceId: string
  readonly spanId: string
  readonly sampled: boolean
  /** The context in which the span is active. */
  readonly active: OtelContext
  status: Tracer.SpanStatus
  readonly #api: OpenTelemetryApi
  readonly #span: OtelSpan

  constructor(
    api: OpenTelemetryApi,
    span: OtelSpan,
    around: OtelContext,
    { annotations, kind, links, name, parent, startTime }: Parameters<Tracer.Tracer["span"]>[0]
  ) {
    const context = span.spanContext()
    this.#api = api
    this.#span = span
    this.active = api.trace.setSpan(around, span)
    this.name = name
    this.kind = kind
    this.parent = parent
    this.annotations = annotations
    this.links = links
    this.traceId = context.traceId
    this.spanId = context.spanId
    this.sampled = isSampled(context)
    this.status = { _tag: "Started", startTime }
  }

  attribute(name: string, value: unknown): void {
    this.attributes.set(name, value)
    this.#span.setAttribute(name, attributeOf(value))
  }

  event(name: string, startTime: bigint, attributes?: Record<string, unknown>): void {
    this.#span.addEvent(name, attributesOf(attributes), timeOf(startTime))
  }

  addLinks(links: ReadonlyArray<Tracer.SpanLink>): void {
    for (const link of links) {
      this.links.push(link)
      this.#span.addLink(linkOf(this.#api, link))
    }
  }

  end(endTime: bigint, exit: Exit.Exit<unknown, unknown>): void {
    if (this.status._tag === "Ended") return
    this.status = { _tag: "Ended", startTime: this.status.startTime, endTime, exit }
    // An interrupted request has not failed: its client has cancelled it.
    if (exit._tag === "Failure" && !Cause.hasInterruptsOnly(exit.cause)) {
      const errors = Cause.prettyErrors(exit.cause)
      for (const error of errors) this.#span.recordException(error, timeOf(endTime))
      this.#span.setStatus({ code: errorStatus, message: errors[0]!.message })
    }
    this.#span.end(timeOf(endTime))
  }
}

/** Makes the tracer. */
export const makeTracer = (api: OpenTelemetryApi, tracer: OtelTracer = api.trace.getTracer("skein")): Tracer.Tracer => {
  const contexts = new WeakMap<Tracer.AnySpan, OtelContext>()

  /** The context in which a span of this tracer, or of another process, is active. */
  const contextOf = (span: Tracer.AnySpan): OtelContext => {
    if (span instanceof BridgedSpan) return span.active
    let context = contexts.get(span)
    if (context === undefined) {
      context = Context.get(span.annotations, ActiveContext) ??
        api.trace.setSpanContext(api.ROOT_CONTEXT, spanContextOf(api, span))
      contexts.set(span, context)
    }
    return context
  }

  /**
   * The context of a parent. A parent in another process gets the values, such as baggage, of the context in which this
   * process received its request, which is that of a linked span.
   */
  const beside = (parent: Tracer.AnySpan, links: ReadonlyArray<Tracer.SpanLink>): OtelContext => {
    if (parent._tag === "Span" || Context.get(parent.annotations, ActiveContext) !== undefined) return contextOf(parent)
    const link = links.find(({ span }) => Context.get(span.annotations, ActiveContext) !== undefined)
    return link === undefined
      ? contextOf(parent)
      : api.trace.setSpanContext(contextOf(link.span), spanContextOf(api, parent))
  }

  return Tracer.make({
    span(options) {
      const { kind, links, name, parent, root, startTime } = options
      const around = parent._tag === "None" || root ? api.ROOT_CONTEXT : beside(parent.value, links)
      const linked = links.map((link) => linkOf(api, link))
      const span = tracer.startSpan(
        name,
        { kind: kinds[kind], links: linked, root, startTime: timeOf(startTime) },
        around
      )
      return new BridgedSpan(api, span, around, options)
    },
    context(primitive, fiber) {
      const { span } = fiber.cache
      if (span === undefined) return primitive["~effect/Effect/evaluate"](fiber)
      return api.context.with(contextOf(span), () => primitive["~effect/Effect/evaluate"](fiber))
    }
  })
}

/** The ids of the span that is active in the program, if there is one. */
const activeSpan = (api: OpenTelemetryApi, active: OtelContext): OtelSpanContext | undefined => {
  const span = api.trace.getSpanContext(active)
  return span !== undefined && api.trace.isSpanContextValid(span) ? span : undefined
}

const parentOf = (span: OtelSpanContext, active: OtelContext): Context.Context<never> =>
  Context.make(
    Tracer.ParentSpan,
    Tracer.externalSpan({
      traceId: span.traceId,
      spanId: span.spanId,
      sampled: isSampled(span),
      annotations: Context.make(ActiveContext, active)
    })
  ) as Context.Context<never>

/** The span that is active in the program when a request arrives, as a service. */
export const around = (api: OpenTelemetryApi): Context.Context<never> => {
  const active = api.context.active()
  const span = activeSpan(api, active)
  return span === undefined ? Context.empty() : parentOf(span, active)
}

/** The span that is active in the program when it makes a call, and the state of its trace, which servers receive. */
export const aroundCall = (api: OpenTelemetryApi): Context.Context<never> => {
  const active = api.context.active()
  const span = activeSpan(api, active)
  if (span === undefined) return Context.empty()
  const services = parentOf(span, active)
  const tracestate = span.traceState?.serialize()
  if (tracestate === undefined || tracestate === "") return services
  const parent = { traceId: span.traceId, spanId: span.spanId, sampled: isSampled(span) }
  const remote: TraceContext = { parent, tracestate, baggage: undefined }
  return Context.add(services, Remote, remote)
}
