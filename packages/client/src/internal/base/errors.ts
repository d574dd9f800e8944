/**
 * Failures: those of a transport and of a client, the members of their reasons, and whether and when another attempt may
 * succeed.
 */
import type * as McpError from "@skein/protocol/McpError"
import * as Backoff from "@skein/runtime/Backoff"
import type { SessionEnd } from "@skein/runtime/Session"
import { ConnectionLost, MessageRejected, OpenFailed, TransportError } from "@skein/runtime/TransportError"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Random from "effect/Random"
import { ClientError, type Reason, Timeout } from "../../ClientError.ts"
import type { CallClock } from "./callClock.ts"

/** Makes the failure of a method with a reason that has a message, and perhaps a cause, alone. */
export const clientError = (
  Reason: new(fields: { readonly message: string; readonly cause?: unknown }) => Reason,
  message: string,
  method?: string,
  cause?: unknown
): ClientError => new ClientError({ reason: new Reason({ message, cause }), method })

/** Fails with `Timeout` and this message if an effect takes longer than `duration` on a clock. */
export const within = <A, E, R>(
  clock: CallClock,
  effect: Effect.Effect<A, E, R>,
  duration: Duration.Input,
  message: string,
  method?: string
): Effect.Effect<A, E | ClientError, R> =>
  clock.timeoutOrElse(effect, duration, () => Effect.fail(clientError(Timeout, message, method)))

/** The error of a connection that broke, or of a message that may have been handled. */
export const connectionLost = (
  message: string,
  cause?: unknown,
  status?: number,
  undelivered?: boolean
): TransportError => new TransportError({ reason: new ConnectionLost({ message, cause, status }), undelivered })

/** The error of a connection that could not be opened. */
export const openFailed = (message: string, cause?: unknown, undelivered?: boolean): TransportError =>
  new TransportError({ reason: new OpenFailed({ message, cause }), undelivered })

/** The error of a message that this side refuses to send, or that the other side refused before it handled it. */
export const notDelivered = (message: string, status?: number, cause?: unknown): TransportError =>
  new TransportError({ reason: new MessageRejected({ message, status, cause }), undelivered: true })

/** The error that the server answered with, if the failure is one. */
export const serverErrorOf = ({ reason }: ClientError): McpError.McpError | undefined =>
  reason._tag === "ProtocolError" || reason._tag === "NegotiationFailed" ? reason.error : undefined

/** How the connection ended, if the failure is the end of it. */
export const endOf = ({ reason }: ClientError): SessionEnd | undefined =>
  reason._tag === "Closed" ? reason.end : undefined

/** The HTTP statuses below 500 of requests that were too slow, too early or too many. */
const transientStatuses = new Set([408, 425, 429])

/** Whether the same request may succeed a little later, by the HTTP status of its response. */
export const isTransientStatus = (status: number): boolean =>
  transientStatuses.has(status) || (status >= 500 && status !== 501)

/** The HTTP statuses of requests that were refused before they were handled. */
const unhandledStatuses = new Set([
  401,
  403,
  404,
  405,
  406,
  408,
  411,
  413,
  414,
  415,
  417,
  421,
  425,
  426,
  428,
  429,
  431,
  501
])

/**
 * Whether a request was refused before it was handled. A 503 counts only with `Retry-After`: without it, it may come
 * from a gateway that lost the server in the middle of the request.
 */
export const isUnhandledStatus = (status: number, retryAfter: number | undefined): boolean =>
  unhandledStatuses.has(status) || (status === 503 && retryAfter !== undefined)

/**
 * Whether another attempt may succeed: no response came, the server did not read the request, or the server or a
 * gateway could not answer now. This does not mean that another attempt is harmless.
 */
export const isTransient = ({ reason, undelivered }: ClientError): boolean => {
  switch (reason._tag) {
    case "Closed":
    case "Timeout":
      return true
    case "HttpError":
      // The last attempt may have been refused unread, as in a lost session, after one that was perhaps handled.
      return undelivered === true || reason.status === undefined || isTransientStatus(reason.status) ||
        (reason.cause instanceof TransportError && reason.cause.undelivered === true)
    case "ProtocolError":
      return reason.error.reason === "InternalError"
    default:
      return false
  }
}

/** The delay that the server requested with a failure, in milliseconds; undefined if it requested none. */
export const retryAfter = (failure: unknown): number | undefined => {
  let at = failure
  // The depth is bounded because an error may be its own cause.
  for (let depth = 0; depth < 4; depth++) {
    if (at instanceof TransportError && at.retryAfter !== undefined) return at.retryAfter
    if (typeof at !== "object" || at === null || !("cause" in at)) return undefined
    at = at.cause
  }
  return undefined
}

/**
 * The delay before an attempt that follows on a failure, in milliseconds. It is not shorter than the delay that the
 * server requested.
 */
export const delayAfter = (failure: unknown, backoff: Backoff.Backoff, attempt: number): Effect.Effect<number> =>
  Effect.map(Random.next, (random) => Backoff.delay(backoff, attempt, random, retryAfter(failure)))
