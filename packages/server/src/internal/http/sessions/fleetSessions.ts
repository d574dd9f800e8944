/**
 * The sessions of an endpoint that other nodes of its fleet serve too.
 *
 * A session that a request names and that this node does not have is looked up and restored: a copy without requests and
 * streams, which is removed when it is idle. Three kinds of messages have a place, and are sent there: an answer of the
 * client, to the node that sent the request; a cancellation, to the node that handles the request; and a message that
 * belongs to no request, to the node with the GET stream. All others are handled where they arrive.
 */
import * as Header from "@skein/protocol/Header"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type { RequestIds } from "@skein/runtime/Peer"
import type { SessionPeer } from "@skein/runtime/RequestContext"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { constFalse } from "effect/Function"
import { ServerSession, type SessionChange, type SessionSharing } from "../../base/session.ts"
import { clientOf } from "../../base/client.ts"
import {
  type FleetError,
  type Message,
  type Receiver,
  requestsPerNode,
  type Service as Fleet,
  type SessionRecord,
  streamsPerNode
} from "../../../Fleet.ts"
import * as Logging from "../../../Logging.ts"
import { SimpleClaim } from "../limits/load.ts"
import { memoryOf } from "../limits/memory.ts"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import { busy, closing, type HttpRefusal, invalid, tooManyRequests } from "../messages/refusals.ts"
import type { EndpointContext } from "./context.ts"

// The same answer for a session that never existed, that has ended, or that belongs to another principal.
export const notFound = invalid(404, "Not Found: there is no such session")
export const tooManySessionsOfPrincipal = busy("Service Unavailable: too many sessions of one principal")
const unavailable = busy("Service Unavailable: the records of the sessions cannot be read or written now")

// How many sessions are read again at the same time, after messages were lost.
const refreshConcurrency = 8

/** A session that several nodes serve, as one of them has it. */
export interface SharedSession {
  readonly id: string
  readonly peer: SessionPeer
  readonly principalId: string | undefined
  /** The client that opened it. */
  readonly client: string
  /** Whether another node has opened it, or this one before it removed it. */
  readonly isCopy: boolean
  readonly isEnding: boolean
  /** Whether a request is in flight here, or the client listens here. */
  readonly busy: boolean
  /** Whether a request is in flight here. */
  readonly handles: (id: JsonRpc.Id) => boolean
  /** Handles a message of the client that another node has received. */
  readonly receiveFromNode: (text: string) => void
  /** Sends a message of another node that belongs to no request. */
  readonly sendFromNode: (text: string) => void
  /** Ends the stream here, and returns the messages that wait for it. */
  readonly leaveStream: () => ReadonlyArray<string>
  /** Ends it here. */
  readonly evict: () => void
}

/** The sessions of the endpoint. */
export interface SessionTable {
  readonly endpoint: EndpointContext
  readonly open: ReadonlyMap<string, { readonly peer: SessionPeer }>
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Adds a copy of a session that another node has opened. */
  readonly restore: (id: string, request: HttpRequest, bytes: number) => SharedSession
}

/** The state of a shared session at this node. */
interface Shared {
  readonly session: SharedSession
  /** The node that sends the messages that belong to no request. */
  listensAt: number
  /** Whether it has ended at all nodes. */
  isEnded: boolean
}

/** The requests of a principal that wait until a session is found, and the messages about it that arrive meanwhile. */
interface Lookup {
  readonly principalId: string | undefined
  readonly waiting: Array<(refused: HttpRefusal | undefined) => void>
  readonly messages: Array<Message>
}

/** The node that a number belongs to: the id of a request, or that of its progress. */
const nodeOf = (id: unknown): number | undefined => {
  const own = JsonRpc.ownId(id as JsonRpc.Id)
  return typeof own === "number" && own >= requestsPerNode ? Math.floor(own / requestsPerNode) : undefined
}

