/**
 * The part of a server that its transports use to open connections and to run requests.
 */
import type { Revision } from "@skein/protocol/Revision"
import type { Connection } from "@skein/runtime/Connection"
import type { ConnectionInfo } from "@skein/runtime/Inspect"
import type * as Limits from "@skein/runtime/Limits"
import * as Peer from "@skein/runtime/Peer"
import type { Dispatcher, Exchange, McpRequest } from "@skein/runtime/RequestContext"
import { RequestRunner } from "@skein/runtime/RequestRunner"
import * as Context from "effect/Context"
import type { Catalog } from "../../Catalog.ts"
import { InnerCalls, internals } from "../catalog/catalogState.ts"
import type { ServerObserver } from "../base/outcome.ts"
import type { SubscriptionRegistry } from "../subscriptions/subscriptionRegistry.ts"
import type { ServerDispatcher } from "./dispatcher.ts"
import type { Identity } from "./identity.ts"

/** The part of a session over HTTP that `McpServer.inspect` and `interrupt` use. */
export interface HttpSession {
  readonly peer: Peer.Peer
  readonly principalId: string | undefined
  readonly describe: () => ConnectionInfo
  /** Ends it: later requests do not find it. */
  readonly evict: () => void
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

export class ServerCore {
  readonly catalog: Catalog["Service"]
  readonly subscriptions: SubscriptionRegistry
  readonly limits: Limits.Limits | undefined
  /** The revisions that the server speaks, newest first. */
  readonly revisions: ReadonlyArray<Revision>
  /** The HTTP endpoints of the server. */
  readonly endpoints = new Set<Endpoint>()
  /** Finds the caller of a request on a connection, or the reason to refuse it. */
  readonly identify: Identity["identify"]
  /** Finds the caller of a stateless request, or the reason to refuse it. */
  readonly identifyStateless: Identity["identifyStateless"]
  readonly #onNotification: Peer.BaseOptions<never>["onNotification"]
  readonly dispatch: Dispatcher<McpRequest>
  readonly #inner: InnerCalls["Service"]

  constructor(
    catalog: Catalog["Service"],
    subscriptions: SubscriptionRegistry,
    { dispatch, inner }: ServerDispatcher,
    identity: Identity,
    limits: Limits.Limits | undefined,
    onNotification: Peer.BaseOptions<never>["onNotification"] = (peer, notification) =>
      subscriptions.onNotification(peer, notification)
  ) {
    this.catalog = catalog
    this.subscriptions = subscriptions
    this.limits = limits
    this.revisions = identity.supported
    this.identify = identity.identify
    this.identifyStateless = identity.identifyStateless
    this.dispatch = dispatch
    this.#inner = inner
    this.#onNotification = onNotification
  }

  /** The options of a peer on a connection. */
  options(connection: Connection): Peer.Options<never> {
    return {
      connection,
      dispatch: this.dispatch,
      identify: this.identify,
      onNotification: this.#onNotification,
      limits: this.limits
    }
  }

  /** A runner for the requests of a transport, which start with the transport's services. */
  runner(context: Context.Context<never>): RequestRunner {
    return new RequestRunner<never>(this, this.services(context))
  }

  /** The services that requests start with, and those that only the requests which this server receives have. */
  services<R>(context: Context.Context<R>): Context.Context<R> {
    return Context.add(context, InnerCalls, this.#inner) as Context.Context<R>
  }

  /** Puts the server on a connection. The caller closes the peer, unless the connection ends first. */
  open(connection: Connection, runner: RequestRunner): Peer.Peer {
    const peer = Peer.makeUnsafe(this.options(connection), runner)
    this.subscriptions.peers.add(peer)
    return peer
  }

  /** Receives events about sessions, streams and refusals; undefined unless telemetry is on. */
  get observer(): ServerObserver | undefined {
    return this.catalog[internals].middleware.observer
  }

  /** Removes a peer that has ended. */
  forget(peer: Peer.Peer): void {
    this.subscriptions.peerClosed(peer)
    this.observer?.sessionClosed(peer)
  }
}
