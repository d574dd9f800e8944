/**
 * A session that several nodes of a fleet serve, and its state at one of them.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { SessionPeer } from "@skein/runtime/RequestContext"
import type * as Deferred from "effect/Deferred"
import type { SessionChange } from "../../base/session.ts"
import type { HttpRequest } from "../messages/adapter.ts"
import type { HttpRefusal } from "../messages/refusals.ts"
import type { LookupTable } from "./sessionLookups.ts"

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
  /** Whether messages wait until its client listens. */
  readonly holdsMessages: boolean
  /** Whether a request is in flight here. */
  readonly handles: (id: JsonRpc.Id) => boolean
  /** Handles a message of the client that another node has received. */
  readonly receiveFromNode: (text: string) => void
  /** Another node has received `notifications/initialized`. */
  readonly initialized: () => void
  /** Sends a message that belongs to no request, and that another node has sent here. */
  readonly sendFromNode: (text: string, from: number) => void
  /** The number of the stream that the client has opened here by GET; undefined without one. */
  readonly standalone: number | undefined
  /** Ends the stream here: another node may continue it. */
  readonly leaveStream: () => void
  /** Returns the messages that wait for the stream. */
  readonly takeQueue: () => ReadonlyArray<string>
  /** Ends it here. */
  readonly evict: () => void
}

/** The sessions of the endpoint. */
export interface SessionTable extends LookupTable {
  readonly open: ReadonlyMap<string, Pick<SharedSession, "peer" | "principalId">>
  /** Refuses a new session if as many are open as allowed. */
  readonly noRoom: (request: HttpRequest) => HttpRefusal | undefined
  /** Adds a copy of a session that another node has opened. */
  readonly restore: (id: string, request: HttpRequest, bytes: number) => SharedSession
}

/** The state of a shared session at this node. */
export interface Shared {
  readonly session: SharedSession
  /** The node that sends the messages that belong to no request. */
  listensAt: number
  /** Whether it has ended at all nodes. */
  isEnded: boolean
  /** Whether the client was not notified for a while: this node should have done it, and had removed the session. */
  hasMissed: boolean
  /** The change that makes this node the one that sends these messages, until all nodes have received it. */
  move: Move | undefined
  /** The changes that arrive while its record is read again: the record may be older. */
  changes: Array<SessionChange> | undefined
}

/** A change of the node with the stream of a session, from the moment that its client opens the stream. */
export interface Move {
  /** The node that sends these messages until this change is stored. */
  readonly listenedAt: number
  readonly done: Deferred.Deferred<boolean>
  /** Whether it is stored. The changes that are received before are older. */
  isStored: boolean
}

/** The node that notifies the client of changes: each change is received by all nodes before or after a move. */
export const notifierOf = ({ listensAt, move }: Shared): number =>
  move?.isStored === false ? move.listenedAt : listensAt
