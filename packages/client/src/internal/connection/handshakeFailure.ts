/**
 * What a failure in the handshake says: about the server, or about nothing but the way to it.
 */
import { TransportError } from "@skein/runtime/TransportError"
import type { RequestError } from "@skein/runtime/RequestError"
import { ClientError, ConnectionFailed } from "../../ClientError.ts"
import { fromRejection, fromRequest } from "../calls/failure.ts"

/**
 * Refusals by who or what stands before the server, and refusals for now. They would be the same whatever it speaks.
 */
const silent: ReadonlySet<number> = new Set([401, 403, 407, 408, 429, 502, 503, 504])

/**
 * Whether a refusal by HTTP says that the server does not know what it was asked.
 *
 * 2026-07-28, versioning: "a recognized modern JSON-RPC error identifies a modern server […]. Anything else identifies
 * a legacy server"; and over HTTP, "a `4xx` without a recognized modern error body". So do 500, with which servers fail
 * that expect a session, 501, and an answer with 2xx that is none. But who may not ask, or is to come back later, has
 * not learnt anything: another request would be refused just so, and a server that is only busy would be taken for an
 * older one.
 */
export const isTelling = (status: number | undefined): boolean =>
  status !== undefined && !silent.has(status) &&
  ((status >= 200 && status < 300) || (status >= 400 && status <= 501))

/** The failure to open a connection. */
export const fromConnect = (cause: TransportError): ClientError => {
  const { message, reason, undelivered } = cause
  return new ClientError({
    reason: reason._tag === "MessageRejected" ? fromRejection(cause) : new ConnectionFailed({ message, cause }),
    undelivered
  })
}

/** The failure of a request of the handshake: over HTTP it is the first one that finds out that nobody is there. */
export const fromHandshake = (method: string, error: RequestError): ClientError => {
  const { cause, message } = error
  return cause instanceof TransportError && cause.reason._tag === "OpenFailed"
    ? new ClientError({ reason: new ConnectionFailed({ message, cause }), method, undelivered: error.undelivered })
    : fromRequest(method, error)
}

/**
 * Whether a handshake failed because of what was known about the server before, so that it may be another one now. It
 * did not where the server was not reached, or does not let this client in.
 */
export const isRefuted = ({ reason }: ClientError): boolean => {
  switch (reason._tag) {
    case "ConnectionFailed":
      // The connection was there, but not what it should have brought.
      return reason.cause instanceof TransportError && reason.cause.reason._tag === "ConnectionLost"
    case "Closed":
      return reason.end !== undefined
    case "HttpError":
      return isTelling(reason.status)
    case "Unauthorized":
    case "LimitExceeded":
      return false
    default:
      return true
  }
}
