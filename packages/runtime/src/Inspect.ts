/**
 * A server, its sessions and their running requests, as data. It is read from the live objects on demand, so that it
 * adds no cost to requests.
 */
import * as Conventions from "@skein/protocol/Conventions"
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import * as TraceContext from "@skein/protocol/TraceContext"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import * as Tracer from "effect/Tracer"
import type { Exchange, Progress, RequestContext, RunningStep } from "./RequestContext.ts"
import type { Peer } from "./Peer.ts"
import { monotonicMillis } from "./RequestRunner.ts"

/** Options of a snapshot. */
export interface Options {
  /** Whether it contains the params of requests, which are data of users. False by default. */
  readonly params?: boolean | undefined
}

/** An inbound request that is being handled. A request that ends synchronously never appears. */
export interface RequestInfo {
  /** Names the request in this process, as long as it runs: `id` is unique in its session only. */
  readonly key: string
  readonly id: JsonRpc.Id
  readonly method: string
  /** The tool, prompt or resource that it names, if it names one. */
  readonly target: string | undefined
  readonly revision: Revision.Revision
  /** Milliseconds since its handler suspended. */
  readonly age: number
  /** When its handler suspended, in milliseconds of the monotonic clock: the same in each snapshot. */
  readonly startedAt: number
  /** The id of the principal that sent it. */
  readonly principal: string | undefined
  /** Name and version of the client, as the client sent them. */
  readonly client: JsonRpc.JsonObject | undefined
  /** The trace that it belongs to: that of the span that its handler is in, or else that of the client. */
  readonly traceId: string | undefined
  /** The name of the innermost span that its handler is in, if tracing is on. */
  readonly span: string | undefined
  /** Whether its response is a stream that is open. */
  readonly streaming: boolean
  readonly progress: Progress | undefined
  /** Whether it was cancelled and its handler has not ended yet. */
  readonly cancelled: boolean
  /** The subscribed changes, if it is a `subscriptions/listen`. */
  readonly subscription?: SubscriptionInfo | undefined
  /** The params as they were received, if the snapshot was asked for them. */
  readonly params?: JsonRpc.JsonObject | undefined
  /** The first 100 steps that it executes now, if it is a task. */
  readonly steps?: ReadonlyArray<StepInfo> | undefined
}

/** A step that a task executes. */
export interface StepInfo {
  readonly name: string
  /** The number of the attempt, from 1. */
  readonly attempt: number
  /** Milliseconds since the attempt began. */
  readonly age: number
  /** When the attempt began, in milliseconds of the monotonic clock: the same in each snapshot. */
  readonly startedAt: number
  /** The name of the innermost span that it is in, if tracing is on. */
  readonly span: string | undefined
}

/** The changes that a `subscriptions/listen` is notified of. */
export interface SubscriptionInfo {
  readonly lists: ReadonlyArray<string>
  readonly resources: ReadonlyArray<string>
}

/** An inbound request that waits until another one ends. */
export interface QueuedInfo {
  readonly id: JsonRpc.Id
  readonly method: string
  readonly target: string | undefined
}

/** An outbound request that waits for a response. */
export interface CallInfo {
  readonly id: JsonRpc.Id
  readonly method: string
  /** Milliseconds since it was sent. */
  readonly age: number
  /** When it was sent, in milliseconds of the monotonic clock. */
  readonly startedAt: number
  /** The id of the inbound request whose handler sent it. */
  readonly about: JsonRpc.Id | undefined
}

/** A stream of server-sent events of a session. */
export interface StreamInfo {
  /** `listen`: the client has opened it by GET. `response`: it ends with the response to a request. */
  readonly kind: "listen" | "response"
  /** The ids of the requests whose response it carries. */
  readonly about: ReadonlyArray<JsonRpc.Id>
  /** Whether the client is connected. A client can resume a stream that it has lost. */
  readonly connected: boolean
}

/** The part of a session that its transport knows. */
export interface ConnectionInfo {
  readonly transport: "Streamable HTTP" | "HTTP+SSE"
  /** When the session was opened, in milliseconds of the monotonic clock. */
  readonly openedAt: number
  /** When the client last used it, in the same milliseconds. */
  readonly usedAt: number
  readonly streams: ReadonlyArray<StreamInfo>
}

