/**
 * The part that all sessions of an endpoint share, over Streamable HTTP and over HTTP+SSE.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import type { Connection, Receiver } from "@skein/runtime/Connection"
import type { Peer } from "@skein/runtime/Peer"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import { ServerSession } from "../dispatch/session.ts"
import type { HttpRequest } from "./adapter.ts"
import type { EndpointContext } from "./context.ts"
import type { Store } from "./eventStore.ts"

/** The owner of the sessions of an endpoint, as a session sees it. */
export interface SessionOwner {
  readonly endpoint: EndpointContext
  readonly log: Store
  /** Whether as many long-lived streams are open as allowed. */
  readonly streamsFull: boolean
  /** Whether the endpoint shuts down. */
  readonly isClosing: boolean
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Called when a stream is connected to a client. `longLived` is true for a stream without an end of its own. */
  readonly streamOpened: (longLived: boolean) => void
  readonly streamClosed: (longLived: boolean) => void
  /** Called when a stream that is in the event log is complete. */
  readonly streamCompleted: (session: HttpSessionBase, stream: number) => void
  /** Ends a session. Later requests do not find it. */
  readonly end: (session: HttpSessionBase, reason: SessionEnd) => void
  /** Called when the connection of a session has closed and its resources are released. */
  readonly closed: (session: HttpSessionBase) => void
}

export abstract class HttpSessionBase implements Connection {
  readonly id: string
  /** The id of the principal that opened the session. Others cannot use it. */
  readonly principalId: string | undefined
  peer!: Peer
  /** Whether the session is ending. */
  isEnding = false
  readonly owner: SessionOwner
  protected receiver!: Receiver
  /** When the session was last in use. */
  #usedAt: number
  #isInitialized = false

  constructor(owner: SessionOwner, id: string, principalId: string | undefined) {
    this.owner = owner
    this.id = id
    this.principalId = principalId
    this.#usedAt = owner.endpoint.runner.now()
  }

  /** Whether a request is in flight, or a client listens. */
  abstract readonly busy: boolean
  abstract send(message: JsonRpc.Outbound, about?: JsonRpc.Id): boolean
  abstract readonly drained: Effect.Effect<void>
  /** Ends the session as soon as no request is in flight. */
  abstract drain(): void
  /** Ends all streams. Nothing is sent afterwards. */
  protected abstract closeStreams(): void

  /** The negotiated revision; undefined before `initialize` was handled. */
  get revision(): Revision | undefined {
    return this.peer.session?.revision
  }

  /**
   * When the session expires if it is not used until then. A client that continues without `notifications/initialized`
   * counts as initialized; nothing unsolicited is sent to it.
   */
  expiresAt(now: number): number {
    const { idleTimeout, initializeTimeout } = this.owner.endpoint.options.sessions
    if (!this.#isInitialized) return this.#usedAt + initializeTimeout
    return (this.busy ? now : this.#usedAt) + idleTimeout
  }

  /**
   * When to check whether it has expired. A session that is initialized until then may expire earlier than one that is
   * not.
   */
  nextCheckAt(now: number): number {
    const expiresAt = this.expiresAt(now)
    return this.#isInitialized ? expiresAt : Math.min(expiresAt, now + this.owner.endpoint.options.sessions.idleTimeout)
  }

  open(receiver: Receiver): void {
    this.receiver = receiver
  }

  /** Called before a message of the client is delivered. Its claims are the latest ones of the principal. */
  protected arrived({ principal }: HttpRequest): void {
    const { session } = this.peer
    if (!(session instanceof ServerSession)) return
    session.principal = principal
    this.#isInitialized = true
  }

  /**
   * Postpones the expiry. It has no effect before the session is initialized, even if the client opens a stream.
   */
  protected touch(): void {
    if (this.#isInitialized) this.#usedAt = this.owner.endpoint.runner.now()
  }

  get close(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.isEnding = true
      this.closeStreams()
      this.owner.closed(this)
    })
  }
}
