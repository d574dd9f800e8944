/**
 * What the transports of a server that hold its connections and requests themselves need of it.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import type { Revision } from "@skein/protocol/Revision"
import type { Connection, Origin } from "@skein/runtime/Connection"
import type { Answer, Caller, Dispatcher, Refusal, RequestContext } from "@skein/runtime/RequestContext"
import { McpRequest } from "@skein/runtime/RequestContext"
import type * as Limits from "@skein/runtime/Limits"
import * as Peer from "@skein/runtime/Peer"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Catalog } from "../../Catalog.ts"
import type { SubscriptionRegistry } from "../subscriptions/subscriptionRegistry.ts"
import type * as identity from "./identity.ts"
import * as logs from "../observability/logs.ts"
import { internals } from "../catalogState.ts"
import type { ServerObserver } from "../observability/outcome.ts"

/** What an endpoint of HTTP shows of itself. */
export interface Endpoint {
  /** The lone requests in flight. */
  readonly exchanges: Iterable<RequestContext>
  /** How many streams are open that last as long as their client wants. */
  readonly streams: number
}

/** The inside of a server, for its transports. */
export class Host {
  readonly catalog: Catalog["Service"]
  readonly hub: SubscriptionRegistry
  readonly limits: Limits.Limits | undefined
  /** The revisions that the server speaks, newest first. */
  readonly revisions: ReadonlyArray<Revision>
  /** Where requests of the request era come in by themselves, each on a connection of its own. */
  readonly endpoints = new Set<Endpoint>()
  /** Who makes a request that is all that came, in the request era; or why it is refused. */
  readonly identify: (request: JsonRpc.Request, origin: Origin | undefined) => Caller | Refusal
  readonly #dispatch: Dispatcher<McpRequest>
  readonly #inSession: ReturnType<typeof identity.make>["inSession"]
  readonly #onNotification: Peer.Options<never>["onNotification"]
  #entered: { readonly from: Context.Context<never>; readonly services: Context.Context<never> } | undefined = undefined

  constructor(
    catalog: Catalog["Service"],
    hub: SubscriptionRegistry,
    dispatch: Dispatcher<McpRequest>,
    identify: ReturnType<typeof identity.make>,
    limits: Limits.Limits | undefined
  ) {
    this.catalog = catalog
    this.hub = hub
    this.limits = limits
    this.revisions = identify.supported
    this.identify = identify.alone
    this.#dispatch = dispatch
    this.#inSession = identify.inSession
    this.#onNotification = (peer, notification) => hub.onNotification(peer, notification)
  }

  /** How a connection of this server is made. */
  options(connection: Connection): Peer.Options<never> {
    return {
      connection,
      dispatch: this.#dispatch,
      identify: this.#inSession,
      onNotification: this.#onNotification,
      limits: this.limits
    }
  }

  /**
   * Puts the server on a connection. The peer lives until it is closed or its connection ends; whoever opens it sees to that.
   * `context` has the services of the transport.
   */
  open(connection: Connection, context: Context.Context<never>): Peer.Peer {
    const peer = Peer.makeUnsafe(this.options(connection), this.#enter(context))
    this.hub.peers.add(peer)
    return peer
  }

  /** A transport opens all of its connections with the same services. */
  #enter(context: Context.Context<never>): Context.Context<never> {
    if (this.#entered?.from !== context) {
      this.#entered = { from: context, services: logs.withServerServices(context, this.catalog[internals].base) }
    }
    return this.#entered.services
  }

  /** Who hears of sessions, streams and refusals. Nobody, unless telemetry is on. */
  get observer(): ServerObserver | undefined {
    return this.catalog[internals].middleware.observer
  }

  /** The peer is over. */
  forget(peer: Peer.Peer): void {
    this.hub.peerClosed(peer)
    this.observer?.sessionClosed(peer)
  }

  /** Starts the handling of a lone request, with the services of `context`. */
  run(
    context: Context.Context<never>,
    exchange: RequestContext,
    instead?: Effect.Effect<Answer, McpError.McpError>
  ): Fiber.Fiber<Answer, McpError.McpError> {
    let effect: Effect.Effect<Answer, McpError.McpError, McpRequest>
    try {
      effect = instead ?? this.#dispatch(exchange)
    } catch (defect) {
      effect = Effect.die(defect)
    }
    return Effect.runForkWith(Context.add(context, McpRequest, exchange))(effect)
  }
}
