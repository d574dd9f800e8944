/**
 * Who hears of what changes: the sessions of a server, and the subscriptions to it.
 */
import type { LoggingLevel } from "@skein/protocol/Common"
import type { Id, JsonObject, Notification } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Method from "@skein/protocol/Method"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import type { Peer } from "@skein/runtime/Peer"
import type { Caller, RequestContext } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Catalog, Listener, Publish, Subscription } from "../../Catalog.ts"
import type { Change, EventBus, ListKind } from "../../EventBus.ts"
import { findReader } from "../definitions/readResource.ts"
import * as capabilities from "../dispatch/capabilities.ts"
import type { Fibers } from "../dispatch/fibers.ts"
import { ServerSession, sessionOf } from "../dispatch/session.ts"
import { type NotificationTarget, type OutgoingNotification, PendingNotifications } from "./pendingNotifications.ts"
import { KeyedCounter } from "../limits/concurrencyLimiter.ts"

/** How a hub behaves. What each means stands in `McpServer.Options`. */
export interface SubscriptionSettings {
  readonly debounce: number
  readonly maxResources: number
  readonly maxListens: number
  readonly maxListensPerPrincipal: number
  /** What a session gets of the logs before it says a level. */
  readonly logLevel: LoggingLevel | undefined
}

type Subscriber = NotificationTarget & { readonly caller: Caller }

const listChanged: { readonly [kind in ListKind]: string } = {
  tools: Method.ToolListChanged.name,
  resources: Method.ResourceListChanged.name,
  prompts: Method.PromptListChanged.name
}

const full = (message: string): McpError.McpError => new McpError.McpError({ reason: "InternalError", message })

export class SubscriptionRegistry implements Listener {
  /** The connections of the server that are open. */
  readonly peers = new Set<Peer>()
  /** Those among them that are over with the answer to their first message. */
  readonly alone = new WeakSet<Peer>()
  readonly #catalog: Catalog["Service"]
  readonly #settings: SubscriptionSettings
  readonly #fibers: Fibers
  readonly #bus: EventBus["Service"] | undefined
  readonly #outbox: PendingNotifications
  readonly #listens = new Set<ListenSubscription>()
  readonly #listensOf = new KeyedCounter()
  // Who has subscribed to a resource, by its URI.
  readonly #subscribers = new Map<string, Set<Subscriber>>()
  // The lists whose changes are being gathered.
  readonly #gathering = new Set<ListKind>()
  #ended = false

  constructor(
    catalog: Catalog["Service"],
    settings: SubscriptionSettings,
    fibers: Fibers,
    bus: EventBus["Service"] | undefined
  ) {
    this.#catalog = catalog
    this.#settings = settings
    this.#fibers = fibers
    this.#bus = bus
    this.#outbox = new PendingNotifications(fibers)
  }

  /** How many resources one session, or one subscription of the request era, may watch. */
  get maxResources(): number {
    return this.#settings.maxResources
  }

  /** The subscriptions of the request era that are open, oldest first. */
  get listens(): Iterable<ListenSubscription> {
    return this.#listens
  }

  /** How many resources are subscribed to, by anybody. */
  get watched(): number {
    return this.#subscribers.size
  }

  // ---- sessions

  /** What clients say unasked. */
  onNotification(peer: Peer, { method }: Notification): Effect.Effect<void> | void {
    if (method === "notifications/initialized" && peer.session instanceof ServerSession) peer.session.initialized = true
  }

