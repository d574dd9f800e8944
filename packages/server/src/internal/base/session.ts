import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { McpError } from "@skein/protocol/McpError"
import type { Revision } from "@skein/protocol/Revision"
import type { Principal } from "@skein/runtime/Connection"
import type { Caller, SessionPeer } from "@skein/runtime/RequestContext"
import type { Session } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import type { ListKind } from "../../EventBus.ts"
import type { NotificationTarget, OutgoingNotification } from "./pendingNotifications.ts"

/** A change of a session that its client has made: what every process that serves the session must know. */
export interface SessionChange {
  /** The client has sent `notifications/initialized`. */
  readonly isInitialized?: true | undefined
  readonly logLevel?: string | undefined
  /** A resource that the client has subscribed to. */
  readonly subscribe?: string | undefined
  readonly unsubscribe?: string | undefined
  /** The node that now sends the messages that belong to no request, and the one that did before. */
  readonly listensAt?: number | undefined
  readonly listenedAt?: number | undefined
  /** The number of the stream that it continues there; undefined for another stream. */
  readonly continued?: number | undefined
}

/** Shares sessions with other processes. */
export interface SessionSharing {
  /** Whether another process notifies the client of changes. */
  readonly isMuted: (session: ServerSession) => boolean
  /**
   * Changes a session at all processes, and returns when they have received the change; undefined if this process alone
   * has the session.
   */
  readonly change: (session: ServerSession, change: SessionChange) => Effect.Effect<void, McpError> | undefined
  /** The id of a session that other processes serve too. */
  readonly idOf: (session: ServerSession) => string | undefined
}

/** A session of a server. It is the caller of every request in it that has no principal. */
export class ServerSession implements Session, Caller, NotificationTarget {
  readonly peer: SessionPeer
  readonly revision: Revision
  readonly info: JsonObject | undefined
  readonly capabilities: JsonObject
  /** The principal that opened it, with the claims of the latest message. */
  principal: Principal | undefined
  /** The least severe level of the log messages that the client wants (`logging/setLevel`). */
  logLevel: string | undefined = undefined
  /** Whether the client has sent `notifications/initialized`. Nothing unsolicited is sent before that. */
  initialized = false
  /** The lists that were declared in the handshake. The client is notified of changes of these only. */
  lists: ReadonlyArray<ListKind> = []
  /** The resources that the client has subscribed to; undefined if there are none. */
  subscriptions: Set<string> | undefined = undefined
  /** Those of them that are watched: see `Watch`. */
  watched: Set<string> | undefined = undefined
  /** How many bytes they retain. */
  subscribedBytes = 0
  #scope: Scope.Closeable | undefined = undefined

  constructor(
    peer: SessionPeer,
    revision: Revision,
    info: JsonObject | undefined,
    capabilities: JsonObject,
    principal: Principal | undefined
  ) {
    this.peer = peer
    this.revision = revision
    this.info = info
    this.capabilities = capabilities
    this.principal = principal
  }

  get caller(): Caller {
    return this
  }

  /** Closed when the session ends: with its connection, or when another session replaces it. Made when first read. */
  get scope(): Scope.Scope {
    return this.#scope ??= Scope.forkUnsafe(this.peer.scope, "parallel")
  }

  /** Closes the scope, if it was made. */
  get closeScope(): Effect.Effect<void> {
    return this.#scope === undefined ? Effect.void : Scope.close(this.#scope, Exit.void)
  }

  /**
   * The caller of a request of this principal. It keeps the claims of the request, even if later requests have others.
   */
  callerFor(principal: Principal | undefined): Caller {
    return principal === undefined ? this : new SessionCaller(this, principal)
  }

  /** Sends an unsolicited notification, and waits while the client is slow to read. */
  send({ method, params }: OutgoingNotification): Effect.Effect<void> {
    return this.peer.notify(method, params)
  }

  /** A handler may serialize its caller: the connection is not included. */
  toJSON(): object {
    const { capabilities, info, logLevel, principal, revision } = this
    return { revision, info, capabilities, logLevel, principal }
  }
}

/** The caller of one request in a session. */
class SessionCaller implements Caller {
  readonly session: ServerSession
  readonly principal: Principal

  constructor(session: ServerSession, principal: Principal) {
    this.session = session
    this.principal = principal
  }

  get revision(): Revision {
    return this.session.revision
  }

  get info(): JsonObject | undefined {
    return this.session.info
  }

  get capabilities(): JsonObject {
    return this.session.capabilities
  }

  get logLevel(): string | undefined {
    return this.session.logLevel
  }

  toJSON(): object {
    return { ...this.session.toJSON(), principal: this.principal }
  }
}

/** The session of a caller; undefined for a stateless request. */
export const sessionOf = (caller: Caller): ServerSession | undefined =>
  caller instanceof ServerSession ? caller : caller instanceof SessionCaller ? caller.session : undefined
