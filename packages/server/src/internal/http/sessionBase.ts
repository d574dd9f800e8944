/**
 * What all sessions have in common that an endpoint holds, whichever transport they came by.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import type { Connection, Receiver } from "@skein/runtime/Connection"
import type { Peer } from "@skein/runtime/Peer"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import { ServerSession } from "../dispatch/session.ts"
import type { HttpAnswer, HttpRequest } from "./adapter.ts"
import type { Store } from "./eventStore.ts"
import type { Gauge } from "./gauge.ts"
import type { KeepAlive } from "./keepAlive.ts"
import type { Resolved } from "./options.ts"
import type { Refused } from "./refusal.ts"

/** What a session needs of its endpoint. */
export interface Keeper {
  readonly options: Resolved
  readonly log: Store
  readonly keepAlive: KeepAlive
  readonly gauge: Gauge
  /** Whether there is no room for one more stream that lasts as long as its client wants. */
  readonly crowded: boolean
  /** Whether the endpoint is told to end. */
  readonly closing: boolean
  /** Milliseconds of the monotonic clock. */
  readonly now: () => number
  readonly fork: (effect: Effect.Effect<unknown>) => void
  readonly refuse: (answer: HttpAnswer, refused: Refused, id?: JsonRpc.Id) => void
  /** A stream is sent on a connection now, or on none any more; `listening` where it lasts as long as its client wants. */
  readonly opened: (listening: boolean) => void
  readonly closed: (listening: boolean) => void
  /** Nothing more will be said on a stream that has a log. */
  readonly completed: (session: Held, stream: number) => void
  /** A session shall end, and is not found any more. */
  readonly end: (session: Held, reason: SessionEnd) => void
  /** All of it is over. */
  readonly gone: (session: Held) => void
}

export abstract class Held implements Connection {
  readonly id: string
  /** Nobody else gets at the session. */
  readonly owner: string | undefined
  peer!: Peer
  protected readonly keeper: Keeper
  protected receiver!: Receiver
  /** The session is told to end. */
  protected ending = false
  /** When something was in flight last. */
  #used: number
  #settled = false

  constructor(keeper: Keeper, id: string, owner: string | undefined) {
    this.keeper = keeper
    this.id = id
    this.owner = owner
    this.#used = keeper.now()
  }

  /** Whether something is in flight, or a client listens. */
  abstract readonly busy: boolean
  /** Ends all streams. Nothing is said any more. */
  protected abstract shut(): void
  abstract send(message: JsonRpc.Outbound, about?: JsonRpc.Id): boolean
  abstract readonly drained: Effect.Effect<void>

  /** What was negotiated, once it was. */
  get revision(): Revision | undefined {
    return this.peer.session?.revision
  }

  /**
   * When it will have expired, if nothing happens. A client that goes on without `notifications/initialized` has initialized all
   * the same; nothing is said to it unasked.
   */
  expires(now: number): number {
    const { idleTimeout, initializeTimeout } = this.keeper.options.sessions
    if (!this.#settled) return this.#used + initializeTimeout
    return (this.busy ? now : this.#used) + idleTimeout
  }

  /** When to look whether it has. One that initializes meanwhile may expire sooner than one that never does. */
  due(now: number): number {
    const expires = this.expires(now)
    return this.#settled ? expires : Math.min(expires, now + this.keeper.options.sessions.idleTimeout)
  }

  open(receiver: Receiver): void {
    this.receiver = receiver
  }

  /** Hands a message to the peer. Its claims are the newest that are known of who sent it. */
  protected deliver(message: JsonRpc.Inbound, request: HttpRequest): void {
    const { session } = this.peer
    if (session instanceof ServerSession) {
      session.principal = request.principal
      this.#settled = true
    }
    this.receiver.message(message, request)
  }

  /** Something was done. The time for initializing is not prolonged by it, however often the client listens meanwhile. */
  protected used(): void {
    if (this.#settled) this.#used = this.keeper.now()
  }

  /** Ends as soon as nothing is in flight. */
  abstract drain(): void

  /** `stopping`: because the endpoint does. */
  end(reason: SessionEnd, stopping?: boolean): void {
    this.ending = true
    this.peer.close(reason, stopping)
  }

  get close(): Effect.Effect<void> {
    return Effect.sync(() => {
      this.ending = true
      this.shut()
      this.keeper.gone(this)
    })
  }
}