  /** A session has been told what the server can do: it hears of no lists but those. */
  opened(session: ServerSession): void {
    session.lists = capabilities.lists(this.#catalog)
    session.logLevel ??= this.#settings.logLevel
  }

  /** The peer is over. */
  forget(peer: Peer): void {
    this.peers.delete(peer)
    const { session } = peer
    if (!(session instanceof ServerSession) || session.subscriptions === undefined) return
    for (const uri of session.subscriptions) this.#leave(uri, session)
    session.subscriptions = undefined
  }

  /** A session subscribes to a resource. Saying so again changes nothing. */
  subscribe(session: ServerSession, uri: string): Effect.Effect<void, McpError.McpError> {
    return Effect.suspend(() => {
      // A request that outlives its session leaves nothing behind.
      if (!this.peers.has(session.peer)) return Effect.void
      const uris = (session.subscriptions ??= new Set())
      if (uris.has(uri)) return Effect.void
      const { maxResources } = this.#settings
      if (uris.size >= maxResources) {
        return Effect.fail(full(`A session may subscribe to ${maxResources} resources at most`))
      }
      uris.add(uri)
      this.#join(uri, session)
      return Effect.void
    })
  }

  unsubscribe(session: ServerSession, uri: string): void {
    if (session.subscriptions?.delete(uri) === true) this.#leave(uri, session)
  }

  #join(uri: string, subscriber: Subscriber): void {
    const subscribers = this.#subscribers.get(uri)
    if (subscribers === undefined) this.#subscribers.set(uri, new Set([subscriber]))
    else subscribers.add(subscriber)
  }

