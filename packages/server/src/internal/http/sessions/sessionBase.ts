/**
 * The part that all sessions of an endpoint share, over Streamable HTTP and over HTTP+SSE.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import type { Connection, Receiver } from "@skein/runtime/Connection"
import type { ConnectionInfo, StreamInfo } from "@skein/runtime/Inspect"
import type { Peer } from "@skein/runtime/Peer"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import { ServerSession } from "../../base/session.ts"
import type { HttpRequest } from "../messages/adapter.ts"
import { clientOf } from "../../base/client.ts"
import type { EndpointContext } from "./context.ts"
import type { Claim, Counted, Share } from "../limits/load.ts"
import type { FleetSessions } from "./fleetSessions.ts"
import type { NodeRequests } from "./nodeRequests.ts"

/** The owner of the sessions of an endpoint, as a session sees it. */
export interface SessionOwner {
  readonly endpoint: EndpointContext
  /** The sessions that other nodes serve too; undefined for an endpoint without a fleet. */
  readonly fleet: FleetSessions | undefined
  /** Passes requests on to other nodes; undefined if they cannot be reached. */
  readonly nodes: NodeRequests | undefined
  /** Whether the client must not open another long-lived stream, because as many are open as allowed. */
  readonly isStreamsFull: (client: string) => boolean
  readonly fork: (effect: Effect.Effect<unknown>) => void
  /** Called when a stream is connected to a client; with its claim if it is a stream without an end of its own. */
  readonly streamOpened: (client: string, longLived: Claim | undefined) => void
  readonly streamClosed: (longLived: Claim | undefined) => void
  /** Called when a stream that is in the event log is complete. */
  readonly streamCompleted: (session: HttpSessionBase, stream: number) => void
  /** Called when a message without a stream is dropped because more than `maxPendingMessages` wait. */
  readonly messageDropped: () => void
  /** Ends a session here; `stopping` because the endpoint closes. Later requests do not find it here. */
  readonly end: (session: HttpSessionBase, reason: SessionEnd, stopping?: boolean) => void
  /** Ends a session at all nodes. */
  readonly interrupt: (session: HttpSessionBase) => void
  /** Called when the connection of a session has closed and its resources are released. */
  readonly closed: (session: HttpSessionBase) => void
}

// How long a session without requests and streams is certain to continue, in milliseconds, while its client has the
// most sessions and another one is opened at the bound.
const minIdleTime = 60_000

export abstract class HttpSessionBase implements Connection, Claim {
  readonly id: string
  /** Undefined for a copy of a session that another node has opened: it takes no session of its client away. */
  kind: Counted | undefined = "sessions"
  share: Share | undefined = undefined
  bytes = 0
  /** The client that opened it. */
  readonly client: string
  /** The id of the principal that opened the session. Others cannot use it. */
  readonly principalId: string | undefined
  peer!: Peer
  /** Whether the session is ending. */
  isEnding = false
  readonly owner: SessionOwner
  protected receiver!: Receiver
  /** When the session was opened. */
  readonly #openedAt: number
  /** When the session was last in use. */
  #usedAt: number
  #isInitialized = false
  /** How many bytes of subscriptions are counted among its bytes. */
  #subscribedBytes = 0

  constructor(owner: SessionOwner, id: string, from: HttpRequest) {
    this.owner = owner
    this.id = id
    this.client = clientOf(from)
    this.principalId = from.principal?.id
    this.#openedAt = this.#usedAt = owner.endpoint.runner.now()
  }

  /** Its streams now, for `McpServer.inspect`. */
  abstract readonly streams: ReadonlyArray<StreamInfo>
  protected abstract readonly transport: ConnectionInfo["transport"]

  /** Describes the session for `McpServer.inspect`. */
  describe(): ConnectionInfo {
    return { transport: this.transport, openedAt: this.#openedAt, usedAt: this.#usedAt, streams: this.streams }
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

  /** Whether a request to the client waits for its answer. */
  get isAsking(): boolean {
    return this.peer.calls[Symbol.iterator]().next().done !== true
  }

  /** Whether the client has not completed the handshake, or has left the session idle. */
  get isWaiting(): boolean {
    if (!this.#isInitialized) return true
    return !this.busy && this.owner.endpoint.runner.now() - this.#usedAt >= minIdleTime
  }

  /** Half-open sessions come first, then those that were idle longest. */
  get rank(): number {
    if (!this.#isInitialized) return -1
    return this.busy ? Infinity : this.#usedAt
  }

  /** Whether messages wait until its client listens. */
  get holdsMessages(): boolean {
    return false
  }

  /** Whether another node has opened it, or this one before it removed it. */
  get isCopy(): boolean {
    return this.kind === undefined
  }

  evict(): void {
    this.owner.end(this, { _tag: "ClosedByUs" })
  }

  /** Ends it for `McpServer.interrupt`. */
  interrupt(): void {
    this.owner.interrupt(this)
  }

  /**
   * When the session expires if it is not used until then. A client that continues without `notifications/initialized`
   * counts as initialized; nothing unsolicited is sent to it.
   */
  expiresAt(now: number): number {
    const { bounds, idleTimeout } = this.owner.endpoint.options
    if (!this.#isInitialized) return this.#usedAt + bounds.initializeTimeout
    const timeout = this.isCopy && !this.holdsMessages ? Math.min(idleTimeout, bounds.idleCopyTimeout) : idleTimeout
    return (this.busy ? now : this.#usedAt) + timeout
  }

  /**
   * When to check whether it has expired. For a session that is not initialized yet this is `idleTimeout` at the latest:
   * once it is initialized, that time counts, and it may be shorter than the time to initialize. In a fleet the record is
   * marked as used at each check, and must not expire before.
   */
  nextCheckAt(now: number): number {
    const expiresAt = this.expiresAt(now)
    const { endpoint: { options: { idleTimeout } }, fleet } = this.owner
    if (fleet !== undefined) return Math.min(expiresAt, now + idleTimeout / 3)
    return this.#isInitialized ? expiresAt : Math.min(expiresAt, now + idleTimeout)
  }

  /** Marks it as one that another node has opened. */
  restored(): void {
    this.kind = undefined
    this.#isInitialized = true
  }

  /** Another node has received `notifications/initialized`. */
  initialized(): void {
    this.#isInitialized = true
    this.touch()
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
    const { subscribedBytes } = session
    if (subscribedBytes === this.#subscribedBytes) return
    this.owner.endpoint.load.charge(this, subscribedBytes - this.#subscribedBytes)
    this.#subscribedBytes = subscribedBytes
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