export class FleetSessions implements SessionSharing, Receiver {
  /** The ids of the requests of this node. */
  readonly requestIds: RequestIds
  readonly #fleet: Fleet
  readonly #sessions: SessionTable
  readonly #shared = new Map<SessionPeer, Shared>()
  // By the id of the session. Each principal has its own: the answer to one says nothing to another.
  readonly #lookups = new Map<string, Array<Lookup>>()
  // The number of streams that were opened, without the node.
  #streams = 0

  constructor(fleet: Fleet, sessions: SessionTable) {
    this.#fleet = fleet
    this.#sessions = sessions
    const first = fleet.node * requestsPerNode
    this.requestIds = { first, last: first + requestsPerNode - 1 }
  }

  newId(): string {
    return this.#fleet.newId()
  }

  touch(session: SharedSession): void {
    this.#fleet.touch(session.id)
  }

  // ---- streams

  /** The number of the next stream. Those of standalone streams are odd. */
  newStream(isStandalone: boolean): number {
    this.#streams = (this.#streams + 2) % streamsPerNode
    return this.#fleet.node * streamsPerNode + this.#streams + (isStandalone ? 1 : 0)
  }

  /** Whether a stream is one by GET, which belongs to no request. */
  isStandalone(stream: number): boolean {
    return stream % 2 === 1
  }

  /** Whether another node has opened a stream, and may still send on it. */
  isElsewhere(stream: number): boolean {
    const node = Math.floor(stream / streamsPerNode)
    return node !== this.#fleet.node && this.#fleet.isServing(node)
  }

  // ---- finding sessions

  /** Whether another node may have opened the session of a request. */
  mustFind(request: HttpRequest): boolean {
    const id = request.header(Header.keys.sessionId)
    return id !== undefined && id !== "" && !this.#sessions.open.has(id) && this.#fleet.isKnown(id)
  }

