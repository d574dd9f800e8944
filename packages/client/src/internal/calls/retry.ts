/**
 * Sends a request again whose response was lost, if that is harmless.
 *
 * A request that has certainly not reached the server is sent again in any case, any other one only if it is
 * repeatable. Between two attempts it waits for the next connection or, if the connection goes on, for a backoff. The
 * timeouts of the request, which include the waiting, and `maxRetries` bound all of it.
 */
import { delayAfter, endOf } from "../base/errors.ts"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { ClientError, Closed, Timeout } from "../../ClientError.ts"
import type { ConnectionSupervisor } from "../connection/supervisor.ts"
import { isDoubtful, refutes } from "../connection/handshakeFailure.ts"
import type { NegotiatedConnection } from "../connection/connection.ts"
import type { CallContext, CallHandler, CallLayer, CallResponse, InternalOptions } from "./context.ts"
import { remainingTime } from "../base/callOptions.ts"
import { unsupportedOn } from "./support.ts"

/** Too many requests, or a server or gateway that cannot answer now. */
const busy: ReadonlySet<number | undefined> = new Set([429, 502, 503, 504])

/** Rejected unread, for now: too slow, too early. */
const early: ReadonlySet<number> = new Set([408, 425])

/**
 * Whether another attempt may succeed. This is narrower than `isTransient`: a status of 500 may be the end of work that
 * was begun, and a request that is too large would be rejected again. So would a request to an address that does not
 * exist (404). In the session-based revisions, 404 means that the session is gone, and the next session accepts the
 * request.
 */
const isPassing = ({ reason, undelivered }: ClientError, { isStateless }: NegotiatedConnection): boolean => {
  if (reason._tag !== "HttpError") return reason._tag === "Closed"
  const { status } = reason
  return busy.has(status) ||
    (undelivered === true && (status === undefined || early.has(status) || (status === 404 && !isStateless)))
}

/** The same failure of a request that may have reached the server at an earlier attempt. */
const delivered = (error: ClientError): ClientError =>
  error.undelivered === true ? new ClientError({ ...error, undelivered: undefined }) : error

/** The attempts of one request after its first failure, or from the start if no connection was open. */
class RetryLoop {
  readonly #call: CallContext
  readonly #next: CallHandler
  readonly #startedAt: number
  readonly #timeout: number
  readonly #last: number
  #deadline: number
  #replays = 0
  #delivered = false

  constructor(call: CallContext, next: CallHandler, startedAt: number) {
    const { client: { supervisor: { timeouts } }, options } = call
    this.#call = call
    this.#next = next
    this.#startedAt = startedAt
    const { maxTimeout, timeout } = remainingTime(timeouts, options, 0)
    this.#timeout = timeout
    this.#last = startedAt + maxTimeout
    this.#deadline = Math.min(startedAt + this.#timeout, this.#last)
  }

