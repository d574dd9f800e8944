/**
 * A server, its sessions and their running requests, as data. It is read from the live objects on demand, so that it
 * adds no cost to requests.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type { Progress, RequestContext } from "./RequestContext.ts"
import type { Peer } from "./Peer.ts"
import { monotonicMillis } from "./RequestRunner.ts"

/** An inbound request that is being handled. A request that ends synchronously never appears. */
export interface RequestInfo {
  readonly id: JsonRpc.Id
  readonly method: string
  /** The tool, prompt or resource that it names, if it names one. */
  readonly target: string | undefined
  readonly revision: Revision.Revision
  /** Milliseconds since its handler suspended. */
  readonly age: number
  readonly progress: Progress | undefined
  /** Whether it was cancelled and its handler has not ended yet. */
  readonly cancelled: boolean
}

/** An outbound request that waits for a response. */
export interface CallInfo {
  readonly id: JsonRpc.Id
  readonly method: string
  /** Milliseconds since it was sent. */
  readonly age: number
}

/** One connection and its requests. */
export interface SessionInfo {
  /** The negotiated revision; undefined before the handshake, and with stateless requests only. */
  readonly revision: Revision.Revision | undefined
  /** Name and version of the peer, as the peer sent them. */
  readonly info: JsonRpc.JsonObject | undefined
  readonly requests: ReadonlyArray<RequestInfo>
  /** How many inbound requests wait until another one ends. */
  readonly queued: number
  readonly calls: ReadonlyArray<CallInfo>
  /** The resources that the peer has subscribed to. Since 2026-07-28 a subscription is one of the `requests`. */
  readonly subscriptions: ReadonlyArray<string>
}

/** A server and its sessions. */
export interface ServerInfo {
  readonly name: string
  readonly version: string
  readonly sessions: ReadonlyArray<SessionInfo>
  /** Stateless requests over HTTP, which belong to no session. */
  readonly requests: ReadonlyArray<RequestInfo>
  /** How many long-lived HTTP streams are open. */
  readonly streams: number
  /**
   * The work of extensions that runs in this process, from any client: tasks, by their ids, as the calls that created
   * them. A task that sleeps, or waits for input, does not run.
   */
  readonly tasks: ReadonlyArray<RequestInfo>
}

const requestAt = (request: RequestContext, now: number): RequestInfo => ({
  id: request.id,
  method: request.method,
  target: request.target,
  revision: request.caller.revision,
  age: now - (request.startedAt ?? now),
  progress: request.lastProgress,
  cancelled: request.cancelled
})

const sessionAt = (peer: Peer, now: number): SessionInfo => ({
  revision: peer.session?.revision,
  info: peer.session?.info,
  requests: Array.from(peer.requests, (request) => requestAt(request, now)),
  queued: peer.queued,
  calls: Array.from(peer.calls, ({ id, method, startedAt }) => ({ id, method, age: now - startedAt })),
  subscriptions: [...peer.session?.subscriptions ?? []]
})

const now: Effect.Effect<number> = /* @__PURE__ */ Clock.clockWith((clock) => Effect.succeed(monotonicMillis(clock)))

/** The requests of one peer now. */
export const session = (peer: Peer): Effect.Effect<SessionInfo> => Effect.map(now, (now) => sessionAt(peer, now))

/** The sessions and requests of a server now. */
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
      Array.from(requests, (request) => requestAt(request, now))
    ),
    streams: Array.from(options.endpoints ?? []).reduce((sum, { streams }) => sum + streams, 0),
    tasks: Array.from(options.tasks ?? [], (request) => requestAt(request, now))
  }))
