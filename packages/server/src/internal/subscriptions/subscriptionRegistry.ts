/**
 * The subscriptions of a server: which sessions and which `subscriptions/listen` requests receive which notifications.
 */
import { KeyedCounter } from "@skein/runtime/KeyedCounter"
import type { LoggingLevel } from "@skein/protocol/Logging"
import type { Notification } from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { Peer } from "@skein/runtime/Peer"
import type { Caller, RequestContext, SessionPeer } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Catalog, Watch } from "../../Catalog.ts"
import { type ChangeListener, internals, type Publish, type Subscription } from "../catalog/catalogState.ts"
import type { Change, EventBus, ListKind } from "../../EventBus.ts"
import { findReader, findWatch } from "../handlers/readResource.ts"
import * as capabilities from "./capabilities.ts"
import { Bounds, type FixedBounds } from "../base/fixedBounds.ts"
import type { Fibers } from "../base/fibers.ts"
import { ServerSession, type SessionChange, sessionOf, type SessionSharing } from "../base/session.ts"
import {
  type NotificationTarget,
  type OutgoingNotification,
  PendingNotifications
} from "../base/pendingNotifications.ts"
import { ListenSubscription } from "./listenSubscription.ts"
import { ResourceWatches } from "./resourceWatches.ts"
import { clientOf, largestBeside } from "../base/client.ts"

type Subscriber = NotificationTarget & { readonly caller: Caller }

const listChangedMethods: { readonly [kind in ListKind]: string } = {
  tools: "notifications/tools/list_changed",
  resources: "notifications/resources/list_changed",
  prompts: "notifications/prompts/list_changed"
}

const limitReached = (message: string): McpError.McpError => new McpError.McpError({ reason: "InternalError", message })

/** About the memory of one subscription to a resource, without its URI. */
const subscriptionBytes = 256

// How many watches of one `subscriptions/listen` begin at the same time.
const watchConcurrency = 8

/** Stores the subscriptions and sends the notifications of changes. */
export class SubscriptionRegistry implements ChangeListener {
  /** The open connections of the server. */
  readonly peers = new Set<Peer>()
  /** The connections that end with the answer to their first message, as those of a stateless endpoint do. */
  readonly singleRequestPeers = new WeakSet<SessionPeer>()
  readonly #catalog: Catalog["Service"]
  readonly bounds: FixedBounds
  // The log level of a session before its first `logging/setLevel`.
  readonly #logLevel: LoggingLevel | undefined
  readonly #fibers: Fibers
  readonly #bus: EventBus["Service"] | undefined
  readonly #pending: PendingNotifications
  readonly #listens = new Set<ListenSubscription>()
  readonly #listensByClient = new KeyedCounter()
  // The subscribers of a resource, by its URI.
  readonly #subscribers = new Map<string, Set<Subscriber>>()
  readonly #watches: ResourceWatches
  // The lists whose changes are being collected, before they are published and after they were received.
  readonly #collecting = new Set<ListKind>()
  readonly #received = new Set<ListKind>()
  /** Shares sessions with other processes; set by an HTTP endpoint with a fleet. */
  sharing: SessionSharing | undefined = undefined
  #isShutDown = false

  constructor(
    catalog: Catalog["Service"],
    logLevel: LoggingLevel | undefined,
    fibers: Fibers,
    bus: EventBus["Service"] | undefined
  ) {
    this.#catalog = catalog
    this.bounds = Context.get(catalog[internals].base, Bounds)
    this.#logLevel = logLevel
    this.#fibers = fibers
    this.#bus = bus
    this.#pending = new PendingNotifications(fibers)
    this.#watches = new ResourceWatches(fibers)
  }

  /** The open `subscriptions/listen` requests, oldest first. */
  get listens(): Iterable<ListenSubscription> {
    return this.#listens
  }

  /** The number of resources that are watched for their subscribers. */
  get watchedResources(): number {
    return this.#watches.size
  }

  /** The number of resources that have a subscriber. */
  get subscribedResources(): number {
    return this.#subscribers.size
  }

