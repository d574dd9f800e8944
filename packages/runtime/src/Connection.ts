/**
 * A duplex of JSON-RPC messages: the one thing that every transport yields.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { TransportError } from "./TransportError.ts"

/**
 * Why nothing more is received. `Closed`: this side closed the connection. `Ended`: the other side has said all that it had to
 * say, and may still listen. `Lost`: the transport broke.
 */
export type End =
  | { readonly _tag: "Closed" }
  | { readonly _tag: "Ended" }
  | { readonly _tag: "Lost"; readonly cause: TransportError }

/** Who makes a request, as the host of the transport has found out: by a token, a certificate, a cookie. */
export interface Principal {
  /** Unique and unchanging. Sessions, and the answers to questions, belong to it. */
  readonly id: string
  /** Whatever else the host knows of it: its name, scopes, tenant. */
  readonly [claim: string]: unknown
}

/** What a transport knows of a message beside its content. */
export interface Origin {
  /** Who sent it, where the host has found it out. */
  readonly principal?: Principal | undefined
  /** Reads a header of the HTTP request that brought it, by its name in lower case. */
  readonly header?: ((name: string) => string | undefined) | undefined
  /** The services of the fiber that brought it, where it came by one: handlers find them beside those of the connection. */
  readonly context?: Context.Context<never> | undefined
}

/**
 * What takes the messages in. Calls come one after the other, never nested; `end` comes once, last, and also when this side
 * closes the connection. `refused` says that one request of this side's will not be answered, while the connection goes on; a
 * receiver that sends no requests omits it. `missed` says that what the other side says of itself may have been missed, where it
 * has a stream of its own for that; with an error, that nothing more of it will come while the connection goes on.
 */
export interface Receiver {
  readonly message: (message: JsonRpc.Inbound, origin?: Origin) => void
  readonly refused?: ((id: JsonRpc.Id, error: TransportError) => void) | undefined
  readonly gap?: ((error: TransportError | undefined) => void) | undefined
  readonly end: (end: End) => void
}

/** HTTP headers that mirror a part of a message, by their names. */
export interface Headers {
  readonly [name: string]: string
}

/**
 * A duplex of messages with an owner scope: the scope that it was acquired in closes it.
 *
 * - `open` starts delivery; it is called once. What arrived before is kept for the receiver.
 * - `send` takes a message and, where there is one, the id of the request that it is *about*, so that a transport with
 *   several streams can choose one. It never blocks. It answers `false` when the other side is slow to read: the message is
 *   taken all the same, and who can wait should wait for `drained`. After `Ended` it still sends where the other side can
 *   still listen (a client that has closed a server's stdin still reads its stdout), so that the answers to what is in flight
 *   get out before `close`. After `Closed` or `Lost` it does nothing and answers `true`. It throws only what
 *   `JsonRpc.encode` throws, and then nothing was sent.
 * - `mirrors` says that `headers` given to `send` reach the other side beside the message: HTTP. Elsewhere they are ignored.
 * - `variant` is what the transport found out about how the other side wants to be spoken to, where there is a choice: a name
 *   that can be kept, and given to `connectWith` the next time. It is settled when the handshake is over.
 * - `drained` succeeds as soon as the transport takes more, or is over; `drainedAbout` as soon as it takes more about a request. A
 *   transport with one stream omits that.
 * - `dropped` hears that nothing more will be said about a request: it was cancelled, or came after the end, and is not answered. A
 *   transport with one stream omits it.
 * - `detach` ends the HTTP connection on which a request waits for its answer, but not the request: the client comes back for the
 *   rest, after `retry` milliseconds. A transport that has no such thing omits it.
 * - `pause` and `resume` stop and start reading; a transport that cannot stop reading omits them. They do not nest.
 * - `close` ends the connection after what was sent has been flushed, as far as that is possible; it never fails, and may
 *   be called again.
 */
export interface Connection {
  readonly open: (receiver: Receiver) => void
  readonly send: (message: JsonRpc.Outbound, about?: JsonRpc.Id, headers?: Headers) => boolean
  readonly sendsHeaders?: boolean | undefined
  readonly httpMode?: string | undefined
  readonly drained: Effect.Effect<void>
  readonly drainedAbout?: ((about: JsonRpc.Id) => Effect.Effect<void>) | undefined
  readonly discardRequest?: ((about: JsonRpc.Id) => void) | undefined
  readonly endStream?: ((about: JsonRpc.Id, retry: number | undefined) => void) | undefined
  readonly pause?: (() => void) | undefined
  readonly resume?: (() => void) | undefined
  readonly close: Effect.Effect<void>
}

/** How to get a connection. */
export interface Transport {
  /** Opens a connection that the scope closes. */
  readonly connect: Effect.Effect<Connection, TransportError, Scope.Scope>
  /** Opens a connection to what was found out to be of that `variant` before, without finding it out again. */
  readonly connectWith?: ((variant: string) => Effect.Effect<Connection, TransportError, Scope.Scope>) | undefined
  /**
   * Whether a client opens a connection that was lost anew by itself unless it is told otherwise: over HTTP, where a client "MUST
   * start a new session" when its own is gone. Off by default.
   */
  readonly reconnects?: boolean | undefined
}
