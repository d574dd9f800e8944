import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import type { Principal } from "@skein/runtime/Connection"
import type { Caller } from "@skein/runtime/RequestContext"
import type { Peer } from "@skein/runtime/Peer"
import type { Session } from "@skein/runtime/Session"
import type * as Effect from "effect/Effect"
import type { ListKind } from "../../EventBus.ts"
import type { NotificationTarget, OutgoingNotification } from "../subscriptions/pendingNotifications.ts"

/** What a server knows of a session: it is the caller of every request in it that is nobody's. */
export class ServerSession implements Session, Caller, NotificationTarget {
  readonly peer: Peer
  readonly revision: Revision
  readonly info: JsonObject | undefined
  readonly capabilities: JsonObject
  /** Who opened it; as the latest message told, where its claims change. */
  principal: Principal | undefined
  /** The least severe level of the log messages that the client asked for with `logging/setLevel`. */
  logLevel: string | undefined = undefined
  /** Whether the client has said `notifications/initialized`. Nothing is sent unasked before. */
  initialized = false
  /** The lists that the client was told of in the handshake: it hears of changes of no others. */
  lists: ReadonlyArray<ListKind> = []
  /** The resources that the client has subscribed to, once there is one. */
  subscriptions: Set<string> | undefined = undefined

  constructor(
    peer: Peer,
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

  /**
   * The session as the caller of a request of this principal. Its claims are those of the request for as long as that is handled,
   * whatever others come meanwhile.
   */
  by(principal: Principal | undefined): Caller {
    return principal === undefined ? this : new Claimed(this, principal)
  }

  /** Sends a notice unasked now, and waits while the client is slow to read. */
  send({ method, params }: OutgoingNotification): Effect.Effect<void> {
    return this.peer.notify(method, params)
  }

  /** What a handler shows of its caller says nothing of the connection. */
  toJSON(): object {
    const { capabilities, info, logLevel, principal, revision } = this
    return { revision, info, capabilities, logLevel, principal }
  }
}

/** The caller of one request in a session. */
class Claimed implements Caller {
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

/** The session that a request came in; undefined in the request era. */
export const sessionOf = (caller: Caller): ServerSession | undefined =>
  caller instanceof ServerSession ? caller : caller instanceof Claimed ? caller.session : undefined
