/**
 * The part of a fleet that differs between databases. `makeNode` makes a node of it.
 */
import type { FleetError, SessionBounds, SessionChange, SessionRecord } from "@skein/server/Fleet"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { createHash } from "node:crypto"

/** The digest of an id in a database: the id may be secret, or have characters that the database cannot store. */
export const digestOf = (id: string): string => createHash("sha256").update(id).digest("base64url")

/** The principal of a session in a database: empty for an anonymous caller. */
export const principalOf = (id: string | undefined): string => id === undefined ? "" : digestOf(id)

/** A message for one node, or for all nodes, the sender included. */
export interface Outgoing {
  readonly to: number | undefined
  readonly text: string
}

/** The nodes of a fleet. */
export interface Members {
  /** The nodes whose leases are valid, this one included. */
  readonly nodes: ReadonlyArray<number>
  /** Whether the lease of this node had ended: the others took it for gone. */
  readonly wasLost: boolean
}

/** A database, for one node of a fleet. Texts arrive at each node in the order in which they were stored or sent. */
export interface Backend {
  /** The number of this node: its lease is valid, and no other node ever has the number. */
  readonly node: number
  /** The key of the ids of sessions, which all nodes have. */
  readonly key: string
  readonly create: (
    record: SessionRecord,
    bounds: SessionBounds,
    client: string
  ) => Effect.Effect<boolean, FleetError>
  /**
   * Finds a session of a principal, and adds this node to those that have it. Nothing shows whether another principal has
   * such a session.
   */
  readonly find: (id: string, principalId: string | undefined) => Effect.Effect<SessionRecord | undefined, FleetError>
  /**
   * Changes a record and sends the text to the running nodes that have had the session, in one step: they receive the
   * changes of a session in the order of its records. This node receives it only if `isEchoed`, and then in any case. The
   * others must confirm it, and are returned.
   */
  readonly change: (
    id: string,
    change: SessionChange,
    text: string,
    isEchoed: boolean
  ) => Effect.Effect<ReadonlyArray<number>, FleetError>
  /** Deletes a record and sends the text, as `change` does, to this node too. */
  readonly end: (id: string, text: string) => Effect.Effect<ReadonlyArray<number>, FleetError>
  /** Sessions were used. */
  readonly touch: (ids: ReadonlyArray<string>) => Effect.Effect<void, FleetError>
  /** Sends messages, in this order. */
  readonly send: (messages: ReadonlyArray<Outgoing>) => Effect.Effect<void, FleetError>
  /**
   * Calls `onText` with each text for this node until the scope closes, and `onGap` when texts may have been lost and new
   * ones arrive again. It returns when texts arrive.
   */
  readonly receive: (
    onText: (text: string) => void,
    onGap: () => void
  ) => Effect.Effect<void, FleetError, Scope.Scope>
  /** Renews the lease of this node. A lease that has ended begins again with the same number. */
  readonly renew: Effect.Effect<Members, FleetError>
  /** Ends the lease of this node. */
  readonly leave: Effect.Effect<void, FleetError>
  /**
   * Deletes what has expired. With more than `maxSessions` sessions, it also deletes the ones used least recently of the
   * clients that have the most, and returns their ids.
   */
  readonly clean: (maxSessions: number | undefined) => Effect.Effect<ReadonlyArray<string>, FleetError>
}
