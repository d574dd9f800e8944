/**
 * The part of a server that its transports use to open connections and to run requests.
 */
import type { Connection } from "@skein/runtime/Connection"
import type { ConnectionInfo } from "@skein/runtime/Inspect"
import type * as Limits from "@skein/runtime/Limits"
import * as Peer from "@skein/runtime/Peer"
import type { Exchange } from "@skein/runtime/RequestContext"
import { RequestRunner } from "@skein/runtime/RequestRunner"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import type { Catalog } from "../../Catalog.ts"
import { InnerCalls, internals } from "../catalog/catalogState.ts"
import type { ServerObserver } from "../base/outcome.ts"
import type { SubscriptionRegistry } from "../subscriptions/subscriptionRegistry.ts"
import type { ServerDispatcher } from "./dispatcher.ts"
import type { Identity } from "./identity.ts"
import { Tally } from "./tally.ts"

/** The part of a session over HTTP that `McpServer.inspect` and `interrupt` use. */
export interface HttpSession {
  readonly peer: Peer.Peer
  readonly principalId: string | undefined
  readonly describe: () => ConnectionInfo
  /** Ends it: later requests do not find it, here and at other nodes. */
  readonly interrupt: () => void
}

/** The part of an HTTP endpoint that `McpServer.inspect` reads. */
export interface Endpoint {
  /** The sessions that requests can use. */
  readonly openSessions: Iterable<HttpSession>
  /** The stateless requests in flight. */
  readonly requests: Iterable<Exchange>
  /** How many long-lived streams are open. */
  readonly streams: number
}

/** Makes the part of a server that its transports use. `onNotification` receives the notifications of clients. */
export const makeServerCore = (
  catalog: Catalog["Service"],
  subscriptions: SubscriptionRegistry,
  { answerDefect, dispatch, hasMethod, inner }: ServerDispatcher,
  { identify, identifyStateless, supported }: Identity,
  limits: Limits.Limits | undefined,
  onNotification: Peer.BaseOptions<never>["onNotification"] = (peer, notification) =>
    subscriptions.onNotification(peer, notification)
) => {
  const { base, middleware } = catalog[internals]
  const tally = new Tally(Context.get(base, Clock.Clock))
  const options = (connection: Connection): Peer.Options<never> => ({
    connection,
    dispatch,
    answerDefect,
    tally,
    identify,
    onNotification,
    limits
  })
  const services = <R>(context: Context.Context<R>): Context.Context<R> =>
    Context.add(context, InnerCalls, inner) as Context.Context<R>
  return {
    catalog,
    subscriptions,
    limits,
    /** The revisions that the server speaks, newest first. */
    revisions: supported,
    /** The requests that have ended. */
    tally,
    /** The HTTP endpoints of the server. */
    endpoints: new Set<Endpoint>(),
    /** Whether the server implements the method of a request. */
    hasMethod,
    /** Finds the caller of a stateless request, or the reason to refuse it. */
    identifyStateless,
    /** The options of a peer on a connection. */
    options,
    /** A runner for the requests of a transport, which start with the transport's services. */
    runner: (context: Context.Context<never>): RequestRunner =>
      new RequestRunner<never>({ dispatch, answerDefect, tally }, services(context)),
    /** The services that requests start with, and those that only the requests which this server receives have. */
    services,
    /**
     * Puts the server on a connection. The caller closes the peer, unless the connection ends first. `requestIds` are the
     * ids of the requests of the server.
     */
    open: (connection: Connection, runner: RequestRunner, requestIds?: Peer.RequestIds): Peer.Peer => {
      const own = options(connection)
      const peer = Peer.makeUnsafe(requestIds === undefined ? own : { ...own, requestIds }, runner)
      subscriptions.peers.add(peer)
      return peer
    },
    /** Receives events about sessions, streams and refusals; undefined unless telemetry is on. */
    get observer(): ServerObserver | undefined {
      return middleware.observer
    },
    /** Removes a peer that has ended. */
    forget: (peer: Peer.Peer): void => {
      subscriptions.peerClosed(peer)
      middleware.observer?.sessionClosed(peer)
    }
  }
}

export type ServerCore = ReturnType<typeof makeServerCore>
