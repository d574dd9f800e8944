/** A connection to a server after its handshake. A client has one at a time. */
import type { ClientCapabilities } from "@skein/protocol/Capabilities"
import type { Implementation } from "@skein/protocol/Implementation"
import type { LoggingLevel } from "@skein/protocol/Logging"
import { isObject, type JsonObject } from "@skein/protocol/JsonRpc"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import * as Revision from "@skein/protocol/Revision"
import { printable } from "@skein/protocol/Text"
import type { TransportError } from "@skein/runtime/TransportError"
import type { Peer } from "@skein/runtime/Peer"
import type { SessionEnd } from "@skein/runtime/Session"
import * as Effect from "effect/Effect"
import * as LogLevel from "effect/LogLevel"
import * as References from "effect/References"
import type { ServerProfile } from "../../ServerProfile.ts"
import type { Telemetry } from "../../Telemetry.ts"
import { implementationOf } from "../base/serverInfo.ts"

/** The result of the handshake. */
export interface Agreement extends Omit<ServerProfile, "authorizationContext" | "httpMode"> {
  /**
   * Present if the server had not answered the probe when the session was opened. `verdict` is the agreement for the next
   * connection, once the server has answered.
   */
  readonly silence?: { verdict: Agreement | undefined } | undefined
}

/** The owner of a connection, which is notified of its end. */
export interface ConnectionOwner {
  readonly connectionEnded: (connection: NegotiatedConnection, end: SessionEnd) => void
}

/** A connection to a server, and what the handshake negotiated. */
export interface NegotiatedConnection {
  readonly peer: Peer
  /** Whether the HTTP headers of a request reach the server. */
  readonly sendsHeaders: boolean
  /** The variant of HTTP that the server speaks. It is stored in the server profile. */
  readonly httpMode: string | undefined
  readonly agreement: Agreement
  /** For whom its requests acted after the handshake. It is stored in the server profile. */
  readonly authorizationContext: string | undefined
  /** Notifies one owner when the connection and all of its fibers have ended; at once if they have ended already. */
  readonly onEnd: (owner: ConnectionOwner) => void
  readonly revision: Revision.Revision
  /** Whether the revision is stateless: no session, and self-contained requests. */
  readonly isStateless: boolean
  /** The capabilities of the server, as it declared them. */
  readonly capabilities: JsonObject
  /** Adds the `_meta` that each request has in the stateless revision. Adds nothing in the session-based ones. */
  stamp: (params: JsonObject) => JsonObject
  /**
   * Sets the level of log messages that each later request asks for (stateless revision). Does nothing in the
   * session-based revisions.
   */
  readonly setLogLevel: (level: LoggingLevel) => void
  /** Why the stream for unsolicited messages of the server is lost, while the connection itself goes on. */
  streamError?: TransportError | undefined
  /** Records each request. */
  readonly telemetry: Telemetry | undefined
  /**
   * True while the negotiated values are assumed: they come from a stored server profile, the connection was opened
   * without a handshake, and no call has confirmed them yet.
   */
  isAssumed?: boolean | undefined
}

/** The server profile, to be stored for the next connection; `undefined` while the server is silent about it. */
export const serverProfileOf = (
  { agreement: { silence, ...agreed }, authorizationContext, httpMode }: NegotiatedConnection
): ServerProfile | undefined => {
  const profile = silence === undefined ? agreed : silence.verdict
  return profile === undefined
    ? undefined
    : { ...profile, httpMode, ...(authorizationContext === undefined ? undefined : { authorizationContext }) }
}

/**
 * Decodes a stored server profile, which may be any JSON. Malformed optional members are left out. Returns undefined if
 * a required member is malformed.
 */
export const readServerProfile = (value: unknown): ServerProfile | undefined => {
  if (!isObject(value)) return undefined
  const { authorizationContext, capabilities, info, instructions, negotiatedAt, revision, httpMode = null } = value
  if (!Revision.is(revision) || !isObject(capabilities)) return undefined
  if (httpMode !== null && typeof httpMode !== "string") return undefined
  return {
    revision,
    capabilities,
    httpMode: httpMode ?? undefined,
    info: isObject(info) ? info : undefined,
    instructions: typeof instructions === "string" ? instructions : undefined,
    negotiatedAt: typeof negotiatedAt === "number" ? negotiatedAt : undefined,
    authorizationContext: typeof authorizationContext === "string" ? authorizationContext : undefined
  }
}

/** Name and version of the server, as it sent them. */
export const serverOf = ({ agreement: { info }, revision }: NegotiatedConnection): Implementation | undefined =>
  info === undefined ? undefined : implementationOf(info, revision)

// The bound of a name or a version that the server sent.
const maxName = 128

const textOf = (
  connection: NegotiatedConnection,
  { tasks, ...declared }: ClientCapabilities,
  label: string
): string => {
  const { httpMode, isAssumed, revision } = connection
  const server = serverOf(connection)
  const name = server === undefined
    ? "a server without a name"
    : `${printable(server.name, maxName)} ${printable(server.version, maxName)}`
  // In the stateless revision, the capabilities that each request declares. In the others those of the newest revision,
  // except that only one revision has tasks.
  const own = connection.isStateless
    ? (connection.stamp({})["_meta"] as JsonObject | undefined)?.[RequestMeta.clientCapabilities]
    : tasks !== undefined && revision === "2025-11-25"
    ? { ...declared, tasks }
    : declared
  const how = `${revision}${isAssumed === true ? " (assumed)" : ""}${httpMode === undefined ? "" : ` over ${httpMode}`}`
  return `connected to ${label}: ${how}, ${name}, client capabilities ${JSON.stringify(own)}`
}

/**
 * Logs the result of the negotiation, unless the level is disabled. If a host has forgotten to provide the services for
 * input requests, the line shows that the client declares none of them.
 */
export const logConnection = (
  connection: NegotiatedConnection,
  declared: ClientCapabilities,
  label = "the server"
): Effect.Effect<void> =>
  Effect.withFiber((fiber) =>
    LogLevel.isGreaterThan(fiber.getRef(References.MinimumLogLevel), "Debug")
      ? Effect.void
      : Effect.logDebug(textOf(connection, declared, label))
  )
