/**
 * The connection status of a client.
 *
 * HTTP has no connection between two requests, unless a server of a session-based revision has a standalone stream.
 * Without that stream, `Connected` reflects the last request: the client does not notice that the server is gone until
 * the next call or `heartbeat`.
 */
import type { Implementation } from "@skein/protocol/Implementation"
import type * as Revision from "@skein/protocol/Revision"
import type { SessionEnd } from "@skein/runtime/Session"
import type { ClientError } from "./ClientError.ts"

/** The connection status of a client. */
export type Status =
  | {
    /** The connection is open. After a reconnect, the server and its revision may have changed. */
    readonly _tag: "Connected"
    readonly revision: Revision.Revision
    /** Name and version of the server, as it sent them. Do not trust them. */
    readonly info: Implementation | undefined
  }
  | {
    /** The connection is lost, and the client reopens it. */
    readonly _tag: "Reconnecting"
    /** The number of the attempt in a row, from 1. */
    readonly attempt: number
    /** The delay before the attempt, in milliseconds. */
    readonly delay: number
    /** How the connection ended, or why the previous attempt failed. */
    readonly cause: SessionEnd | ClientError
  }
  | {
    /** The client has ended: it was closed, it lost its connection without a policy to reopen it, or it gave up. */
    readonly _tag: "Ended"
    readonly end: SessionEnd
  }
