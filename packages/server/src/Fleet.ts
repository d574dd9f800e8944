/**
 * A fleet: the processes that serve one server together, its *nodes*. A session lives in none of them: its state is a
 * record that they share, any node handles any of its requests, and only a message that a node waits for is sent to that
 * node.
 *
 * Provide a fleet to the layer of an endpoint (`NodeHttp.layer`, `WebHttp`), and an `EventBus` of the same nodes to the
 * server. Without a fleet an endpoint knows only the sessions that it has opened.
 *
 * A node passes some HTTP requests on to another one, with {@link NodeRequests}: a message of a session over
 * HTTP+SSE (2024-11-05), which is the stream that its client has opened; a GET that resumes the stream of a request in
 * progress; and each message of a session, with `sessions: "home"` of `Http.Options`.
 *
 * All nodes must have the same catalog. A definition that a handler adds or disables changes that of its node only. When
 * catalogs differ for longer than a minute, one node logs a warning with the names.
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
import type { Key } from "./RequestState.ts"

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

/** Where a node accepts the requests of other nodes. */
export interface NodeAddress {
  readonly host: string
  readonly port: number
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
  /** A digest of the catalog of a node. On request it has those of the single definitions, too, by kind and name. */
  | {
    readonly _tag: "Catalog"
    readonly from: number
    readonly digest: string
    readonly definitions?: { readonly [name: string]: string } | undefined
  }
  | { readonly _tag: "CatalogRequest"; readonly from: number }
  /** The address of a node. A node that receives it sends its own back, unless it is such an answer. */
  | { readonly _tag: "Address"; readonly node: number; readonly address: NodeAddress; readonly isAnswer: boolean }

/** Receives messages. The functions return immediately, and must not throw. */
export interface Receiver {
  /**
   * Receives a message. The nodes that have had a session receive its changes and its end in one order, that of their
   * records, and each node receives an earlier change of the event bus before them.
   */
  readonly message: (message: Message) => void
  /** Messages were lost: what this node knows of the sessions may be old. */
  readonly gap: () => void
  /**
   * Succeeds when the other nodes can read the events that this one has sent. A node awaits it before it confirms that
   * another one has the GET stream.
   */
  readonly flush?: Effect.Effect<void> | undefined
}

/** The fleet cannot read or write its records now. The endpoint answers 503 with `Retry-After`. */
export class FleetError extends PrintableError.tagged("FleetError")<{ readonly cause?: unknown }> {}

/**
 * The requests between the nodes: the option `nodeRequests` of `NodeHttp`. Each node listens for them at a TCP port of its
 * own, which clients need not reach, and sends the address to the others through the fleet. It accepts connections of nodes
 * only, which have a key (`keys`), a certificate (`tlsFolder`), or both: at least one is required, and all nodes must agree.
 * A node opens one connection to each other node, for all requests. The principal of the client travels with a request. The
 * protocol is not HTTP: declare the port as TCP to a service mesh.
 *
 * With `keys` alone, each connection is encrypted, but not with forward secrecy: with a key, recorded connections can be
 * read. With certificates they cannot.
 *
 * @example
 * NodeHttp.layer({ nodeRequests: { tlsFolder: "/etc/skein/tls", tlsName: "shop.internal", host: "0.0.0.0", port: 8081 } })
 */
export interface NodeRequests {
  /**
   * The secrets of the fleet, of at least 32 bytes. Both nodes of a new connection prove that they have one, and encrypt it
   * with keys of its own (AES-256-GCM). A node connects with its first key, and accepts all of them. To rotate, add the new
   * key in second place at every node, then move it to the first place, and then remove the old one.
   */
  readonly keys?: ReadonlyArray<Key> | undefined
  /**
   * The folder with the certificate of this node (`tls.crt`), its key (`tls.key`) and the authorities of the certificates of
   * all nodes (`ca.crt`), as PEM, as cert-manager writes them. Nodes then connect with TLS 1.3, and each checks the certificate
   * of the other. One that lists extended key usages needs those of servers and of clients. The files are read again each
   * minute. If they cannot be used then, the old ones remain, with a warning. An open connection is not checked again.
   */
  readonly tlsFolder?: string | undefined
  /**
   * The DNS name that the certificates of all nodes have. By default any certificate of `ca.crt` is that of a node: leave it
   * out only if these authorities issue certificates to the nodes of this fleet only.
   */
  readonly tlsName?: string | undefined
  /** Where this node listens for other nodes: `127.0.0.1` by default, for nodes of one machine. */
  readonly host?: string | undefined
  /** The port: any free one by default. */
  readonly port?: number | undefined
  /** The name or address of this node for the others, for a `host` of `0.0.0.0`: by default `host`. */
  readonly advertisedHost?: string | undefined
}

/** The nodes of a server, as one of them sees them. */
export interface Service {
  /** The number of this node, from 1 to {@link maxNode}. No other node has it, and no later one. */
  readonly node: number
  /** Makes the id of a session. It must be unguessable: use `RandomId.make`. */
  readonly newId: () => string
  /** Whether the fleet may have made the id. Others are not looked up, so it should be decided without a query. */
  readonly isKnown: (id: string) => boolean
  /** Whether a node is running, as far as this one knows: one that joined a moment ago may be unknown. */
  readonly isServing: (node: number) => boolean
  /** Whether a node has gone, by the records of the fleet if this node does not know it. Called before its calls fail. */
  readonly hasGone: (node: number) => Effect.Effect<boolean, FleetError>
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
  /**
   * Changes a session. Succeeds when it is stored, this node has received it, and the other running nodes that have had the
   * session have confirmed that they have received it, too; or `false`, if some of them have not done so within a time
   * (1 second). This node need not receive `isInitialized` alone, which it knows.
   */
  readonly change: (id: string, change: SessionChange) => Effect.Effect<boolean, FleetError>
  /** Ends a session. Succeeds when the record is gone, and after the same wait for the other nodes. */
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
