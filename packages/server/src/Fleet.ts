/**
 * A fleet: the processes that serve one server together, its *nodes*. A session lives in none of them: its state is a
 * record that they share, any node handles any of its requests, and only a message that a node waits for is sent to that
 * node.
 *
 * Provide a fleet to the layer of an endpoint (`NodeHttp.layer`, `WebHttp`), and an `EventBus` of the same nodes to the
 * server. Without a fleet an endpoint knows only the sessions that it has opened. The sessions of HTTP+SSE (2024-11-05)
 * are not shared: each is the stream that its client has opened.
 *
 * @example
 * const listening = NodeHttp.layer({ port: 8080 }).pipe(Layer.provide(server), Layer.provide(fleet))
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import * as PrintableError from "@skein/protocol/PrintableError"
import type { Revision } from "@skein/protocol/Revision"
import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { SessionChange } from "./internal/base/session.ts"

export type { SessionChange } from "./internal/base/session.ts"

/** The part of a session that the nodes share, as plain JSON. */
export interface SessionRecord {
  readonly id: string
  /** The id of the principal that opened it; undefined for an anonymous caller. Others cannot use it. */
  readonly principalId: string | undefined
  readonly revision: Revision
  /** Name and version of the client, as the client sent them. */
  readonly info: JsonObject | undefined
  /** The capabilities of the client. */
  readonly capabilities: JsonObject
  /** Whether the client has sent `notifications/initialized`. */
  readonly isInitialized: boolean
  /** The least severe level of the log messages that the client wants; undefined before its `logging/setLevel`. */
  readonly logLevel: string | undefined
  /** The URIs of the resources that the client has subscribed to. */
  readonly subscriptions: ReadonlyArray<string>
  /** The node that sends the messages that belong to no request: the one with the latest GET stream, or the opener. */
  readonly listensAt: number
}

/** The bounds of the sessions of a fleet, which are options of the endpoint. */
export interface SessionBounds {
  /** How many sessions there may be at one node. */
  readonly maxSessions: number
  /** How many sessions one principal may have at all nodes together. */
  readonly maxSessionsPerPrincipal: number
  /** How long a record remains after its last use, in milliseconds. */
  readonly idleTimeout: number
}

/** A message between nodes, as plain JSON. */
export type Message =
  /** A session has ended, or its client has changed it. The node that has done it receives it, too. */
  | { readonly _tag: "Ended"; readonly id: string }
  | { readonly _tag: "Changed"; readonly id: string; readonly change: SessionChange }
  /** A message of the client that another node received, as JSON-RPC. */
  | { readonly _tag: "Received"; readonly id: string; readonly text: string }
  /** A message to the client, for the node with its GET stream. A node without the session returns it to the sender. */
  | {
    readonly _tag: "Outgoing"
    readonly id: string
    readonly text: string
    readonly from: number
    readonly isReturned?: boolean | undefined
  }
  /** The node that had the GET stream before did not have the session: its client was not notified for a while. */
  | { readonly _tag: "Missed"; readonly id: string }

/** Receives messages. The functions return immediately, and must not throw. */
export interface Receiver {
  /**
   * Receives a message. All nodes receive the changes and the end of one session in one order, that of their records,
   * and each node receives an earlier change of the event bus before them.
   */
  readonly message: (message: Message) => void
  /** Messages were lost: what this node knows of the sessions may be old. */
  readonly gap: () => void
}

/** The fleet cannot read or write its records now. The endpoint answers 503 with `Retry-After`. */
export class FleetError extends PrintableError.tagged("FleetError")<{ readonly cause?: unknown }> {}

/** The nodes of a server, as one of them sees them. */
export interface Service {
  /** The number of this node, from 1 to {@link maxNode}. No other node has it, and no later one. */
  readonly node: number
  /** Makes the id of a session. It must be unguessable: use `RandomId.make`. */
  readonly newId: () => string
  /** Whether the fleet may have made the id. Others are not looked up, so it should be decided without a query. */
  readonly isKnown: (id: string) => boolean
  /** Whether a node is running, as far as this one knows. */
  readonly isServing: (node: number) => boolean
  /**
   * Stores a session. Returns `false` if its principal has as many as allowed. `client` is the principal or the network of
   * the client, between which a store can share its room fairly.
   */
  readonly create: (
    record: SessionRecord,
    bounds: SessionBounds,
    client: string
  ) => Effect.Effect<boolean, FleetError>
  /**
   * Finds a session of a principal. It must not find the session of another one, nor take longer if there is such a
   * session.
   */
  readonly find: (id: string, principalId: string | undefined) => Effect.Effect<SessionRecord | undefined, FleetError>
  /** Changes a session. Succeeds when it is stored and all running nodes have received it, this one included. */
  readonly change: (id: string, change: SessionChange) => Effect.Effect<void, FleetError>
  /** Ends a session. Succeeds when the record is gone and all running nodes have received it, this one included. */
  readonly end: (id: string) => Effect.Effect<void, FleetError>
  /**
   * The session is in use. Called for each message of a client, and while it listens: it must be cheap, and may be late
   * by seconds.
   */
  readonly touch: (id: string) => void
  /** Sends a message to all other nodes, or to one. A message to a node that has gone is lost. */
  readonly broadcast: (message: Message) => void
  readonly send: (node: number, message: Message) => void
  /** Receives messages until the scope closes. */
  readonly receive: (receiver: Receiver) => Effect.Effect<void, never, Scope.Scope>
}

/** The fleet of an endpoint. Without it an endpoint is alone. */
export class Fleet extends Context.Service<Fleet, Service>()("@skein/server/Fleet") {}

/**
 * How many requests a node may send to one client before their ids begin again. The ids of the requests of node n are
 * n × 1,000,000 to n × 1,000,000 + 999,999, so that every node knows where an answer belongs.
 */
export const requestsPerNode = 1_000_000

/**
 * How many streams a node may open before their numbers begin again: 2³³. The numbers of the streams of node n begin at
 * n × 2³³.
 */
export const streamsPerNode = 2 ** 33

/** The largest number of a node: 2²⁰ − 1, so that the numbers of its streams are safe integers. */
export const maxNode = 2 ** 20 - 1
