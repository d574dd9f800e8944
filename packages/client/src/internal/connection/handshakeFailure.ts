/**
 * What a failure in the handshake says: about the server, or about nothing but the way to it.
 */
import { TransportError } from "@skein/runtime/Connection"
import type { RequestError } from "@skein/runtime/RequestError"
import { ClientError } from "../../ClientError.ts"
import { fromRequest } from "../calls/failure.ts"

/** Refusals by who or what stands before the server, and refusals for now. They would be the same whatever it speaks. */
const silent: ReadonlySet<number> = new Set([401, 403, 407, 408, 429, 502, 503, 504])

/**
 * Whether a refusal by HTTP says that the server does not know what it was asked.
 *
 * 2026-07-28, versioning: "a recognized modern JSON-RPC error identifies a modern server […]. Anything else identifies a legacy
 * server"; and over HTTP, "a `4xx` without a recognized modern error body". So do 500, with which servers fail that expect a session,
 * 501, and an answer with 2xx that is none. But who may not ask, or is to come back later, has not learnt anything: another request
 * would be refused just so, and a server that is only busy would be taken for an older one.
 */
export const isTelling = (status: number | undefined): boolean =>
  status !== undefined && !silent.has(status) &&
  ((status >= 200 && status < 300) || (status >= 400 && status <= 501))

/** The failure to open a connection. */
export const fromConnect = (cause: TransportError): ClientError => {
  const { message, reason, status, undelivered } = cause
  if (reason !== "Refused") return new ClientError({ reason: "Open", message, undelivered, cause })
  const unauthorized = status === 401 || status === 403
  return new ClientError({ reason: unauthorized ? "Unauthorized" : "Refused", message, status, undelivered, cause })
}

/** The failure of a request of the handshake: over HTTP it is the first one that finds out that nobody is there. */
export const fromHandshake = (method: string, error: RequestError): ClientError => {
  const { cause, message } = error
  return cause instanceof TransportError && cause.reason === "Open"
    ? new ClientError({ reason: "Open", method, message, undelivered: error.undelivered, cause })
    : fromRequest(method, error)
}

/**
 * Whether a handshake failed because of what was known about the server before, so that it may be another one now. It did not where
 * the server was not reached, or does not let this client in.
 */
export const isRefuted = ({ cause, end, reason, status }: ClientError): boolean => {
  switch (reason) {
    case "Open":
      // The connection was there, but not what it should have brought.
      return cause instanceof TransportError && cause.reason === "Lost"
    case "Closed":
      return end !== undefined
    case "Refused":
      return isTelling(status)
    case "Unauthorized":
    case "Limit":
      return false
    default:
      return true
  }
}
