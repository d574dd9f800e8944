import type { JsonObject } from "@skein/protocol/JsonRpc"
import type { Revision } from "@skein/protocol/Revision"
import type { Principal } from "@skein/runtime/Connection"
import type { Caller } from "@skein/runtime/Exchange"
import type { Peer } from "@skein/runtime/Peer"
import type { Session } from "@skein/runtime/Session"
import type * as Effect from "effect/Effect"
import type { ListKind } from "../ChangeBus.ts"
import type { Notice, Target } from "./outbox.ts"

/** What a server knows of a session: it is the caller of every request in it. */
export class ServerSession implements Session, Caller, Target {
  readonly peer: Peer
  readonly revision: Revision
  readonly info: JsonObject | undefined
  readonly capabilities: JsonObject
  /** Who opened it; as the latest request told, where its claims change. */
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

  /** Sends a notice unasked now, and waits while the client is slow to read. */
  say({ method, params }: Notice): Effect.Effect<void> {
    return this.peer.notify(method, params)
  }

  /** What a handler shows of its caller says nothing of the connection. */
  toJSON(): object {
    const { capabilities, info, logLevel, principal, revision } = this
    return { revision, info, capabilities, logLevel, principal }
  }
}
