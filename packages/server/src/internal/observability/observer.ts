/**
 * Who hears of what a server does besides its requests. There is none unless `Telemetry.layer` is among its definitions: a
 * transport asks `core.observer?.…`, and that is all that it costs.
 */
import type { Peer } from "@skein/runtime/Peer"

export interface Observer {
  /** A connection is over: a session, where it had shaken hands. Called by the `ServerCore`, for every transport. */
  readonly sessionClosed: (peer: Peer) => void
  /** A stream of server-sent events has begun. Each call is followed by one of `streamClosed`. */
  readonly streamOpened: () => void
  readonly streamClosed: () => void
  /** An HTTP request was refused with this status before it became a request of the protocol. */
  readonly refused: (status: number) => void
}
