/**
 * The sessions of an endpoint that other nodes of its fleet serve too.
 *
 * A session that a request names and that this node does not have is looked up and restored: a copy without requests and
 * streams, which is removed when it is idle. Three kinds of messages have a place, and are sent there: an answer of the
 * client, to the node that sent the request; a cancellation, to the node that handles the request; and a message that
 * belongs to no request, to the node with the GET stream. All others are handled where they arrive.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { RequestIds } from "@skein/runtime/Peer"
import type { SessionPeer } from "@skein/runtime/RequestContext"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constVoid } from "effect/Function"
import { ServerSession, type SessionChange, type SessionSharing } from "../../base/session.ts"
import { EventStore } from "../../../EventStore.ts"
import {
  FleetError,
  type Message,
  type Receiver,
  requestsPerNode,
  type Service as Fleet,
  type SessionRecord
} from "../../../Fleet.ts"
import * as Logging from "../../../Logging.ts"
import { memoryOf } from "../limits/memory.ts"
import type { HttpRequest } from "../messages/adapter.ts"
import { busy, closing, type HttpRefusal } from "../messages/refusals.ts"
import { FleetStreams } from "./fleetStreams.ts"
import { notFound, runOperation, SessionLookups, type SessionMessage, unavailable } from "./sessionLookups.ts"
import type { SessionTable, Shared, SharedSession } from "./sharedSession.ts"

export const tooManySessionsOfPrincipal = busy("Service Unavailable: too many sessions of one principal")

// How many sessions are read again at the same time, after messages were lost, and the pause before the next attempt in
// milliseconds.
const refreshConcurrency = 8
const refreshPause = 1_000

// How many ids of requests two sessions in succession have apart. A client may still answer a request of an earlier copy
// of its session.
const idsApart = 1_000

/** The node that a number belongs to: the id of a request, or that of its progress. */
const nodeOf = (id: unknown): number | undefined => {
  const own = JsonRpc.ownId(id as JsonRpc.Id)
  return typeof own === "number" && own >= requestsPerNode ? Math.floor(own / requestsPerNode) : undefined
}

export class FleetSessions implements SessionSharing, Receiver {
  readonly #fleet: Fleet
  readonly #sessions: SessionTable
  readonly #shared = new Map<SessionPeer, Shared>()
  readonly lookups: SessionLookups
  // Whether other nodes can read the events of this one.
  readonly #sharesEvents: boolean
  readonly streams: FleetStreams
  // The id of the first request of the next session, without the node.
  #nextRequest = 0
  #gaps = 0

  constructor(fleet: Fleet, sessions: SessionTable) {
    this.#fleet = fleet
    this.#sessions = sessions
    this.lookups = new SessionLookups(
      fleet,
      sessions,
      (record, request) => this.#found(record, request),
      (message) => this.message(message)
    )
    this.#sharesEvents = Context.getOrUndefined(sessions.endpoint.context, EventStore) !== undefined
    this.streams = new FleetStreams(fleet, sessions, this.#shared, this.#sharesEvents)
  }

  /** How many sessions are shared here, and how many are looked up. */
  get size(): number {
    return this.#shared.size + this.lookups.size
  }

  get flush(): Effect.Effect<void> {
    return this.#sessions.endpoint.eventStore.flush ?? Effect.void
  }

  newId(): string {
    return this.#fleet.newId()
  }

  /** The ids of the requests of this node to the client of the next session. */
  get requestIds(): RequestIds {
    const first = this.#fleet.node * requestsPerNode
    const next = first + this.#nextRequest
    this.#nextRequest = (this.#nextRequest + idsApart) % requestsPerNode
    return { first, next, last: first + requestsPerNode - 1 }
  }

  touch(id: string): void {
    this.#fleet.touch(id)
  }

  // ---- copies

  #found(record: SessionRecord | undefined, request: HttpRequest): HttpRefusal | undefined {
    if (record === undefined || record.principalId !== request.principal?.id) return notFound
    const { endpoint, open } = this.#sessions
    if (endpoint.isClosing) return closing
    if (open.has(record.id)) return undefined
    const refused = this.#sessions.noRoom(request)
    if (refused !== undefined) return refused
    const session = this.#sessions.restore(record.id, request, memoryOf(record.info) + memoryOf(record.capabilities))
    if (session.isEnding) return busy("Service Unavailable: too many sessions")
    this.#share(session, record.listensAt, record.listensAt === this.#fleet.node)
    const { capabilities, info, revision } = record
    const { subscriptions } = endpoint.core
    const server = new ServerSession(session.peer, revision, info, capabilities, request.principal)
    subscriptions.openSession(server)
    this.#update(server, record)
    return undefined
  }

