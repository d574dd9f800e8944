/**
 * How a client stands with its server.
 *
 * **Gotchas.** Over HTTP there is no connection between two requests, unless the server has a stream of its own in the session era.
 * Without one `Connected` says how the last request went: that the server is gone nobody notices while nobody calls, but for a
 * `heartbeat`.
 */
import type { Implementation } from "@skein/protocol/Implementation"
import type * as Revision from "@skein/protocol/Revision"
import type { SessionEnd } from "@skein/runtime/Session"
import type { ClientError } from "./ClientError.ts"

/** See the module's text. */
export type Status =
  | {
    /** The connection is open. After a reconnect the server may be another one, and speak another revision. */
    readonly _tag: "Connected"
    readonly revision: Revision.Revision
    /** Name and version of the server, as it gave them. Not to be trusted. */
    readonly info: Implementation | undefined
  }
  | {
    /** The connection is lost, and is opened anew. */
    readonly _tag: "Reconnecting"
    /** Which attempt in a row this is, from 1. */
    readonly attempt: number
    /** How long is waited before it, in milliseconds. */
    readonly delay: number
    /** How the connection ended, or why the attempt before failed. */
    readonly cause: SessionEnd | ClientError
  }
  | {
    /** It is over: closed, lost without a policy to open it anew, or given up. */
    readonly _tag: "Ended"
    readonly end: SessionEnd
  }
