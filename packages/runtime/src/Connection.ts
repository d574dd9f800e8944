/**
 * A connection that carries JSON-RPC messages in both directions. Every transport provides one.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TransportError } from "./TransportError.ts"

/**
 * Why no further messages will arrive. `ClosedByUs`: this side closed the connection. `ClosedByPeer`: the peer has
 * stopped sending, and may still read. `Lost`: the transport broke.
 */
export type End =
  | { readonly _tag: "ClosedByUs" }
  | { readonly _tag: "ClosedByPeer" }
  | { readonly _tag: "Lost"; readonly cause: TransportError }

/**
 * The authenticated sender of a request, as the application around the transport has found it: by a token, a
 * certificate, a cookie.
 */
export interface Principal {
  /** Unique and unchanging. Sessions, and the responses to input requests, belong to it. */
  readonly id: string
  /**
   * When the credentials of the request expire, in seconds since 1970, as in the `exp` of a token. Streams that are open
   * then end: see `expiredStreams` of `Http.Options`.
   */
  readonly expiresAt?: number | undefined
  /** Any other claims: a name, scopes, a tenant. */
  readonly [claim: string]: unknown
}

/** The values that a transport supplies with a message. */
export interface Origin {
  /** The sender, if it is authenticated. */
  readonly principal?: Principal | undefined
  /**
   * The network address of the sender, if the transport has it. It distinguishes senders that are not authenticated,
   * where bounds are shared fairly.
   */
  readonly address?: string | undefined
  /** Reads a header of the HTTP request that carried the message, by its name in lower case. */
  readonly header?: ((name: string) => string | undefined) | undefined
  /**
   * The id of the request of this side on whose stream the message arrived. Only transports that send the messages about
   * each request on a stream of its own have it: HTTP, on the client.
   */
  readonly about?: JsonRpc.Id | undefined
  /** The length of the message in bytes, if it is long. It is counted in `Limits.maxInFlightBytes`. */
  readonly size?: number | undefined
  /**
   * The services of the fiber that received the message, if there was one. Handlers get them in addition to the
   * services of the connection.
   */
  readonly context?: Context.Context<never> | undefined
}

/**
 * Receives the messages of a connection. Calls come one after the other, never nested. A connection never stops reading:
 * cancellations, pings, responses and the end arrive however busy the receiver is, and the receiver refuses the messages
 * that it cannot take.
 *
 * - `message` receives a message, with the values that the transport supplies with it.
 * - `refused` reports that a request of this side will not be answered, while the connection continues. A receiver that
 *   sends no requests omits it.
 * - `gap` reports that notifications may have been missed, on a transport with a stream of its own for them. With an
 *   error, no further ones will arrive while the connection continues.
 * - `end` is called once, as the last call, even when this side closes the connection.
 */
export interface Receiver {
  readonly message: (message: JsonRpc.Inbound, origin?: Origin) => void
  readonly refused?: ((id: JsonRpc.Id, error: TransportError) => void) | undefined
  readonly gap?: ((error: TransportError | undefined) => void) | undefined
  readonly end: (end: End) => void
}

/** HTTP headers that repeat a part of a message, by their names. */
export interface Headers {
  readonly [name: string]: string
}