  #share(session: SharedSession, listensAt: number, hasMissed: boolean): void {
    this.#shared.set(session.peer, {
      session,
      listensAt,
      isEnded: false,
      hasMissed,
      move: undefined,
      changes: undefined
    })
  }

  /** Gives a session the state of its record. */
  #update(server: ServerSession, { isInitialized, logLevel, subscriptions }: SessionRecord): void {
    if (logLevel !== undefined) server.logLevel = logLevel
    if (isInitialized) server.initialized = true
    for (const uri of subscriptions) this.#subscribe(server, uri)
    for (const uri of [...server.subscriptions ?? []]) {
      if (!subscriptions.includes(uri)) this.#sessions.endpoint.core.subscriptions.unsubscribe(server, uri)
    }
  }

  #subscribe(server: ServerSession, uri: string): void {
    this.#sessions.fork(Effect.ignore(this.#sessions.endpoint.core.subscriptions.subscribe(server, uri)))
  }

  /** Removes the oldest copy that is idle, if possible one without messages. Returns whether there was one. */
  makeRoom(): boolean {
    let found: SharedSession | undefined
    for (const { session } of this.#shared.values()) {
      if (!session.isCopy || session.busy || (session.holdsMessages && found !== undefined)) continue
      found = session
      if (!session.holdsMessages) break
    }
    found?.evict()
    return found !== undefined
  }

  // ---- the life of a session

  /** Stores a session that its client has opened here. `then` gets the reason if it is refused. */
  create(session: SharedSession, then: (refused: HttpRefusal | undefined) => void): void {
    const { id, peer, principalId } = session
    const { idleTimeout, maxSessions, maxSessionsPerPrincipal } = this.#sessions.endpoint.options
    const { node } = this.#fleet
    const { capabilities, info, logLevel, revision } = peer.session as ServerSession
    this.#share(session, node, false)
    const record = {
      id,
      principalId,
      revision,
      info,
      capabilities,
      isInitialized: false,
      logLevel,
      subscriptions: [],
      listensAt: node
    }
    runOperation(
      this.#sessions,
      "store a session",
      this.#fleet.create(record, { idleTimeout, maxSessions, maxSessionsPerPrincipal }, session.client),
      (exit) => {
        if (Exit.isFailure(exit)) then(unavailable)
        else if (!exit.value) then(tooManySessionsOfPrincipal)
        // Its client does not know its id.
        else if (session.isEnding) this.end(session, constVoid)
        else then(undefined)
      }
    )
  }

  /** The client has sent `notifications/initialized` here. `then` gets the reason if that cannot be stored now. */
  initialized(session: SharedSession, then: (refused: HttpRefusal | undefined) => void): void {
    runOperation(
      this.#sessions,
      "change a session",
      this.#fleet.change(session.id, { isInitialized: true }),
      (exit) => then(Exit.isFailure(exit) ? unavailable : undefined)
    )
  }

  /** Ends a session at all nodes, and then here. `then` gets the reason if that is not possible now. */
  end(session: SharedSession, then: (refused: HttpRefusal | undefined) => void): void {
    runOperation(this.#sessions, "end a session", this.#fleet.end(session.id), (exit) => {
      if (Exit.isSuccess(exit)) this.#ended(session)
      then(Exit.isFailure(exit) ? unavailable : undefined)
    })
  }

  #ended(session: SharedSession): void {
    const shared = this.#shared.get(session.peer)
    if (shared !== undefined) shared.isEnded = true
    session.evict()
  }

  /** A session has ended here. Returns whether its events are no longer needed. */
  closed({ id, isCopy, peer }: Pick<SharedSession, "id" | "isCopy" | "peer">): boolean {
    const shared = this.#shared.get(peer)
    this.#shared.delete(peer)
    // A later copy has them.
    if (this.#sessions.open.has(id)) return false
    return !this.#sharesEvents || (shared === undefined ? !isCopy : shared.isEnded)
  }

  // ---- the changes of its client

  idOf({ peer }: ServerSession): string | undefined {
    return this.#shared.get(peer)?.session.id
  }

  isMuted(session: { readonly peer: SessionPeer }): boolean {
    return this.streams.isMuted(session)
  }

  change({ peer }: ServerSession, change: SessionChange): Effect.Effect<void, McpError.McpError> | undefined {
    const shared = this.#shared.get(peer)
    return shared === undefined ? undefined : Effect.catch(
      Effect.asVoid(this.#fleet.change(shared.session.id, change)),
      (error) =>
        Effect.andThen(Logging.withheld(Effect.logWarning("failed to change a session", error)), Effect.fail(notStored))
    )
  }

  // ---- messages

  /**
   * Sends a message that belongs to no request to the node with the client's stream, unless that has sent it here.
   * Returns whether it has.
   */
  sendElsewhere({ id, peer }: SharedSession, text: string, from = this.#fleet.node): boolean {
    const { node } = this.#fleet
    const at = this.#shared.get(peer)?.listensAt ?? node
    if (at === node || at === from || !this.#fleet.isServing(at)) return false
    this.#fleet.send(at, { _tag: "Outgoing", id, text, from: node })
    return true
  }

  /** Passes a message of the client on to the nodes that it is for. Returns whether it is for this node too. */
  isForThis(session: SharedSession, message: JsonRpc.Message | JsonRpc.Invalid): boolean {
    switch (message._tag) {
      case "Request":
        return true
      case "Success":
      case "Failure":
        return this.#isAnswerForThis(session, message.id, message)
      case "Invalid":
        // The request fails at its node with the reason.
        return message.answer !== true ||
          this.#isAnswerForThis(session, message.id, JsonRpc.failure(message.id, message.error))
      case "Notification":
        return this.#isNotificationForThis(session, message)
    }
  }

  #isAnswerForThis({ id }: SharedSession, request: unknown, message: JsonRpc.Outbound): boolean {
    const node = nodeOf(request)
    if (node === undefined || node === this.#fleet.node) return true
    this.#fleet.send(node, { _tag: "Received", id, text: JsonRpc.encode(message) })
    return false
  }

  #isNotificationForThis(session: SharedSession, { method, params }: JsonRpc.Notification): boolean {
    const message = JsonRpc.notification(method, params)
    switch (method) {
      case "notifications/initialized":
        // The other nodes receive it as a change of the session.
        return true
      case "notifications/progress":
        return this.#isAnswerForThis(session, params?.["progressToken"], message)
      case "notifications/cancelled": {
        if (session.handles(params?.["requestId"] as JsonRpc.Id)) return true
        this.#fleet.broadcast({ _tag: "Received", id: session.id, text: JsonRpc.encode(message) })
        return false
      }
      default:
        this.#fleet.broadcast({ _tag: "Received", id: session.id, text: JsonRpc.encode(message) })
        return true
    }
  }

  /** Handles a message of a node. */
  message(message: Message): void {
    if (!("id" in message)) return
    const { bounds } = this.#sessions.endpoint.options
    this.lookups.received(message)
    const session = this.#sessions.open.get(message.id)
    const shared = session === undefined ? undefined : this.#shared.get(session.peer)
    if (shared === undefined) return this.#absent(message)
    switch (message._tag) {
      case "Ended":
        return this.#ended(shared.session)
      case "Changed": {
        const { changes } = shared
        if (changes !== undefined && changes.length <= bounds.maxPendingMessages) changes.push(message.change)
        return this.#changed(shared, message.change)
      }
      case "Received":
        return shared.session.receiveFromNode(message.text)
      case "Outgoing":
        return shared.session.sendFromNode(message.text, message.from)
      case "Missed":
        if (shared.listensAt !== this.#fleet.node) return this.#fleet.send(shared.listensAt, message)
        if (shared.move !== undefined) shared.hasMissed = true
        else this.streams.missedAll(shared.session)
    }
  }

  /** Handles a message about a session that this node does not have. */
  #absent(message: SessionMessage): void {
    const { node } = this.#fleet
    if (message._tag === "Ended") return this.#sessions.endpoint.eventStore.forget(message.id)
    if (message._tag === "Outgoing" && message.isReturned !== true) {
      return this.#fleet.send(message.from, { ...message, from: node, isReturned: true })
    }
    if (message._tag !== "Changed") return
    const { listenedAt, listensAt } = message.change
    if (listensAt !== undefined && listensAt !== node && listenedAt === node) {
      this.#fleet.send(listensAt, { _tag: "Missed", id: message.id })
    }
  }

  #changed(shared: Shared, change: SessionChange): void {
    const { session } = shared
    const { continued, isInitialized, listensAt, logLevel, subscribe, unsubscribe } = change
    const server = session.peer.session
    if (!(server instanceof ServerSession)) return
    if (isInitialized === true) {
      server.initialized = true
      session.initialized()
    }
    if (logLevel !== undefined) server.logLevel = logLevel
    if (subscribe !== undefined) this.#subscribe(server, subscribe)
    if (unsubscribe !== undefined) this.#sessions.endpoint.core.subscriptions.unsubscribe(server, unsubscribe)
    if (listensAt !== undefined) this.streams.moved(shared, server, listensAt, continued)
  }

  /** Messages were lost: idle copies of muted sessions are removed, and the records of the others are read again. */
  gap(): void {
    const gap = ++this.#gaps
    this.lookups.gap()
    const kept = Array.from(this.#shared.values()).filter(({ session }) => {
      if (!session.isCopy || session.busy || session.holdsMessages || !this.isMuted(session)) return true
      session.evict()
      return false
    })
    this.#sessions.fork(
      Effect.forEach(kept, (shared) => this.#refresh(shared, gap), { concurrency: refreshConcurrency, discard: true })
    )
  }

  /** Reads the record of a session until that is possible. A later gap begins again. */
  #refresh(shared: Shared, gap: number): Effect.Effect<void> {
    const { session } = shared
    return Effect.suspend(() => {
      if (gap !== this.#gaps || session.isEnding) return Effect.void
      shared.changes = []
      const refreshed = Effect.flatMap(
        this.#fleet.find(session.id, session.principalId),
        (record) =>
          Effect.suspend(() =>
            gap === this.#gaps && !this.#refreshed(shared, record)
              ? Effect.fail(new FleetError({ message: "too many changes of the session" }))
              : Effect.void
          )
      )
      return Effect.catch(refreshed, (error) =>
        Effect.logWarning("failed to read a session again", error).pipe(
          Effect.andThen(Effect.sleep(refreshPause)),
          Effect.andThen(this.#refresh(shared, gap))
        ))
    })
  }

  /** Gives a session the state of its record and the changes that have arrived meanwhile, if these are all. */
  #refreshed(shared: Shared, record: SessionRecord | undefined): boolean {
    const { changes = [], session } = shared
    shared.changes = undefined
    const server = session.peer.session
    if (!(server instanceof ServerSession) || session.isEnding) return true
    if (record === undefined) {
      this.#ended(session)
      return true
    }
    if (changes.length > this.#sessions.endpoint.options.bounds.maxPendingMessages) return false
    // This node may not have noticed all changes.
    if (!this.isMuted(session)) shared.hasMissed = true
    // That node may continue the stream here.
    this.streams.moved(shared, server, record.listensAt, session.standalone)
    this.#update(server, record)
    for (const change of changes) this.#changed(shared, change)
    if (!this.isMuted(session)) {
      shared.hasMissed = false
      this.streams.missedAll(session)
    }
    return true
  }
}

const notStored = new McpError.McpError({
  reason: "InternalError",
  message: "The change of the session could not be stored: send the request again"
})
