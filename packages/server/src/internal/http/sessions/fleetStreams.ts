/**
 * The streams of the sessions that the nodes of a fleet share: their numbers, and the moves of standalone streams.
 *
 * One node sends the messages of a session that belong to no request: the one with the client's latest GET. When the client
 * opens its stream at another node, the record of the session names that node, and the earlier one ends its stream.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type { SessionPeer } from "@skein/runtime/RequestContext"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { ServerSession } from "../../base/session.ts"
import type { HttpAnswer } from "../messages/adapter.ts"
import { nodeLost } from "../messages/refusals.ts"
import * as sse from "../messages/sse.ts"
import type { StreamPlace } from "./eventId.ts"
import { type Service as Fleet, streamsPerNode } from "../../../Fleet.ts"
import { type Move, notifierOf, type SessionTable, type Shared, type SharedSession } from "./sharedSession.ts"

const isResponse = (text: string): boolean => {
  const { _tag } = JsonRpc.parseText(text, 1)
  return _tag === "Success" || _tag === "Failure"
}

export class FleetStreams {
  readonly #fleet: Fleet
  readonly #sessions: SessionTable
  readonly #shared: ReadonlyMap<SessionPeer, Shared>
  // Whether other nodes can read the events of this one.
  readonly #sharesEvents: boolean
  // The number of streams that were opened, without the node.
  #last = 0

  constructor(
    fleet: Fleet,
    sessions: SessionTable,
    shared: ReadonlyMap<SessionPeer, Shared>,
    sharesEvents: boolean
  ) {
    this.#fleet = fleet
    this.#sessions = sessions
    this.#shared = shared
    this.#sharesEvents = sharesEvents
  }

  /** The number of the next stream. Those of standalone streams are odd. */
  newNumber(isStandalone: boolean): number {
    this.#last = (this.#last + 2) % streamsPerNode
    return this.#fleet.node * streamsPerNode + this.#last + (isStandalone ? 1 : 0)
  }

  /** The node that has opened a stream. */
  nodeOf(stream: number): number {
    return Math.floor(stream / streamsPerNode)
  }

  /** Whether a stream is one by GET, which belongs to no request. */
  isStandalone(stream: number): boolean {
    return stream % 2 === 1
  }

  /** Where the messages of a stream come from: this node, another one, which is assumed if that is unknown, or none any more. */
  whereIs(stream: number): Effect.Effect<"Here" | "Elsewhere" | "Gone"> {
    const node = this.nodeOf(stream)
    if (node === this.#fleet.node) return Effect.succeed("Here")
    return Effect.match(this.#fleet.hasGone(node), {
      onFailure: () => "Elsewhere",
      onSuccess: (hasGone) => hasGone ? "Gone" : "Elsewhere"
    })
  }

  /** Answers a client that resumes a stream of which no events are left, and on which no other node sends. */
  conclude({ id }: SharedSession, place: StreamPlace, answer: HttpAnswer): Effect.Effect<void> {
    const { event, request, stream } = place
    // By the standard of these streams, "204 No Content" makes a client stop reconnecting.
    const finish = (): void => answer.reply(204, {}, "")
    if (request === undefined || this.nodeOf(stream) === this.#fleet.node) return Effect.sync(finish)
    const read = event === 0 ? Effect.succeed([]) : this.#sessions.endpoint.eventStore.read(id, stream, event - 1)
    return Effect.map(Effect.catchCause(read, () => Effect.undefined), (events) => {
      const last = events?.at(-1)
      if ((last !== undefined && isResponse(last)) || !this.failLost(place, answer)) finish()
    })
  }

  /** Answers the request of a stream whose node has gone with an error. Returns whether its id is known. */
  failLost({ request }: StreamPlace, answer: HttpAnswer): boolean {
    if (request === undefined) return false
    answer.open(200, sse.headers)
    answer.write(sse.message(JsonRpc.encode(JsonRpc.failure(request, nodeLost))))
    answer.end()
    return true
  }

  /** Whether another node notifies the client of a session of changes. */
  isMuted({ peer }: { readonly peer: SessionPeer }): boolean {
    const shared = this.#shared.get(peer)
    return shared !== undefined && notifierOf(shared) !== this.#fleet.node
  }

  /**
   * The client continues a standalone stream of another node, or of an earlier copy of its session, after an event.
   * Returns the events that it has missed, or undefined if they are unknown, when the other nodes have stopped using the
   * stream; or `"Elsewhere"` if another node may have it, and may send on it.
   */
  take(
    session: SharedSession,
    number: number,
    after: number
  ): Effect.Effect<ReadonlyArray<string> | "Elsewhere" | undefined> {
    const { eventStore } = this.#sessions.endpoint
    const missed = Effect.catchCause(
      Effect.suspend(() => eventStore.read(session.id, number, after)),
      (cause) => Effect.as(Effect.logError("failed to read the event log", cause), undefined)
    )
    return Effect.map(Effect.zip(this.listens(session, number), missed), ([isKnown, events]) => {
      if (!isKnown || this.isMuted(session)) return "Elsewhere"
      return events ?? (after === 0 && this.#sharesEvents ? [] : undefined)
    })
  }

  /**
   * The client has opened its GET stream here. Returns whether that is stored. `continued` is the number of a stream that
   * this node does not have, if the client continues one: another node may have opened it, which this one has not heard of
   * yet.
   */
  listens(session: SharedSession, continued?: number): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const shared = this.#shared.get(session.peer)
      const { node } = this.#fleet
      if (shared === undefined) return Effect.succeed(false)
      const { hasMissed } = shared
      if (shared.listensAt === node && !hasMissed && continued === undefined) {
        return shared.move === undefined ? Effect.succeed(true) : Deferred.await(shared.move.done)
      }
      const listenedAt = notifierOf(shared)
      const move: Move = { listenedAt, done: Deferred.makeUnsafe(), isStored: false }
      shared.move = move
      shared.listensAt = node
      // No node has notified the client since the one with its stream has gone.
      const hasGone = () => !this.#fleet.isServing(listenedAt)
      if (hasGone()) shared.hasMissed = true
      const { subscriptions } = this.#sessions.endpoint.core
      const server = session.peer.session as ServerSession
      const stored = Effect.onExit(
        this.#fleet.change(session.id, {
          listensAt: node,
          listenedAt,
          ...(continued === undefined ? {} : { continued })
        }),
        (exit) =>
          Effect.sync(() => {
            Deferred.doneUnsafe(move.done, Effect.succeed(Exit.isSuccess(exit)))
            const isLatest = shared.move === move
            if (isLatest) shared.move = undefined
            if (shared.listensAt !== node) return
            if (Exit.isSuccess(exit)) {
              subscriptions.muteChanged(server, false)
              // That node may have gone meanwhile, and another one may have events of the stream that are not stored.
              if (shared.hasMissed || !exit.value || hasGone()) subscriptions.notifyOfAll(server)
              shared.hasMissed = false
            } else if (isLatest && !move.isStored) {
              // The client opens its stream again.
              this.listensElsewhere(shared, server, listenedAt)
              shared.hasMissed = hasMissed
            }
          })
      )
      return Effect.catch(
        Effect.as(stored, true),
        (error) => Effect.as(Effect.logWarning("failed to change a session", error), false)
      )
    })
  }

  /** Notifies the client of everything that it is notified of: the events of its stream are unknown. */
  missedAll(session: SharedSession): void {
    this.#sessions.endpoint.core.subscriptions.notifyOfAll(session.peer.session as ServerSession)
  }

  /**
   * A record names the node that sends the messages that belong to no request. `continued` is the stream that the client
   * continues there.
   */
  moved(shared: Shared, server: ServerSession, listensAt: number, continued: number | undefined): void {
    const { standalone } = shared.session
    if (listensAt === this.#fleet.node) {
      if (shared.move !== undefined) shared.move.isStored = true
      // An earlier copy here had the stream.
      else if (shared.listensAt !== listensAt) shared.hasMissed = true
      shared.listensAt = listensAt
    } else if (shared.move === undefined || shared.move.isStored) {
      // The client has not received an event of the stream here.
      if (continued !== undefined && standalone !== undefined && standalone !== continued) shared.hasMissed = true
      this.listensElsewhere(shared, server, listensAt)
    } // That node has continued the stream here before this one.
    else if (standalone === continued) shared.session.leaveStream()
  }

  /** Another node sends these messages from now on: it gets those that wait, and its client listens there. */
  listensElsewhere(shared: Shared, server: ServerSession, node: number): void {
    const { session } = shared
    shared.listensAt = node
    if (shared.hasMissed) this.#fleet.send(node, { _tag: "Missed", id: session.id })
    shared.hasMissed = false
    session.leaveStream()
    for (const text of session.takeQueue()) session.sendFromNode(text, this.#fleet.node)
    this.#sessions.endpoint.core.subscriptions.muteChanged(server, true)
  }
}
