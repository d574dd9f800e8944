/** The metrics of a server. */
import { isNamed, named, otherMethod } from "@skein/protocol/Conventions"
import type { Origin } from "@skein/runtime/Connection"
import type { RequestContext, SessionPeer } from "@skein/runtime/RequestContext"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Metric from "effect/Metric"
import { ServerSession } from "../base/session.ts"
import type { Outcome, ServerObserver } from "../base/outcome.ts"

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
export class ServerMetrics implements ServerObserver {
  readonly #context: Context.Context<never>
  readonly #clock: Clock.Clock
  readonly #maxSeries: number
  readonly #transport: string | undefined
  readonly #series = new Map<string, Series>()
  readonly #refusals = new Map<number, Metric.Metric<number, unknown>>()
  readonly #sessions = new Map<SessionPeer, { readonly since: bigint; readonly attributes: Metric.Metric.Attributes }>()

  constructor(context: Context.Context<never>, maxSeries: number, transport: string | undefined) {
    this.#context = context
    this.#clock = Context.get(context, Clock.Clock)
    this.#maxSeries = maxSeries
    this.#transport = transport
  }

  /** Records a completed request and its duration in nanoseconds. `target` must be the name of an existing entry. */
  request(
    request: RequestContext,
    method: string,
    target: string | undefined,
    outcome: Outcome,
    failure: Failure | undefined,
    nanos: bigint
  ): void {
    // Resources may be many, so they are not an attribute of a series.
    const { duration, count } = this.#seriesOf(request, method, isNamed(method) ? target : undefined, outcome, failure)
    duration.updateUnsafe(Number(nanos) / 1e9, this.#context)
    count.updateUnsafe(1, this.#context)
    const { origin, peer } = request
    if (method === "initialize" && outcome === "ok" && peer !== undefined) this.sessionOpened(peer, origin)
  }

  #seriesOf(
    request: RequestContext,
    method: string,
    target: string | undefined,
    outcome: Outcome,
    failure: Failure | undefined
  ): Series {
    const http = request.origin?.header === undefined ? "" : "http"
    const { revision } = request.caller
    const key = `${method}\n${revision}\n${http}\n${outcome}\n${failure?.type ?? ""}\n${target ?? ""}`
    const known = this.#series.get(key)
    if (known !== undefined) return known
    if (this.#series.size >= this.#maxSeries) return this.#rest
    const attributes = {
      "mcp.method.name": method,
      "mcp.protocol.version": revision,
      ...network(request.origin, this.#transport),
      ...(target === undefined ? undefined : named(method, target)),
      ...(failure === undefined ? undefined : { "error.type": failure.type }),
      ...(failure?.code === undefined ? undefined : { "rpc.response.status_code": failure.code })
    }
    const series: Series = {
      duration: Metric.withAttributes(operationDuration, attributes),
      count: Metric.withAttributes(requests, { ...attributes, outcome })
    }
    this.#series.set(key, series)
    return series
  }

  readonly #rest: Series = {
    duration: Metric.withAttributes(operationDuration, { "mcp.method.name": otherMethod }),
    count: Metric.withAttributes(requests, { "mcp.method.name": otherMethod })
  }

  sessionOpened(peer: SessionPeer, origin: Origin | undefined): void {
    if (!(peer.session instanceof ServerSession)) return
    // It replaces an earlier session of the connection.
    this.sessionClosed(peer)
    const attributes = { "mcp.protocol.version": peer.session.revision, ...network(origin, this.#transport) }
    this.#sessions.set(peer, { since: this.#clock.monotonicTimeNanosUnsafe(), attributes })
    Metric.withAttributes(openSessions, attributes).modifyUnsafe(1, this.#context)
  }

  sessionClosed(peer: SessionPeer): void {
    const session = this.#sessions.get(peer)
    if (session === undefined) return
    this.#sessions.delete(peer)
    const duration = Number(this.#clock.monotonicTimeNanosUnsafe() - session.since) / 1e9
    Metric.withAttributes(sessionDuration, session.attributes).updateUnsafe(duration, this.#context)
    Metric.withAttributes(openSessions, session.attributes).modifyUnsafe(-1, this.#context)
  }

  streamOpened(): void {
    openStreams.modifyUnsafe(1, this.#context)
  }

  streamClosed(): void {
    openStreams.modifyUnsafe(-1, this.#context)
  }

  refused(status: number): void {
    let metric = this.#refusals.get(status)
    if (metric === undefined) {
      metric = Metric.withAttributes(refusals, { "http.response.status_code": String(status) })
      this.#refusals.set(status, metric)
    }
    metric.updateUnsafe(1, this.#context)
  }
}