  // ---- sessions

  /** Handles the notifications of clients. */
  onNotification({ session }: Peer, { method }: Notification): void {
    if (method === "notifications/initialized" && session instanceof ServerSession) session.initialized = true
  }

  /**
   * Changes a session: with `apply`, or at all processes that serve it, and then returns when they have received the
   * change, in the same order.
   */
  change(session: ServerSession, change: SessionChange, apply: () => void): Effect.Effect<void, McpError.McpError> {
    return this.sharing?.change(session, change) ?? Effect.sync(apply)
  }

  /** The session of a caller; undefined for a stateless request, and for a session of one request. */
  lastingSession(caller: Caller): ServerSession | undefined {
    const session = sessionOf(caller)
    return session === undefined || this.singleRequestPeers.has(session.peer) ? undefined : session
  }

  /** Whether the connection of a session is open, and no other session has replaced it. */
  isOpen(session: ServerSession): boolean {
    const open: ReadonlySet<SessionPeer> = this.peers
    return open.has(session.peer) && session.peer.session === session
  }

  /**
   * Makes a session the one of its connection. It receives notifications about the lists that the server declares now.
   * An earlier session of the connection loses its subscriptions, and its scope closes. Its requests in progress
   * continue, since their client may be another one behind the same bridge.
   */
  openSession(session: ServerSession): ServerSession {
    const replaced = session.peer.session
    this.#sessionClosed(session.peer)
    if (replaced instanceof ServerSession) this.#fibers.fork(replaced.closeScope)
    session.peer.session = session
    session.lists = capabilities.lists(this.#catalog)
    session.logLevel ??= this.#logLevel
    return session
  }

  /** Removes a connection that has ended, with its subscriptions. */
  peerClosed(peer: Peer): void {
    this.peers.delete(peer)
    this.#sessionClosed(peer)
  }

  #sessionClosed({ session }: SessionPeer): void {
    if (!(session instanceof ServerSession)) return
    session.initialized = false
    if (session.subscriptions === undefined) return
    for (const uri of session.subscriptions) this.#removeSubscriber(uri, session)
    session.subscriptions = undefined
    for (const uri of session.watched ?? []) this.#watches.release(uri)
    session.watched = undefined
  }

  /** Subscribes a session to a resource. A second subscription to the same resource changes nothing. */
  subscribe(session: ServerSession, uri: string): Effect.Effect<void, McpError.McpError> {
    return Effect.suspend(() => {
      const refused = this.#mustSubscribe(session, uri)
      if (refused !== true) return refused === false ? Effect.void : Effect.fail(refused)
      // The node that notifies the client watches.
      const watch = this.#isMuted(session) ? undefined : findWatch(this.#catalog, uri)
      if (watch === undefined) return Effect.sync(() => this.#subscribed(session, uri))
      return Effect.flatMap(this.#watches.retain(uri, watch), () => {
        // The session may have ended, or have subscribed twice, while the watch began.
        const refused = this.#mustSubscribe(session, uri)
        if (refused === true) {
          this.#subscribed(session, uri)
          ;(session.watched ??= new Set()).add(uri)
          return Effect.void
        }
        this.#watches.release(uri)
        return refused === false ? Effect.void : Effect.fail(refused)
      })
    })
  }

  /** Another process notifies the client from now on, or no longer: begins or ends the watches of its resources. */
  muteChanged(session: ServerSession, isMuted: boolean): void {
    if (isMuted) {
      // The other process may have received these changes before it notified the client.
      for (const kind of this.#received) this.#notifySessionOfList(session, kind)
      for (const uri of session.watched ?? []) this.#watches.release(uri)
      session.watched = undefined
      return
    }
    for (const uri of session.subscriptions ?? []) {
      const watch = session.watched?.has(uri) === true ? undefined : findWatch(this.#catalog, uri)
      if (watch !== undefined) this.#fibers.fork(Effect.ignore(this.#watchAgain(session, uri, watch)))
    }
  }

  #watchAgain(session: ServerSession, uri: string, watch: Watch): Effect.Effect<void, McpError.McpError> {
    return Effect.map(this.#watches.retain(uri, watch), () => {
      const isStillWanted = this.isOpen(session) && !this.#isMuted(session) && session.subscriptions?.has(uri) === true
      if (!isStillWanted || session.watched?.has(uri) === true) return this.#watches.release(uri)
      ;(session.watched ??= new Set()).add(uri)
      // It may have changed while no process watched it.
      this.#notifySessionOf(session, uri)
    })
  }

