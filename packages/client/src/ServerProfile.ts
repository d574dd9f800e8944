/**
 * The result of a negotiation with a server, to be stored as JSON in a file or a database.
 *
 * 2026-07-28, versioning: "Clients SHOULD cache the result for the lifetime of the server process (stdio) or origin
 * (HTTP), and MAY persist it across restarts of the same server configuration, re-probing if the cached assumption
 * later fails." A client with a `ServerProfile` sends no probe. In a session-based revision it opens a session at once,
 * with the same transport mode and revision as before. In the stateless revision it sends nothing at all before the
 * first call.
 *
 * If the server has changed since, the client negotiates again. It finds that out in the handshake of a session-based
 * revision, or at the first call in the stateless revision. A server that denies access (401, 403), a busy server and a
 * network failure do not count as a change. Malformed members are ignored, which is logged.
 *
 * A server with a session-based revision keeps opening sessions after it has learned the stateless one. Therefore its
 * profile expires 24 hours after the probe that led to it, also within a client: the next connection probes again.
 *
 * A profile belongs to one URL and to one authorization context, because a gateway may choose the server by the caller.
 * Store it by both. Clients never share one. Credentials that name their context (`OAuth` of `@skein/auth` does) are
 * checked: after a sign-in as another person the next connection probes again, within a client too.
 *
 * ```ts
 * const client = yield* Client.make(transport, { serverProfile: known === undefined ? undefined : JSON.parse(known) })
 * known = JSON.stringify(client.serverProfile)
 * ```
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"

/** The result of a negotiation with a server. It is a JSON value. */
export interface ServerProfile {
  /** The negotiated revision. */
  readonly revision: Revision.Revision
  /** The mode of the transport, if it has several: `streamable` or `sse` over HTTP. */
  readonly httpMode?: string | undefined
  /** Name and version of the server, as it sent them. */
  readonly info?: JsonObject | undefined
  /** The capabilities that the server declared. */
  readonly capabilities: JsonObject
  /** Instructions of the server for a language model. */
  readonly instructions?: string | undefined
  /**
   * When the negotiation led to a session-based revision, in milliseconds since 1970. Sessions that are opened with the
   * profile do not change it. A profile of a session-based revision without it, or with a time in the future, counts from
   * its first use.
   */
  readonly negotiatedAt?: number | undefined
  /** `Credentials.authorizationContext` of the negotiation. The profile is ignored where the present one differs. */
  readonly authorizationContext?: string | undefined
}
