/**
 * The protocol of an HTTP connection: Streamable HTTP, or HTTP+SSE of 2024-11-05. A connection has one protocol at a
 * time, and changes it at most once, during the detection of the server.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { End, Headers } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { CallClock } from "../base/callClock.ts"
import type { Exchanger } from "./exchange.ts"
import type { Resolved } from "./settings.ts"

/** Sends the messages of a connection. */
export interface HttpProtocol {
  /** Sends a message. It never blocks and never throws: results and errors go to the channel. */
  readonly send: (message: JsonRpc.Outbound, headers: Headers | undefined) => void
  /** Ends the session on the server. The connection interrupts it after `shutdownTimeout`. */
  readonly close: Effect.Effect<void>
  /** Backpressure, as in `Connection`. */
  readonly queue: { readonly full: boolean; readonly drained: Effect.Effect<void> }
}

/** The connection as its protocol uses it. */
export interface HttpChannel {
  readonly settings: Resolved
  /** The clock of timeouts that must not pass while credentials are being obtained. */
  readonly callClock: CallClock
  /** Makes requests with the headers and the credentials of the transport, and follows redirects. */
  readonly exchanger: Pick<Exchanger, "exchange">
  /** Runs an effect in the scope of the connection. A defect is logged. */
  readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Passes a received message to the peer. `about` is the request on whose stream it arrived. */
  readonly deliver: (message: JsonRpc.Inbound, about?: JsonRpc.Id) => void
  /** Reports that a request will have no response. */
  readonly refused: (id: JsonRpc.Id, error: TransportError) => void
  /** Reports that notifications may have been missed. With an error, no further ones will arrive. See `Receiver`. */
  readonly gap: (error?: TransportError) => void
  /** Ends the connection. */
  readonly end: (end: End) => void
}
