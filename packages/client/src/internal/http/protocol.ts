/**
 * A way of speaking to a server over HTTP: Streamable HTTP, or the pair of endpoints of 2024-11-05. A connection has one at a
 * time, and changes it at most once, while it finds out which one the server has.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type { End, Headers } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Resolved } from "./settings.ts"
import type { HttpRequest, HttpResponse } from "./httpClient.ts"

/**
 * Opens another lane, once a server has refused `initialize` in the way that one of 2024-11-05 does (2025-11-25, transports,
 * backwards compatibility), or where that is known already. Where it fails, the refusal of `initialize` stands. Whoever opens it
 * sends `initialize` through it next.
 */
export type OpenProtocol = (road: HttpChannel, settings: Resolved) => Effect.Effect<HttpProtocol, TransportError>

/** See the module's text. */
export interface HttpProtocol {
  /** Sends a message. Never blocks and never throws: what comes of it is told to the road. */
  readonly send: (message: JsonRpc.Outbound, headers: Headers | undefined) => void
  /** Says good-bye to the server. It is given a grace; what is still under way then is interrupted. */
  readonly close: Effect.Effect<void>
  /** Whether the server takes no more just now, and waits until it does: see `Connection`. A lane that never knows omits them. */
  readonly full?: boolean | undefined
  readonly drained?: Effect.Effect<void> | undefined
}

/** What a lane lies on: the connection, as a lane sees it. */
export interface HttpChannel {
  readonly url: URL
  /**
   * Exchanges with the headers and the credentials of the transport, and with its rule for redirects. `use` sees any other status.
   */
  readonly exchange: <A, E>(
    request: HttpRequest,
    use: (reply: HttpResponse) => Effect.Effect<A, E>
  ) => Effect.Effect<A, E | TransportError>
  /** Runs in the scope of the connection; what fails is a defect, and is logged. */
  readonly fork: (effect: Effect.Effect<void>) => Fiber.Fiber<void>
  /** Hands over what came. */
  readonly deliver: (message: JsonRpc.Inbound) => void
  /** A request of this side's will not be answered. */
  readonly refused: (id: JsonRpc.Id, error: TransportError) => void
  /** What the server says unasked may have been missed; with an error, no more of it will come. See `Receiver`. */
  readonly gap: (error?: TransportError) => void
  /** It is over. */
  readonly end: (end: End) => void
  /** Bytes in one message, or in one event of a stream. */
  readonly maxMessageBytes: number
  /** Milliseconds for the body of a refusal. */
  readonly refusalTimeout: number
}
