/**
 * The result of the negotiation on a connection, and the reasons for the end of a session.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { End } from "./Connection.ts"

/**
 * Why a session has ended: `ClosedByUs`, `ClosedByPeer`, `Lost` with its transport, `Refused` because the two sides could
 * not agree, or `Expired` because it was idle for too long.
 */
export type SessionEnd =
  | End
  | { readonly _tag: "Refused"; readonly message: string }
  | { readonly _tag: "Expired" }

/**
 * The result of the `initialize` handshake, seen from one side. Stateless revisions have no session: each request
 * carries the same data.
 */
export interface Session {
  /** The negotiated revision. */
  readonly revision: Revision.Revision
  /** Name and version of the peer, as the peer sent them. Not to be trusted. */
  readonly info: JsonRpc.JsonObject | undefined
  /** The capabilities that the peer declared. */
  readonly capabilities: JsonRpc.JsonObject
  /** The URIs of the resources that the peer has subscribed to. */
  readonly subscriptions?: ReadonlySet<string> | undefined
}