  /** Finds the session of a request, and restores it here. `refuse` is called if that is not possible. */
  find(request: HttpRequest, message: JsonRpc.Inbound | undefined, answer: HttpAnswer, then: () => void): void {
    const { endpoint } = this.#sessions
    const refuse = (refused: HttpRefusal) =>
      endpoint.refuse(answer, refused, message?._tag === "Request" ? message.id : undefined)
    // Another node can serve it: the client must not take its session for lost.
    if (endpoint.isClosing) return refuse(closing)
    if (endpoint.load.requests >= endpoint.options.maxInFlightRequests) return refuse(tooManyRequests)
    const id = request.header(Header.keys.sessionId)!
    const principalId = request.principal?.id
    const lookups = this.#lookups.get(id) ?? []
    const known = lookups.find((lookup) => lookup.principalId === principalId)
    const lookup = known ?? { principalId, waiting: [], messages: [] }
    const settle = (refused: HttpRefusal | undefined): void => {
      endpoint.load.remove(claim)
      if (answer.isClosed) return
      if (refused !== undefined) refuse(refused)
      else then()
    }
    const claim = new SimpleClaim("requests", constFalse, () => {
      const index = lookup.waiting.indexOf(settle)
      if (index >= 0) lookup.waiting.splice(index, 1)
      settle(tooManyRequests)
    })
    endpoint.load.add(claim, clientOf(request), memoryOf(message))
    lookup.waiting.push(settle)
    if (known !== undefined) return
    this.#lookups.set(id, [...lookups, lookup])
    this.#run("find a session", this.#fleet.find(id, principalId), (exit) => {
      const others = this.#lookups.get(id)!.filter((other) => other !== lookup)
      if (others.length === 0) this.#lookups.delete(id)
      else this.#lookups.set(id, others)
      const refused = Exit.isFailure(exit) ? unavailable : this.#found(exit.value, request)
      if (refused === undefined) { for (const missed of lookup.messages) this.message(missed) }
      for (const settle of [...lookup.waiting]) settle(refused)
    })
  }

  /** Runs an operation of the fleet, and logs its failure. */
  #run<A>(what: string, operation: Effect.Effect<A, FleetError>, then: (exit: Exit.Exit<A, FleetError>) => void): void {
    const logged = Effect.onExit(operation, (exit) =>
      Effect.suspend(() => {
        then(exit)
        return Exit.isFailure(exit) ? Effect.logWarning(`failed to ${what}`, exit.cause) : Effect.void
      }))
    this.#sessions.fork(Effect.ignore(logged))
  }

  #found(record: SessionRecord | undefined, request: HttpRequest): HttpRefusal | undefined {
    if (record === undefined || record.principalId !== request.principal?.id) return notFound
    const { endpoint, open } = this.#sessions
    if (endpoint.isClosing) return closing
    if (open.has(record.id)) return undefined
    if (open.size >= endpoint.options.maxSessions && !this.makeRoom()) {
      return busy("Service Unavailable: too many sessions")
    }
    const session = this.#sessions.restore(record.id, request, memoryOf(record.info) + memoryOf(record.capabilities))
    if (session.isEnding) return busy("Service Unavailable: too many sessions")
    this.#shared.set(session.peer, { session, listensAt: record.listensAt, isEnded: false })
    const { capabilities, info, revision } = record
    const { subscriptions } = endpoint.core
    const server = new ServerSession(session.peer, revision, info, capabilities, request.principal)
    subscriptions.openSession(server)
    this.#update(server, record)
    return undefined
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

  /** Removes the oldest copy that is idle. Returns whether there was one. */
  makeRoom(): boolean {
    for (const { session } of this.#shared.values()) {
      if (!session.isCopy || session.busy) continue
      session.evict()
      return true
    }
    return false
  }

  // ---- the life of a session

  /** Stores a session that its client has opened here. `then` gets the reason if it is refused. */
  create(session: SharedSession, then: (refused: HttpRefusal | undefined) => void): void {
    const { id, peer, principalId } = session
    const { idleTimeout, maxSessions, maxSessionsPerPrincipal } = this.#sessions.endpoint.options
    const { node } = this.#fleet
    const { capabilities, info, logLevel, revision } = peer.session as ServerSession
    this.#shared.set(peer, { session, listensAt: node, isEnded: false })
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
    const bounds = { idleTimeout, maxSessions, maxSessionsPerPrincipal }
    this.#run("store a session", this.#fleet.create(record, bounds, session.client), (exit) => {
      if (Exit.isFailure(exit)) then(unavailable)
      else then(exit.value ? undefined : tooManySessionsOfPrincipal)
    })
  }

  /** Ends a session at all nodes, and then here. `then` gets the reason if that is not possible now. */
  end(session: SharedSession, then: (refused: HttpRefusal | undefined) => void): void {
    this.#run("end a session", this.#fleet.end(session.id), (exit) => {
      if (Exit.isSuccess(exit)) this.#ended(session)
      then(Exit.isFailure(exit) ? unavailable : undefined)
    })
  }

  #ended(session: SharedSession): void {
    const shared = this.#shared.get(session.peer)
    if (shared !== undefined) shared.isEnded = true
    session.evict()
  }

  /** A session has ended here. Returns whether it has ended at all nodes. */
  closed({ peer }: { readonly peer: SessionPeer }): boolean {
    const isEnded = this.#shared.get(peer)?.isEnded !== false
    this.#shared.delete(peer)
    return isEnded
  }

  // ---- the changes of its client

  idOf({ peer }: ServerSession): string | undefined {
    return this.#shared.get(peer)?.session.id
  }

  isMuted({ peer }: ServerSession): boolean {
    const shared = this.#shared.get(peer)
    return shared !== undefined && shared.listensAt !== this.#fleet.node
  }

  change({ peer }: ServerSession, change: SessionChange): Effect.Effect<void, McpError.McpError> {
    const shared = this.#shared.get(peer)
    return shared === undefined ? Effect.void : Effect.catch(
      this.#fleet.change(shared.session.id, change),
      (error) =>
        Effect.andThen(Logging.withheld(Effect.logWarning("failed to change a session", error)), Effect.fail(notStored))
    )
  }

  /** The client has opened its GET stream here. Returns when the other nodes know it. */
  listens(session: SharedSession): Effect.Effect<void> {
    return Effect.suspend(() => {
      const shared = this.#shared.get(session.peer)
      const { node } = this.#fleet
      if (shared === undefined || shared.listensAt === node) return Effect.void
      const hasMissed = !this.#fleet.isServing(shared.listensAt)
      shared.listensAt = node
      const { subscriptions } = this.#sessions.endpoint.core
      const server = session.peer.session as ServerSession
      return Effect.matchEffect(this.#fleet.change(session.id, { listensAt: node }), {
        onFailure: (error: FleetError) => Effect.logWarning("failed to change a session", error),
        onSuccess: () =>
          Effect.sync(() => {
            subscriptions.muteChanged(server, false)
            // No node has notified the client since the one with its stream has gone.
            if (hasMissed) subscriptions.notifyOfAll(server)
          })
      })
    })
  }

  // ---- messages

  /** Sends a message that belongs to no request to the node with the client's stream. Returns whether it is elsewhere. */
  sendElsewhere({ id, peer }: SharedSession, text: string): boolean {
    const at = this.#shared.get(peer)?.listensAt ?? this.#fleet.node
    if (at === this.#fleet.node || !this.#fleet.isServing(at)) return false
    this.#fleet.send(at, { _tag: "Outgoing", id, text })
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

  /** Handles a message of another node. */
  message(message: Message): void {
    // The record that is being read may be older than the message.
    for (const { messages } of this.#lookups.get(message.id) ?? []) messages.push(message)
    const session = this.#sessions.open.get(message.id)
    const shared = session === undefined ? undefined : this.#shared.get(session.peer)
    if (shared === undefined) return
    switch (message._tag) {
      case "Ended":
        return this.#ended(shared.session)
      case "Changed":
        return this.#changed(shared, message.change)
      case "Received":
        return shared.session.receiveFromNode(message.text)
      case "Outgoing":
        return shared.session.sendFromNode(message.text)
    }
  }

  #changed(shared: Shared, { isInitialized, listensAt, logLevel, subscribe, unsubscribe }: SessionChange): void {
    const { session } = shared
    const server = session.peer.session
    if (!(server instanceof ServerSession)) return
    const { subscriptions } = this.#sessions.endpoint.core
    if (isInitialized === true) server.initialized = true
    if (logLevel !== undefined) server.logLevel = logLevel
    if (subscribe !== undefined) this.#subscribe(server, subscribe)
    if (unsubscribe !== undefined) subscriptions.unsubscribe(server, unsubscribe)
    if (listensAt !== undefined && listensAt !== this.#fleet.node) this.#listensElsewhere(shared, server, listensAt)
  }

  #listensElsewhere(shared: Shared, server: ServerSession, node: number): void {
    shared.listensAt = node
    this.#sessions.endpoint.core.subscriptions.muteChanged(server, true)
    const { id } = shared.session
    for (const text of shared.session.leaveStream()) this.#fleet.send(node, { _tag: "Outgoing", id, text })
  }

  /** Messages were lost: idle copies are removed, and the records of the others are read again. */
  gap(): void {
    const kept = Array.from(this.#shared.values()).filter(({ session }) => {
      if (!session.isCopy || session.busy) return true
      session.evict()
      return false
    })
    this.#sessions.fork(
      Effect.forEach(kept, (shared) => this.#refresh(shared), { concurrency: refreshConcurrency, discard: true })
    )
  }

  #refresh(shared: Shared): Effect.Effect<void> {
    const { session } = shared
    return Effect.matchEffect(this.#fleet.find(session.id, session.principalId), {
      onFailure: (error) => Effect.logWarning("failed to read a session again", error),
      onSuccess: (record) =>
        Effect.sync(() => {
          const server = session.peer.session
          if (!(server instanceof ServerSession) || session.isEnding) return
          if (record === undefined) return this.#ended(session)
          if (record.listensAt !== this.#fleet.node) this.#listensElsewhere(shared, server, record.listensAt)
          this.#update(server, record)
          if (record.listensAt === this.#fleet.node) this.#sessions.endpoint.core.subscriptions.notifyOfAll(server)
        })
    })
  }
}

const notStored = new McpError.McpError({
  reason: "InternalError",
  message: "The change of the session could not be stored: send the request again"
})
