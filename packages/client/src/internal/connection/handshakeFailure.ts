/**
 * Classifies the failures of a handshake, and of the first requests with an assumed server profile: does the failure
 * reveal which revision the server has?
 */
import { TransportError } from "@skein/runtime/TransportError"
import type { RequestError } from "@skein/runtime/RequestError"
import * as Effect from "effect/Effect"
import { ClientError, ConnectionFailed } from "../../ClientError.ts"
import { fromRejection, fromRequest } from "../base/failure.ts"
import type { NegotiatedConnection } from "./connection.ts"

/**
 * Statuses with which a gateway refuses a request, or with which a server refuses it for now. They do not depend on the
 * revision of the server.
 */
const unrelated: ReadonlySet<number> = new Set([401, 403, 407, 408, 429, 502, 503, 504])

/**
 * Whether an HTTP status means that the server does not support the request.
 *
 * 2026-07-28, versioning: "a recognized modern JSON-RPC error identifies a modern server […]. Anything else identifies
 * a legacy server"; and over HTTP, "a `4xx` without a recognized modern error body". The same goes for 500, with which
 * servers fail that expect a session, for 501, and for a 2xx that is not a JSON-RPC response. Statuses that deny access
 * or ask to retry later do not count: another request would be refused in the same way, and a server that is only busy
 * would be taken for an older one.
 */
export const revealsRevision = (status: number | undefined): boolean =>
  status !== undefined && !unrelated.has(status) &&
  ((status >= 200 && status < 300) || (status >= 400 && status <= 501))

/** The failure to open a connection. */
export const fromConnect = (cause: TransportError): ClientError => {
  const { message, reason, undelivered } = cause
  return new ClientError({
    reason: reason._tag === "MessageRejected" ? fromRejection(cause) : new ConnectionFailed({ message, cause }),
    undelivered
  })
}

/**
 * The failure of a request of the handshake. Over HTTP, only the first request finds out that nothing answers at the
 * address.
 */
export const fromHandshake = (method: string, error: RequestError): ClientError => {
  const { cause, message } = error
  return cause instanceof TransportError && cause.reason._tag === "OpenFailed"
    ? new ClientError({ reason: new ConnectionFailed({ message, cause }), method, undelivered: error.undelivered })
    : fromRequest(method, error)
}

/**
 * Whether a handshake failed because of the stored server profile, so that the server may have changed. It did not if
 * the server was not reached, or denies access.
 */
export const isRefuted = ({ reason }: ClientError): boolean => {
  switch (reason._tag) {
    case "ConnectionFailed":
      // The server was reached, but the connection was lost before the transport was ready.
      return reason.cause instanceof TransportError && reason.cause.reason._tag === "ConnectionLost"
    case "Closed":
      return reason.end !== undefined
    case "HttpError":
      return revealsRevision(reason.status)
    case "Unauthorized":
    case "LimitExceeded":
      return false
    default:
      return true
  }
}

/**
 * Whether a failure may mean that the server has changed. Then the server has certainly not handled the request, which
 * is why an internal error does not count: the server had begun to handle it.
 */
export const isDoubtful = ({ reason }: ClientError): boolean => {
  if (reason._tag === "ProtocolError") return reason.error.reason !== "InternalError"
  if (reason._tag !== "HttpError" || reason.status === undefined) return false
  return reason.status >= 400 && reason.status < 500 && reason.status !== 408 && reason.status !== 429
}

/**
 * Verifies an assumed server profile after the first failure on its connection: a client that stores the result of a
 * negotiation is "re-probing if the cached assumption later fails" (2026-07-28, versioning).
 *
 * It sends `server/discover`, which every server of the stateless revision answers. A doubtful
 * failure of that request refutes the assumption as well. If the server cannot be asked now, the assumption stays
 * unverified.
 */
export const refutes = (connection: NegotiatedConnection, timeout: number): Effect.Effect<boolean> =>
  Effect.match(connection.peer.request("server/discover", connection.stamp({}), { timeout, maxTimeout: timeout }), {
    onSuccess: (result) => {
      const versions = result["supportedVersions"]
      connection.isAssumed = !Array.isArray(versions) || !versions.includes(connection.revision)
      return connection.isAssumed
    },
    onFailure: (error) => isDoubtful(fromRequest("server/discover", error))
  })
