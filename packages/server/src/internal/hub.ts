/**
 * Who hears of what changes: the sessions of a server, and the subscriptions to it.
 */
import type { Notification } from "@skein/protocol/JsonRpc"
import type { Peer } from "@skein/runtime/Peer"
import type * as Effect from "effect/Effect"
import { ServerSession } from "./session.ts"

export class Hub {
  /** The connections of the server that are open. */
  readonly peers = new Set<Peer>()

  /** What clients say unasked. */
  onNotification(peer: Peer, { method }: Notification): Effect.Effect<void> | void {
    if (method === "notifications/initialized" && peer.session instanceof ServerSession) peer.session.initialized = true
  }
}