  /** Whether a session has to subscribe to a resource, or why it may not. */
  #mustSubscribe(session: ServerSession, uri: string): boolean | McpError.McpError {
    // The request may outlive its session.
    if (!this.isOpen(session) || session.subscriptions?.has(uri) === true) return false
    const { maxResources } = this.bounds
    return (session.subscriptions?.size ?? 0) < maxResources ||
      limitReached(`A session may subscribe to at most ${maxResources} resources`)
  }

  #subscribed(session: ServerSession, uri: string): void {
    ;(session.subscriptions ??= new Set()).add(uri)
    session.subscribedBytes += subscriptionBytes + uri.length
    this.#addSubscriber(uri, session)
  }

  unsubscribe(session: ServerSession, uri: string): void {
    if (session.subscriptions?.delete(uri) !== true) return
    session.subscribedBytes -= subscriptionBytes + uri.length
    this.#removeSubscriber(uri, session)
    if (session.watched?.delete(uri) === true) this.#watches.release(uri)
  }

  #addSubscriber(uri: string, subscriber: Subscriber): void {
    const subscribers = this.#subscribers.get(uri)
    if (subscribers === undefined) this.#subscribers.set(uri, new Set([subscriber]))
    else subscribers.add(subscriber)
  }

  #removeSubscriber(uri: string, subscriber: Subscriber): void {
    const subscribers = this.#subscribers.get(uri)
    subscribers?.delete(subscriber)
    if (subscribers?.size === 0) this.#subscribers.delete(uri)
  }

  notify(caller: Caller, key: string, notification: OutgoingNotification): boolean {
    const session = sessionOf(caller)
    if (session === undefined || !session.initialized || !this.isOpen(session)) return false
    this.#pending.send(session, key, notification)
    return true
  }

  session(caller: Caller): Scope.Scope | undefined {
    const session = sessionOf(caller)
    return session !== undefined && this.isOpen(session) ? session.scope : undefined
  }

  sharedSession(caller: Caller): string | undefined {
    const session = this.sharing === undefined ? undefined : sessionOf(caller)
    return session === undefined ? undefined : this.sharing!.idOf(session)
  }

  // ---- subscriptions of the stateless revision

  /**
   * Starts the watches of resources, and passes on those of the URIs whose subscription is confirmed. The watches last as
   * long as `use`.
   */
  watching<A, E, R>(
    uris: ReadonlySet<string>,
    use: (confirmed: ReadonlySet<string>) => Effect.Effect<A, E, R>
  ): Effect.Effect<A, E, R> {
    const watches = Array.from(uris, (uri) => [uri, findWatch(this.#catalog, uri)] as const)
      .filter((entry): entry is [string, Watch] => entry[1] !== undefined)
    if (watches.length === 0) return use(uris)
    const retained = new Set<string>()
    const retain = ([uri, watch]: readonly [string, Watch]) =>
      Effect.uninterruptibleMask((restore) =>
        Effect.match(restore(this.#watches.retain(uri, watch)), {
          onFailure: () => undefined,
          onSuccess: () => void retained.add(uri)
        })
      )
    return Effect.ensuring(
      Effect.flatMap(
        Effect.forEach(watches, retain, { concurrency: watchConcurrency, discard: true }),
        () => {
          const refused = new Set(watches.map(([uri]) => uri).filter((uri) => !retained.has(uri)))
          return use(refused.size === 0 ? uris : new Set([...uris].filter((uri) => !refused.has(uri))))
        }
      ),
      Effect.sync(() => {
        for (const uri of retained) this.#watches.release(uri)
      })
    )
  }

  /**
   * Acknowledges a `subscriptions/listen` and sends its notifications until the request is released, which completes
   * it, or interrupted.
   */
  listen(
    request: RequestContext,
    kinds: ReadonlyArray<ListKind>,
    uris: ReadonlySet<string>,
    agreed: object,
    further: ReadonlyArray<Subscription> = []
  ): Effect.Effect<ListenSubscription, McpError.McpError> {
    return Effect.suspend(() => {
      const refusal = this.#refusal(request)
      if (refusal !== undefined) return Effect.fail(refusal)
      const { exchange } = request
      const listen = new ListenSubscription(request, kinds, uris)
      this.#add(listen)
      let retained = 0
      for (const uri of uris) retained += subscriptionBytes + uri.length
      exchange.dropParams(request, retained)
      // The acknowledgment comes before every notification.
      this.#pending.send(listen, "", {
        method: "notifications/subscriptions/acknowledged",
        params: { notifications: agreed }
      })
      const released = Effect.callback<ListenSubscription>((resume) => {
        exchange.release = () => resume(Effect.succeed(listen))
        if (this.#isShutDown) exchange.release()
      })
      const publish: Publish = (key, method, params) => this.#pending.send(listen, key, { method, params })
      // Children of the fiber that handles the request end with it.
      const started = Effect.forEach(further, ({ run }) => Effect.forkChild(run(publish)), { discard: true })
      return Effect.ensuring(
        further.length === 0 ? released : Effect.andThen(started, released),
        Effect.sync(() => this.#remove(listen))
      )
    })
  }

  #refusal({ caller, origin }: RequestContext): McpError.McpError | undefined {
    const { maxListens, maxListensPerPrincipal } = this.bounds
    const own = this.#listensByClient.of(clientOf(origin))
    if (caller.principal !== undefined && own >= maxListensPerPrincipal) {
      return limitReached(`One principal may have at most ${maxListensPerPrincipal} open subscriptions`)
    }
    if (this.#listens.size < maxListens || this.#makeRoom(own)) return undefined
    return limitReached(`The server has ${maxListens} open subscriptions already`)
  }

  /** Completes the oldest subscription of a client that has at least twice as many as another one. */
  #makeRoom(own: number): boolean {
    const larger = largestBeside(this.#listensByClient.entries, own)
    if (larger === undefined) return false
    for (const listen of this.#listens) {
      if (listen.client !== larger) continue
      this.#remove(listen)
      listen.request.exchange.release?.()
      return true
    }
    return false
  }

  #add(listen: ListenSubscription): void {
    this.#listens.add(listen)
    this.#listensByClient.add(listen.client, 1)
    for (const uri of listen.uris) this.#addSubscriber(uri, listen)
  }

  #remove(listen: ListenSubscription): void {
    if (!this.#listens.delete(listen)) return
    this.#listensByClient.add(listen.client, -1)
    for (const uri of listen.uris) this.#removeSubscriber(uri, listen)
  }

  /**
   * Completes all `subscriptions/listen` requests with their results, and every later one as soon as it is
   * acknowledged.
   */
  shutdown(): void {
    this.#isShutDown = true
    for (const { request } of [...this.#listens]) request.exchange.release?.()
  }

  // ---- changes

  /**
   * Collects the changes of a list for a short time, then sends one notification. Does nothing without a connection and
   * without a bus.
   */
  listChanged(kind: ListKind): void {
    if (this.#collecting.has(kind)) return
    if (this.#bus === undefined && this.peers.size === 0 && this.#listens.size === 0) return
    this.#collecting.add(kind)
    this.#fibers.fork(Effect.andThen(
      Effect.sleep(this.bounds.listChangedDelay),
      Effect.suspend(() => {
        this.#collecting.delete(kind)
        return this.#publish({ _tag: "List", kind })
      })
    ))
  }

  resourceUpdated(uri: string, parent: string | undefined): Effect.Effect<void> {
    return this.#publish(parent === undefined ? { _tag: "Resource", uri } : { _tag: "Resource", uri, parent })
  }

  #publish(change: Change): Effect.Effect<void> {
    return this.#bus === undefined ? Effect.sync(() => this.deliver(change)) : this.#bus.publish(change)
  }

  /** Notifies the subscribers in this process of a change. */
  deliver(change: Change): void {
    if (change._tag === "List") {
      return this.sharing === undefined ? this.#notifyList(change.kind) : this.#listReceived(change.kind)
    }
    const { parent, uri } = change
    for (const listener of this.#catalog[internals].updateListeners) {
      listener(uri)
      if (parent !== undefined) listener(parent)
    }
    this.#notifyResource(uri, uri)
    if (parent !== undefined && parent !== uri) this.#notifyResource(uri, parent)
  }

  /** Several processes report the same change of a list: one notification suffices for those of a short time. */
  #listReceived(kind: ListKind): void {
    if (this.#received.has(kind)) return
    this.#received.add(kind)
    this.#fibers.fork(Effect.andThen(
      Effect.sleep(this.bounds.listChangedDelay),
      Effect.sync(() => {
        this.#received.delete(kind)
        this.#notifyList(kind)
      })
    ))
  }

  /** Whether another process notifies the client of a session. */
  #isMuted(session: ServerSession): boolean {
    return this.sharing !== undefined && this.sharing.isMuted(session)
  }

  #notifyList(kind: ListKind): void {
    for (const { session } of this.peers) {
      if (session instanceof ServerSession && !this.#isMuted(session)) this.#notifySessionOfList(session, kind)
    }
    const notification = { method: listChangedMethods[kind] }
    for (const listen of this.#listens) if (listen.kinds.includes(kind)) this.#pending.send(listen, kind, notification)
  }

  #notifySessionOfList(session: ServerSession, kind: ListKind): void {
    if (!session.initialized || !session.lists.includes(kind)) return
    this.#pending.send(session, kind, { method: listChangedMethods[kind] })
  }

  /** Notifies a session of a change of everything that it is notified of: changes of a while may have been missed. */
  notifyOfAll(session: ServerSession): void {
    for (const kind of session.lists) this.#notifySessionOfList(session, kind)
    for (const uri of session.subscriptions ?? []) this.#notifySessionOf(session, uri)
  }

  #notifySessionOf(session: ServerSession, uri: string): void {
    if (!this.canRead(session.caller, uri)) return
    this.#pending.send(session, uri, { method: "notifications/resources/updated", params: { uri } })
  }

  #notifyResource(uri: string, subscribed: string): void {
    const name = "notifications/resources/updated"
    const notification = { method: name, params: { uri } }
    // One notification about the parent replaces several about its parts.
    const ofParent = uri === subscribed ? notification : { method: name, params: { uri: subscribed } }
    for (const subscriber of this.#subscribers.get(subscribed) ?? []) {
      if (subscriber instanceof ServerSession && this.#isMuted(subscriber)) continue
      if (!this.canRead(subscriber.caller, uri)) continue
      if (uri !== subscribed) {
        // A subscriber of both was notified already.
        if (this.#subscribers.get(uri)?.has(subscriber) === true) continue
        if (!this.canRead(subscriber.caller, subscribed)) continue
      }
      this.#pending.send(subscriber, subscribed, notification, ofParent)
    }
  }

  /** Whether the caller can read the URI. */
  canRead(caller: Caller, uri: string): boolean {
    return this.readProblem(caller, uri) === undefined
  }

  /** Why the caller cannot read the URI. */
  readProblem(caller: Caller, uri: string): McpError.McpError | undefined {
    try {
      const read = findReader(this.#catalog, uri, caller)
      return read === undefined ? McpError.resourceNotFound(uri) : McpError.isMcpError(read) ? read : undefined
    } catch {
      return McpError.resourceNotFound(uri)
    }
  }
}
