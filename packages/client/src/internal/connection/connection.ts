/**
 * One open connection to a server, and what was agreed on there. A client has one at a time.
 */
import type { Implementation } from "@skein/protocol/Implementation"
import type { LoggingLevel } from "@skein/protocol/Logging"
import type { JsonObject } from "@skein/protocol/JsonRpc"
import type * as Revision from "@skein/protocol/Revision"
import type { Connection } from "@skein/runtime/Connection"
import type { TransportError } from "@skein/runtime/TransportError"
import type { Peer } from "@skein/runtime/Peer"
import type { SessionEnd } from "@skein/runtime/Session"
import type { ServerProfile } from "../../ServerProfile.ts"
import type { Telemetry } from "../../Telemetry.ts"
import type { Agreement } from "./handshake.ts"
import { implementationOf } from "./serverInfo.ts"

/** Who hears of the end of a line. */
export interface ConnectionOwner {
  readonly connectionEnded: (connection: NegotiatedConnection, end: SessionEnd) => void
}

/** See the module's text. */
export interface NegotiatedConnection {
  readonly peer: Peer
  readonly connection: Connection
  readonly agreement: Agreement
  /** Tells one listener of the end of the line, when nothing of it runs any more; at once where that is over. */
  readonly onEnd: (owner: ConnectionOwner) => void
  readonly revision: Revision.Revision
  /** Whether it is of the request era. */
  readonly isRequestEra: boolean
  /** What the server declared, as it did. */
  readonly capabilities: JsonObject
  /** Adds what each request says about itself in the request era; nothing in the session era. */
  stamp: (params: JsonObject) => JsonObject
  /** Asks for log messages of that level from now on, in the request era; nothing in the session era. */
  readonly setLogLevel: (level: LoggingLevel) => void
  /** Set when nothing that the server says unasked is heard on this line any more, though the line goes on. */
  streamError?: TransportError | undefined
  /** What stands around each request. */
  readonly telemetry: Telemetry | undefined
  /**
   * True while what was agreed on is only believed: it comes from a detection that was kept, nothing was asked when the line was
   * opened, and no call has confirmed it yet.
   */
  isAssumed?: boolean | undefined
}

/** What was found out about the server, to be kept. */
export const serverProfileOf = (
  { agreement, connection: { httpMode: variant } }: NegotiatedConnection
): ServerProfile => ({
  ...agreement,
  httpMode: variant
})

/** Name and version of the server, as it gave them. */
export const serverOf = ({ agreement: { info }, revision }: NegotiatedConnection): Implementation | undefined =>
  info === undefined ? undefined : implementationOf(info, revision)
