/**
 * What was negotiated on a connection, and how a session ends.
 */
import type * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { End } from "./Connection.ts"

/**
 * Why a session is over: `Closed` by this side, `Ended` by the other side, `Lost` with its transport, `Refused` because the
 * two sides could not agree, or `Expired` because it stayed idle for too long.
 */
export type SessionEnd =
  | End
  | { readonly _tag: "Refused"; readonly message: string }
  | { readonly _tag: "Expired" }

/**
 * What the two sides agreed on in the `initialize` handshake, seen from one of them. In the request era there is no session:
 * each request says the same about itself.
 */
export interface Session {
  /** The negotiated revision. */
  readonly revision: Revision.Revision
  /** Name and version of the other side, as it gave them. Not to be trusted. */
  readonly info: JsonRpc.JsonObject | undefined
  /** What the other side can do. */
  readonly capabilities: JsonRpc.JsonObject
  /** The resources that the other side has subscribed to, by their URIs. */
  readonly subscriptions?: ReadonlySet<string> | undefined
}