/** One connection and its requests. */
export interface SessionInfo {
  /** Names the connection in this process, as long as it is open. */
  readonly key: string
  /** The id of the principal that opened it. */
  readonly principal: string | undefined
  /** Its connection over HTTP; undefined for another transport. */
  readonly connection: ConnectionInfo | undefined
  /** The negotiated revision; undefined before the handshake, and with stateless requests only. */
  readonly revision: Revision.Revision | undefined
  /** Name and version of the peer, as the peer sent them. */
  readonly info: JsonRpc.JsonObject | undefined
  readonly requests: ReadonlyArray<RequestInfo>
  /** How many inbound requests wait until another one ends. */
  readonly queued: number
  /** The first 100 of those requests. */
  readonly queuedRequests: ReadonlyArray<QueuedInfo>
  readonly calls: ReadonlyArray<CallInfo>
  /** The resources that the peer has subscribed to. Since 2026-07-28 a subscription is one of the `requests`. */
  readonly subscriptions: ReadonlyArray<string>
}

/** A request that has failed: with a JSON-RPC error, or a tool with `isError`. */
export interface FailureInfo {
  readonly method: string
  /** The tool, prompt or resource that it names, up to 256 characters. */
  readonly target: string | undefined
  /** When it ended, in milliseconds of the monotonic clock. */
  readonly at: number
  /**
   * The code and the message of the error, up to 256 characters. For a tool's result its text, if the snapshot was asked
   * for params.
   */
  readonly error: string
  /** The id of the principal that sent it. */
  readonly principal: string | undefined
}

/** The requests that a server has answered since its start, those of tasks and cancelled ones not included. */
export interface TallyInfo {
  readonly requests: number
  /** How many of them failed: with a JSON-RPC error, or a tool with `isError`. */
  readonly failures: number
  /** The last 20 failures, newest first. */
  readonly last: ReadonlyArray<FailureInfo>
}

/** A server and its sessions. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
  /** The time of the snapshot, in milliseconds of the monotonic clock. */
  readonly now: number
  readonly sessions: ReadonlyArray<SessionInfo>
  /** Stateless requests over HTTP, which belong to no session. */
  readonly requests: ReadonlyArray<RequestInfo>
  /** How many long-lived HTTP streams are open. */
  readonly streams: number
  /** The requests that it has answered. */
  readonly tally: TallyInfo
  /**
   * The work of extensions that runs in this process, from any client: tasks, by their ids, as the calls that created
   * them. A task that sleeps, or waits for input, does not run.
   */
  readonly tasks: ReadonlyArray<RequestInfo>
}

// The keys of objects that a snapshot contained. An object gets its key with its first snapshot.
const keys = /* @__PURE__ */ new WeakMap<object, string>()
let lastKey = 0

/** The key of a request or a peer, as snapshots contain it. An object that no snapshot contained gets one. */
export const keyOf = (object: Exchange | Peer): string => {
  const found = keys.get(object)
  if (found !== undefined) return found
  const key = String(++lastKey)
  keys.set(object, key)
  return key
}

const traceOf = (exchange: Exchange, span: Tracer.AnySpan | undefined): string | undefined => {
  if (span !== undefined) return span.traceId
  const { header } = exchange.origin ?? {}
  const ofHeader = () => header && TraceContext.fromHeaders((name) => exchange.origin?.header?.(name))
  const sent = (TraceContext.fromParams(exchange.params) ?? ofHeader())?.parent
  return (sent ?? TraceContext.parseParent(exchange.traceparent))?.traceId
}

const spanOf = (fiber: Fiber.Fiber<unknown, unknown> | undefined): Tracer.AnySpan | undefined =>
  fiber && Context.getOrUndefined(fiber.context, Tracer.ParentSpan)

const nameOf = (span: Tracer.AnySpan | undefined): string | undefined => span?._tag === "Span" ? span.name : undefined

// The most steps of a task in a snapshot.
const maxSteps = 100

