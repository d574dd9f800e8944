/** The metrics of a server. */
import { isNamed, named, otherMethod } from "@skein/protocol/Conventions"
import type { Origin } from "@skein/runtime/Connection"
import type { RequestContext, SessionPeer } from "@skein/runtime/RequestContext"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import { ServerSession } from "../base/session.ts"
import type { Outcome } from "../base/outcome.ts"

/** The attributes of a failed operation. */
export interface Failure {
  /** `error.type`. */
  readonly type: string
  /** `rpc.response.status_code`: the code of the JSON-RPC error, if it is one. */
  readonly code: string | undefined
}

/** The attributes of the network, if the transport is known. */
export const network = (origin: Origin | undefined, transport: string | undefined): Metric.Metric.Attributes =>
  origin?.header !== undefined
    ? { "network.transport": "tcp", "network.protocol.name": "http" }
    : transport === undefined
    ? {}
    : { "network.transport": transport }

// The conventions require these boundaries, in seconds. Exporters read the unit of a metric from the attribute `unit`.
const boundaries = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300]
const seconds = { unit: "s" }

const operationDuration = Metric.histogram("mcp.server.operation.duration", {
  description: "The time from the arrival of a request to its answer",
  boundaries,
  attributes: seconds
})
const sessionDuration = Metric.histogram("mcp.server.session.duration", {
  description: "The time from the handshake of a session to its end",
  boundaries,
  attributes: seconds
})
const requests = Metric.counter("mcp.server.requests", {
  description: "Completed requests",
  incremental: true,
  attributes: { unit: "{request}" }
})
// The name is that of the conventions for HTTP, `http.server.active_requests`: those for MCP have none.
const activeRequests = Metric.gauge("mcp.server.active_requests", {
  description: "Requests in progress, without subscriptions",
  attributes: { unit: "{request}" }
})
// Gauges: exporters for Prometheus declare every counter as one that never falls.
const openSessions = Metric.gauge("mcp.server.sessions", {
  description: "Open sessions",
  attributes: { unit: "{session}" }
})
const openStreams = Metric.gauge("mcp.server.streams", {
  description: "Open streams of server-sent events",
  attributes: { unit: "{stream}" }
})
const refusals = Metric.counter("mcp.server.refusals", {
  description: "Refused HTTP requests",
  incremental: true,
  attributes: { unit: "{request}" }
})

/** The two metrics of one kind of request. */
interface Series {
  readonly duration: Metric.Metric<number, unknown>
  readonly count: Metric.Metric<number, unknown>
}

/** Updates the metrics in the metric registry of its context. */
export const makeServerMetrics = (
  context: Context.Context<never>,
  maxSeries: number,
  transport: string | undefined
) => {
  const clock = Context.get(context, Clock.Clock)
  const allSeries = new Map<string, Series>()
  const refusalsByStatus = new Map<number, Metric.Metric<number, unknown>>()
  const sessions = new Map<SessionPeer, { readonly since: bigint; readonly attributes: Metric.Metric.Attributes }>()

  /** Records a completed request and its duration in nanoseconds. `target` must be the name of an existing entry. */
  const request = (
    request: RequestContext,
    method: string,
    target: string | undefined,
    outcome: Outcome,
    failure: Failure | undefined,
    nanos: bigint
  ): void => {
    // Resources may be many, so they are not an attribute of a series.
    const { duration, count } = seriesOf(request, method, isNamed(method) ? target : undefined, outcome, failure)
    duration.updateUnsafe(Number(nanos) / 1e9, context)
    count.updateUnsafe(1, context)
    const { origin, peer } = request
    if (method === "initialize" && outcome === "ok" && peer !== undefined) sessionOpened(peer, origin)
  }

  const seriesOf = (
    request: RequestContext,
    method: string,
    target: string | undefined,
    outcome: Outcome,
    failure: Failure | undefined
  ): Series => {
    const http = request.origin?.header === undefined ? "" : "http"
    const { revision } = request.caller
    const key = `${method}\n${revision}\n${http}\n${outcome}\n${failure?.type ?? ""}\n${target ?? ""}`
    const known = allSeries.get(key)
    if (known !== undefined) return known
    if (allSeries.size >= maxSeries) return rest
    const attributes = {
      "mcp.method.name": method,
      "mcp.protocol.version": revision,
      ...network(request.origin, transport),
      ...(target === undefined ? undefined : named(method, target)),
      ...(failure === undefined ? undefined : { "error.type": failure.type }),
      ...(failure?.code === undefined ? undefined : { "rpc.response.status_code": failure.code })
    }
    const series: Series = {
      duration: Metric.withAttributes(operationDuration, attributes),
      count: Metric.withAttributes(requests, { ...attributes, outcome })
    }
    allSeries.set(key, series)
    if (outcome === "ok") expectFailures(request, method, target)
    return series
  }

  /**
   * Lets the usual failures of a request that has succeeded exist with 0: for Prometheus, the increase of a series that
   * begins with 1 is 0.
   */
  const expectFailures = (request: RequestContext, method: string, target: string | undefined): void => {
    const isCall = method === "tools/call"
    const failure = isCall ? { type: "tool_error", code: undefined } : { type: "-32603", code: "-32603" }
    for (const outcome of isCall ? ["tool_error", "defect"] as const : ["defect"] as const) {
      seriesOf(request, method, target, outcome, failure).count.valueUnsafe(context)
    }
  }

  const rest: Series = {
    duration: Metric.withAttributes(operationDuration, { "mcp.method.name": otherMethod }),
    count: Metric.withAttributes(requests, { "mcp.method.name": otherMethod })
  }

  const sessionOpened = (peer: SessionPeer, origin: Origin | undefined): void => {
    if (!(peer.session instanceof ServerSession)) return
    // It replaces an earlier session of the connection.
    sessionClosed(peer)
    const attributes = { "mcp.protocol.version": peer.session.revision, ...network(origin, transport) }
    sessions.set(peer, { since: clock.monotonicTimeNanosUnsafe(), attributes })
    Metric.withAttributes(openSessions, attributes).modifyUnsafe(1, context)
  }

  const sessionClosed = (peer: SessionPeer): void => {
    const session = sessions.get(peer)
    if (session === undefined) return
    sessions.delete(peer)
    const duration = Number(clock.monotonicTimeNanosUnsafe() - session.since) / 1e9
    Metric.withAttributes(sessionDuration, session.attributes).updateUnsafe(duration, context)
    Metric.withAttributes(openSessions, session.attributes).modifyUnsafe(-1, context)
  }

  const requestBegan = (): void => activeRequests.modifyUnsafe(1, context)
  const requestEnded = (): void => activeRequests.modifyUnsafe(-1, context)

  const streamOpened = (): void => openStreams.modifyUnsafe(1, context)
  const streamClosed = (): void => openStreams.modifyUnsafe(-1, context)

  const refusalsOf = (status: number): Metric.Metric<number, unknown> => {
    let metric = refusalsByStatus.get(status)
    if (metric === undefined) {
      metric = Metric.withAttributes(refusals, { "http.response.status_code": String(status) })
      refusalsByStatus.set(status, metric)
    }
    return metric
  }
  const refused = (status: number): void => refusalsOf(status).updateUnsafe(1, context)
  const refusing = (statuses: ReadonlyArray<number>): void => {
    for (const status of statuses) refusalsOf(status).valueUnsafe(context)
  }

  return {
    ...{ request, requestBegan, requestEnded, sessionOpened, sessionClosed },
    ...{ streamOpened, streamClosed, refused, refusing }
  }
}

export type ServerMetrics = ReturnType<typeof makeServerMetrics>
