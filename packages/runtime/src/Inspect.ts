/**
 * The supervision tree as data: a server, its sessions, and what runs in them. It is read from the actors that exist when
 * it is asked for, so that a request costs nothing more for it.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Progress, RequestContext } from "./RequestContext.ts"
import type { Peer } from "./Peer.ts"
import { monotonicMillis } from "./RequestRunner.ts"

/** A request of the other side that is being handled. One that ends at once is never seen. */
export interface RequestInfo {
  readonly id: JsonRpc.Id
  readonly method: string
  /** The tool, prompt or resource that it names, where it names one. */
  readonly target: string | undefined
  readonly revision: Revision.Revision
  /** Milliseconds since it suspended for the first time. */
  readonly age: number
  readonly progress: Progress | undefined
  /** Whether the other side has cancelled it and its handler has not ended yet. */
  readonly cancelled: boolean
}

/** An own request that waits for an answer. */
export interface CallInfo {
  readonly id: JsonRpc.Id
  readonly method: string
  /** Milliseconds since it was sent. */
  readonly age: number
}

/** One connection and what runs on it. */
export interface SessionInfo {
  /** What was negotiated; undefined before the handshake, and where only lone requests were made. */
  readonly revision: Revision.Revision | undefined
  /** Name and version of the other side, as it gave them. */
  readonly info: JsonRpc.JsonObject | undefined
  readonly requests: ReadonlyArray<RequestInfo>
  /** How many requests of the other side wait for one of those to end. */
  readonly queued: number
  readonly calls: ReadonlyArray<CallInfo>
  /** The resources that the other side has subscribed to. Since 2026-07-28 a subscription is a request, and among those. */
  readonly subscriptions: ReadonlyArray<string>
}

/** A server and its sessions. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
  readonly sessions: ReadonlyArray<SessionInfo>
  /** Requests of the request era that came over HTTP, and so belong to no session. */
  readonly requests: ReadonlyArray<RequestInfo>
  /** How many streams are open over HTTP that last as long as their client wants. */
  readonly streams: number
  /**
   * What runs here for the sake of an extension, whoever asked for it and wherever: tasks, by their ids, as the calls that they were
   * made by. One that sleeps, or waits for an answer, does not run.
   */
  readonly tasks: ReadonlyArray<RequestInfo>
}

const requestAt = (exchange: RequestContext, now: number): RequestInfo => ({
  id: exchange.id,
  method: exchange.method,
  target: exchange.target,
  revision: exchange.caller.revision,
  age: now - (exchange.startedAt ?? now),
  progress: exchange.lastProgress,
  cancelled: exchange.cancelled
})

const sessionAt = (peer: Peer, now: number): SessionInfo => ({
  revision: peer.session?.revision,
  info: peer.session?.info,
  requests: Array.from(peer.requests, (exchange) => requestAt(exchange, now)),
  queued: peer.queued,
  calls: Array.from(peer.calls, ({ id, method, startedAt }) => ({ id, method, age: now - startedAt })),
  subscriptions: [...peer.session?.subscriptions ?? []]
})

const now: Effect.Effect<number> = /* @__PURE__ */ Clock.clockWith((clock) => Effect.succeed(monotonicMillis(clock)))

/** What runs on one peer now. */
export const session = (peer: Peer): Effect.Effect<SessionInfo> => Effect.map(now, (now) => sessionAt(peer, now))

/** What runs in a server now. */
export const server = (options: {
  readonly name: string
  readonly version: string
  readonly peers: Iterable<Peer>
  readonly endpoints?: Iterable<{ readonly requests: Iterable<RequestContext>; readonly streams: number }> | undefined
  readonly tasks?: Iterable<RequestContext> | undefined
}): Effect.Effect<ServerInfo> =>
  Effect.map(now, (now) => ({
    name: options.name,
    version: options.version,
    sessions: Array.from(options.peers, (peer) => sessionAt(peer, now)),
    requests: Array.from(options.endpoints ?? []).flatMap(({ requests }) =>
      Array.from(requests, (exchange) => requestAt(exchange, now))
    ),
    streams: Array.from(options.endpoints ?? []).reduce((sum, { streams }) => sum + streams, 0),
    tasks: Array.from(options.tasks ?? [], (exchange) => requestAt(exchange, now))
  }))
