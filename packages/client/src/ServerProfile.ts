/**
 * What a client found out about a server, in a form that can be kept: as JSON, in a file or a database.
 *
 * 2026-07-28, versioning: "Clients SHOULD cache the result for the lifetime of the server process (stdio) or origin (HTTP), and MAY
 * persist it across restarts of the same server configuration, re-probing if the cached assumption later fails." A client that is
 * given a `ServerProfile` sends no probe: a session is opened at once, in the way and the revision that it had; and a server of the
 * request era is not asked anything at all before the first call.
 *
 * Where the server is another one by now, everything is found out anew: by the handshake in the session era, by the first call in the
 * request era. A refusal to let this client in (401, 403), a server that is busy, and a network that fails are no such sign. What is
 * malformed is ignored, and the log says so.
 *
 * ```ts
 * const client = yield* Client.make(transport, { serverProfile: known === undefined ? undefined : JSON.parse(known) })
 * known = JSON.stringify(client.serverProfile)
 * ```
 */
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"

/** What was found out. See the module's text. */
export interface ServerProfile {
  /** The revision that was agreed on. */
  readonly revision: Revision.Revision
  /** How the transport reaches the server, where it had a choice: `streamable` or `sse` over HTTP. */
  readonly httpMode?: string | undefined
  /** Name and version of the server, as it gave them. */
  readonly info?: JsonObject | undefined
  /** What the server declared. */
  readonly capabilities: JsonObject
  /** How to use the server, for a language model. */
  readonly instructions?: string | undefined
}