/** A connection in both directions. The scope that it was acquired in closes it. */
export interface Connection {
  /** Starts delivery; called once. Messages that arrived before are delivered first. */
  readonly open: (receiver: Receiver) => void
  /**
   * Sends a message, and never blocks. `about` is the id of the inbound request that the message belongs to, so that a
   * transport with several streams can choose one.
   *
   * Returns `false` while the peer is slow to read: the message was accepted all the same, and callers that can wait
   * should wait for `drained`. After `ClosedByPeer` it still sends if the peer can still read (a client that has closed
   * a server's stdin still reads its stdout), so that responses to requests in flight get out before `close`. After
   * `ClosedByUs` or `Lost` it does nothing and returns `true`. It throws only what `JsonRpc.encode` throws, and then
   * nothing was sent.
   */
  readonly send: (message: JsonRpc.Outbound, about?: JsonRpc.Id, headers?: Headers) => boolean
  /**
   * Called when the reply to a request is retained until the other replies of its batch are complete, with its length.
   * A connection that bounds what is retained for its peer has it.
   */
  readonly replyRetained?: ((about: JsonRpc.Id, chars: number) => void) | undefined
  /** Succeeds as soon as the transport takes more, or has ended. */
  readonly drained: Effect.Effect<void>
  /**
   * Whether so much output waits for the peer that further requests of the peer should be refused: it does not read
   * their responses. Undefined over HTTP, where each stream has a limit of its own.
   */
  readonly isOutputFull?: boolean | undefined
  /** Ends the connection after flushing, as far as that is possible. It never fails, and may be called again. */
  readonly close: Effect.Effect<void>
  /**
   * Whether the transport names the session: the `Mcp-Session-Id` of Streamable HTTP. Such a connection has one session,
   * and a second `initialize` is refused. On any other connection it opens a new session in place of the old one.
   */
  readonly hasSessionId?: boolean | undefined
  /**
   * Extensions that the transport itself supports, by their identifiers: those of its credentials. A client declares
   * them in its capabilities.
   */
  readonly extensions?: Readonly<Record<string, JsonRpc.JsonObject>> | undefined
  /**
   * Returns for whom the requests of the connection act, as its credentials identify it, without a secret. A client uses a
   * stored result of a negotiation only for the same one.
   */
  readonly authorizationContext?: Effect.Effect<string | undefined> | undefined
  /**
   * Whether the peer stops this side when it stops sending: the client of a stdio server ends it by closing its stdin
   * ("lifecycle", shutdown). The requests of such a peer are then stopped, and not cancelled by their sender: see
   * `RequestContext.stopped`.
   */
  readonly stopsWithPeer?: boolean | undefined
  /** Whether the `headers` given to `send` reach the peer: HTTP. Elsewhere they are ignored. */
  readonly sendsHeaders?: boolean | undefined
  /**
   * The variant of HTTP that the server speaks, as the client has detected it. It may be stored and given to
   * `connectWith` the next time. It is final when the handshake is over.
   */
  readonly httpMode?: string | undefined
  /**
   * Succeeds as soon as the transport takes more messages about a request. Only a connection that sends the messages
   * about each request on a stream of its own has this member and the next two: HTTP, on the server.
   */
  readonly drainedAbout?: ((about: JsonRpc.Id) => Effect.Effect<void>) | undefined
  /** No response to a request will follow: it was cancelled, or arrived after the end. */
  readonly discardRequest?: ((about: JsonRpc.Id) => void) | undefined
  /**
   * Ends the HTTP connection on which a request waits, but not the request: the client reconnects after `retry`
   * milliseconds.
   */
  readonly endStream?: ((about: JsonRpc.Id, retry: number | undefined) => void) | undefined
}

/** Opens connections. */
export interface Transport {
  /** Opens a connection that the scope closes. */
  readonly connect: Effect.Effect<Connection, TransportError, Scope.Scope>
  /** Opens a connection to a server of a known `httpMode`, without detecting it again. */
  readonly connectWith?: ((httpMode: string) => Effect.Effect<Connection, TransportError, Scope.Scope>) | undefined
  /**
   * Whether a client opens a new connection when this one is lost, unless its options say otherwise: over HTTP, where a
   * client "MUST start a new session" when the server has ended its session. Off by default.
   */
  readonly reconnects?: boolean | undefined
  /**
   * How long a client waits for the response to its first request before it assumes an older server, unless its options
   * say otherwise: a transport that starts its server waits longer. The client's default is 3 seconds.
   */
  readonly probeTimeout?: Duration.Input | undefined
}