  /** Sends it on a connection whose server profile is assumed. The first response confirms or refutes the profile. */
  assuming(connection: NegotiatedConnection): Effect.Effect<CallResponse, ClientError> {
    return Effect.flatMap(Effect.result(attempt(this.#next, this.#call, connection, this.#startedAt)), (result) => {
      if (Result.isSuccess(result)) {
        connection.isAssumed = false
        return Effect.succeed(result.success)
      }
      const error = result.failure
      if (!isDoubtful(error)) return this.failed(connection, error)
      return Effect.flatMap(refutes(connection, this.#left), (refuted) => {
        // Another call may have refuted it first.
        if (!refuted && this.#supervisor.refuted !== connection) return this.failed(connection, error)
        this.#supervisor.refute(connection)
        return this.resend(connection, error)
      })
    })
  }

  /** Continues after a failure. */
  failed(connection: NegotiatedConnection, error: ClientError): Effect.Effect<CallResponse, ClientError> {
    const { isRepeatable } = this.#call
    const supervisor = this.#supervisor
    if (error.undelivered !== true) this.#delivered = true
    const surfaced = this.#delivered ? delivered(error) : error
    const again = isPassing(error, connection) && (isRepeatable || surfaced.undelivered === true)
    // If no connection follows, the first failure describes the cause best.
    const end = endOf(error)
    const over = end !== undefined && (end._tag === "ClosedByUs" || !supervisor.willReconnect(connection))
    if (!again || over || this.#replays >= supervisor.timeouts.maxRetries) return Effect.fail(surfaced)
    this.#replays++
    const now = supervisor.now()
    // It took longer than its timeout: the server has reported progress, which restarts the timeout.
    if (now >= this.#deadline) this.#deadline = Math.min(now + this.#timeout, this.#last)
    if (now >= this.#deadline) return Effect.fail(surfaced)
    if (end !== undefined) return this.resend(connection, surfaced)
    return Effect.flatMap(delayAfter(error, supervisor.timeouts.backoff, this.#replays), (delay) => {
      if (now + delay >= this.#deadline) return Effect.fail(surfaced)
      // A rejection may arrive just before the connection ends: then wait for the next one.
      const pause = Effect.raceFirst(Effect.sleep(delay), Effect.exit(supervisor.after(connection)))
      return Effect.andThen(pause, this.resend(undefined, surfaced))
    })
  }

  /** Which option the deadline comes from. */
  get #bound(): string {
    return this.#deadline === this.#last && this.#last !== this.#startedAt + this.#timeout ? "maxTimeout" : "timeout"
  }

  /** The remaining time of the request, in milliseconds. */
  get #left(): number {
    return Math.max(this.#deadline - this.#supervisor.now(), 1)
  }

  get #supervisor(): ConnectionSupervisor {
    return this.#call.client.supervisor
  }

  /** Sends it on the connection after that one, or on the next that is open. `error` is the last failure, if any. */
  resend(connection?: NegotiatedConnection, error?: ClientError): Effect.Effect<CallResponse, ClientError> {
    const next = connection === undefined ? this.#supervisor.connection : this.#supervisor.after(connection)
    return Effect.flatMap(this.#within(next, error), (connection) => this.#send(connection))
  }

  #send(connection: NegotiatedConnection): Effect.Effect<CallResponse, ClientError> {
    if (connection.isAssumed === true) return this.assuming(connection)
    // A request with `onProgress` gets its full timeout with each report. If `maxTimeout` has ended it, the message
    // names that option.
    const { options } = this.#call
    const whole = options.onProgress !== undefined || this.#bound === "maxTimeout"
    const timeout = whole ? this.#timeout : this.#left
    const again = { ...options, timeout, maxTimeout: Math.max(this.#last - this.#supervisor.now(), 1) }
    return Effect.catch(
      attempt(this.#next, this.#call, connection, this.#startedAt, again),
      (error) => this.failed(connection, error)
    )
  }

  /** Waits for a connection, for no longer than the request may take. */
  #within(
    connection: Effect.Effect<NegotiatedConnection, ClientError>,
    before: ClientError | undefined
  ): Effect.Effect<NegotiatedConnection, ClientError> {
    const method = this.#call.method.name
    const failure = (reason: Closed | Timeout) =>
      new ClientError({ reason, method, undelivered: this.#delivered ? undefined : true })
    return Effect.suspend(() => {
      const since = this.#supervisor.now()
      return this.#supervisor.callClock.timeoutOrElse(
        Effect.mapError(connection, (error) => {
          const message = `${method} was not sent${before === undefined ? "" : " again"}: ${error.message}`
          return failure(new Closed({ message, end: endOf(error), cause: error.cause }))
        }),
        this.#deadline - since,
        () => {
          const waited = this.#supervisor.now() - since
          const message = `${method} has waited for a connection for ${waited} ms (${this.#bound})`
          return Effect.fail(failure(new Timeout({ message, cause: before })))
        }
      )
    })
  }
}

/**
 * Sends a call on a connection. With `again` the call had to wait, or is sent again, within its remaining time: then
 * the connection may lead to another server than the one that the call was checked for.
 */
const attempt = (
  next: CallHandler,
  call: CallContext,
  connection: NegotiatedConnection,
  startedAt: number,
  again?: InternalOptions
): Effect.Effect<CallResponse, ClientError> => {
  if (again === undefined) {
    return next(call.connection === connection ? call : { ...call, connection, startedAt, sentAt: startedAt })
  }
  const { client, method } = call
  const refused = unsupportedOn(client, connection, method)
  if (refused !== undefined) return Effect.fail(refused)
  return next({ ...call, options: again, connection, startedAt, sentAt: client.supervisor.now() })
}

/** Sends a call on the connection that is open, and again on the next one if the request or its response was lost. */
export const retryLostRequests: CallLayer = (next) => (call) => {
  const { client: { supervisor }, startedAt } = call
  const { current } = supervisor
  if (current === undefined) return new RetryLoop(call, next, startedAt).resend()
  if (current.isAssumed === true) return new RetryLoop(call, next, startedAt).assuming(current)
  return Effect.catch(
    attempt(next, call, current, startedAt),
    (error) =>
      isPassing(error, current)
        ? new RetryLoop(call, next, startedAt).failed(current, error)
        : Effect.fail(error)
  )
}