  #leave(uri: string, subscriber: Subscriber): void {
    const subscribers = this.#subscribers.get(uri)
    subscribers?.delete(subscriber)
    if (subscribers?.size === 0) this.#subscribers.delete(uri)
  }

  tell(caller: Caller, key: string, notice: OutgoingNotification): boolean {
    const session = sessionOf(caller)
    if (session === undefined || !session.initialized || !this.peers.has(session.peer)) return false
    this.#outbox.tell(session, key, notice)
    return true
  }

  session(caller: Caller): Scope.Scope | undefined {
    const peer = sessionOf(caller)?.peer
    return peer !== undefined && this.peers.has(peer) ? peer.scope : undefined
  }

  // ---- subscriptions of the request era

  /**
   * Acknowledges, and tells what was agreed on until the exchange is released, which ends this, or it is interrupted.
   */
  listen(
    exchange: RequestContext,
    kinds: ReadonlyArray<ListKind>,
    uris: ReadonlySet<string>,
    agreed: object,
    further: ReadonlyArray<Subscription> = []
  ): Effect.Effect<ListenSubscription, McpError.McpError> {
    return Effect.suspend(() => {
      const refusal = this.#refusal(exchange.caller)
      if (refusal !== undefined) return Effect.fail(refusal)
      const listen = new ListenSubscription(exchange, kinds, uris)
      this.#add(listen)
      // First of all: what changes from here on is told after it.
      this.#outbox.tell(listen, "", {
        method: Method.SubscriptionsAcknowledged.name,
        params: { notifications: agreed }
      })
      const released = Effect.callback<ListenSubscription>((resume) => {
        exchange.release = () => resume(Effect.succeed(listen))
        if (this.#ended) exchange.release()
      })
      const tell: Publish = (key, method, params) => this.#outbox.tell(listen, key, { method, params })
      // Children of the fiber that handles the request: they end with it.
      const started = Effect.forEach(further, ({ run }) => Effect.forkChild(run(tell)), { discard: true })
      return Effect.ensuring(
        further.length === 0 ? released : Effect.andThen(started, released),
        Effect.sync(() => this.#remove(listen))
      )
    })
  }

  #refusal({ principal }: Caller): McpError.McpError | undefined {
    const { maxListens, maxListensPerPrincipal } = this.#settings
    if (this.#listens.size >= maxListens) return full(`The server has ${maxListens} subscriptions already`)
    return principal !== undefined && this.#listensOf.of(principal.id) >= maxListensPerPrincipal
      ? full(`One principal may have ${maxListensPerPrincipal} subscriptions at most`)
      : undefined
  }

  #add(listen: ListenSubscription): void {
    this.#listens.add(listen)
    this.#listensOf.add(listen.caller.principal?.id, 1)
    for (const uri of listen.uris) this.#join(uri, listen)
  }

  #remove(listen: ListenSubscription): void {
    this.#listens.delete(listen)
    this.#listensOf.add(listen.caller.principal?.id, -1)
    for (const uri of listen.uris) this.#leave(uri, listen)
  }

  /** The server shuts down: each subscription ends with its result, and so does one that comes from now on. */
  end(): void {
    this.#ended = true
    for (const { exchange } of [...this.#listens]) exchange.release?.()
  }

  // ---- changes

  /** Gathers the changes of a list for a while, so that one notice is sent for many. Without anybody to hear nothing is done. */
  listed(kind: ListKind): void {
    if (this.#gathering.has(kind)) return
    if (this.#bus === undefined && this.peers.size === 0 && this.#listens.size === 0) return
    this.#gathering.add(kind)
    this.#fibers.fork(Effect.andThen(
      Effect.sleep(this.#settings.debounce),
      Effect.suspend(() => {
        this.#gathering.delete(kind)
        return this.#publish({ _tag: "List", kind })
      })
    ))
  }

  updated(uri: string, parent: string | undefined): Effect.Effect<void> {
    return this.#publish(parent === undefined ? { _tag: "Resource", uri } : { _tag: "Resource", uri, parent })
  }

  #publish(change: Change): Effect.Effect<void> {
    return this.#bus === undefined ? Effect.sync(() => this.heard(change)) : this.#bus.publish(change)
  }

  /** Tells a change to those here who have subscribed to it. */
  heard(change: Change): void {
    if (change._tag === "List") return this.#tellList(change.kind)
    const { parent, uri } = change
    this.#tellResource(uri, uri)
    if (parent !== undefined && parent !== uri) this.#tellResource(uri, parent)
  }

  #tellList(kind: ListKind): void {
    const notice = { method: listChanged[kind] }
    for (const { session } of this.peers) {
      if (session instanceof ServerSession && session.initialized && session.lists.includes(kind)) {
        this.#outbox.tell(session, kind, notice)
      }
    }
    for (const listen of this.#listens) if (listen.hears(kind)) this.#outbox.tell(listen, kind, notice)
  }

  #tellResource(uri: string, subscribed: string): void {
    const { name } = Method.ResourceUpdated
    const notice = { method: name, params: { uri } }
    // Where several parts change, what they are parts of has.
    const whole = uri === subscribed ? notice : { method: name, params: { uri: subscribed } }
    for (const subscriber of this.#subscribers.get(subscribed) ?? []) {
      if (!this.sees(subscriber.caller, uri)) continue
      if (uri !== subscribed) {
        // Who has subscribed to both has heard of it.
        if (this.#subscribers.get(uri)?.has(subscriber) === true) continue
        if (!this.sees(subscriber.caller, subscribed)) continue
      }
      this.#outbox.tell(subscriber, subscribed, notice, whole)
    }
  }

  /** Whether something is read at a URI, as far as the caller may see. */
  sees(caller: Caller, uri: string): boolean {
    try {
      return findReader(this.#catalog, uri, caller) !== undefined
    } catch {
      return false
    }
  }
}

/** A `subscriptions/listen` that is being answered: who asked, and what the server has agreed to tell. */
export class ListenSubscription implements NotificationTarget {
  readonly exchange: RequestContext
  readonly kinds: ReadonlyArray<ListKind>
  readonly uris: ReadonlySet<string>

  constructor(exchange: RequestContext, kinds: ReadonlyArray<ListKind>, uris: ReadonlySet<string>) {
    this.exchange = exchange
    this.kinds = kinds
    this.uris = uris
  }

  get caller(): Caller {
    return this.exchange.caller
  }

  hears(kind: ListKind): boolean {
    return this.kinds.includes(kind)
  }

  /** "The value is the JSON-RPC ID of the `subscriptions/listen` request", with its type. */
  get meta(): { readonly [RequestMeta.subscriptionId]: Id } {
    return { [RequestMeta.subscriptionId]: this.exchange.id }
  }

  send({ method, params }: OutgoingNotification): Effect.Effect<void> {
    const tagged: JsonObject = { _meta: this.meta, ...params }
    return this.exchange.notify(method, tagged)
  }
}