const stepsAt = (steps: Iterable<RunningStep>, now: number): ReadonlyArray<StepInfo> =>
  Array.from(steps).slice(0, maxSteps).map(({ attempt, fiber, name, startedAt }) => ({
    name,
    attempt,
    age: now - startedAt,
    startedAt,
    span: nameOf(spanOf(fiber))
  }))

/** A running request now; `now` in milliseconds of the monotonic clock. */
const requestAt = (exchange: Exchange, now: number, options: Options): RequestInfo => {
  const span = spanOf(exchange.fiber)
  return {
    key: keyOf(exchange),
    id: exchange.id,
    method: exchange.method,
    target: exchange.target,
    revision: exchange.caller.revision,
    age: now - (exchange.startedAt ?? now),
    startedAt: exchange.startedAt ?? now,
    principal: exchange.caller.principal?.id,
    client: exchange.caller.info,
    traceId: traceOf(exchange, span),
    span: nameOf(span),
    streaming: exchange.sink.isStreaming?.(exchange) === true,
    progress: exchange.lastProgress,
    cancelled: exchange.cancelled,
    ...(options.params === true ? { params: exchange.params } : undefined),
    ...(exchange.runningSteps === undefined ? undefined : { steps: stepsAt(exchange.runningSteps(), now) })
  }
}

// The most queued requests of a session in a snapshot.
const maxQueued = 100

const sessionAt = (
  peer: Peer,
  now: number,
  at: (exchange: Exchange) => RequestInfo,
  extra?: Pick<SessionInfo, "connection" | "principal">
): SessionInfo => ({
  key: keyOf(peer),
  principal: extra?.principal,
  connection: extra?.connection,
  revision: peer.session?.revision,
  info: peer.session?.info,
  requests: Array.from(peer.requests, at),
  queued: peer.queued,
  queuedRequests: Array.from(peer.queuedRequests).slice(0, maxQueued).map(
    ({ id, method, params }) => ({ id, method, target: Conventions.targetOf(method, params) })
  ),
  calls: Array.from(
    peer.calls,
    ({ about, id, method, startedAt }) => ({ id, method, age: now - startedAt, startedAt, about })
  ),
  subscriptions: [...peer.session?.subscriptions ?? []]
})

const now: Effect.Effect<number> = /* @__PURE__ */ Clock.clockWith((clock) => Effect.succeed(monotonicMillis(clock)))

/** The requests of one peer now. */
export const session = (peer: Peer, options: Options = {}): Effect.Effect<SessionInfo> =>
  Effect.map(now, (now) => sessionAt(peer, now, (exchange) => requestAt(exchange, now, options)))

/** The sessions and requests of a server now. */
export const server = (options: {
  readonly name: string
  readonly version: string
  readonly peers: Iterable<Peer>
  readonly endpoints?: Iterable<{ readonly requests: Iterable<Exchange>; readonly streams: number }> | undefined
  readonly tasks?: Iterable<RequestContext> | undefined
  readonly tally: TallyInfo
  /** The part of a session that only its server knows. */
  readonly describe?: ((peer: Peer) => Pick<SessionInfo, "connection" | "principal"> | undefined) | undefined
  /** The subscription that a request is. */
  readonly subscription?: ((exchange: Exchange) => SubscriptionInfo | undefined) | undefined
  /** Whether requests have their params. */
  readonly params?: boolean | undefined
}): Effect.Effect<ServerInfo> =>
  Effect.map(now, (now) => {
    const { describe, subscription } = options
    const at = (exchange: Exchange): RequestInfo => {
      const info = requestAt(exchange, now, options)
      const found = subscription?.(exchange)
      return found === undefined ? info : { ...info, subscription: found }
    }
    return {
      name: options.name,
      version: options.version,
      now,
      sessions: Array.from(options.peers, (peer) => sessionAt(peer, now, at, describe?.(peer))),
      requests: Array.from(options.endpoints ?? []).flatMap(({ requests }) => Array.from(requests, at)),
      streams: Array.from(options.endpoints ?? []).reduce((sum, { streams }) => sum + streams, 0),
      tally: options.tally,
      tasks: Array.from(options.tasks ?? [], ({ exchange }) => at(exchange))
    }
  })
