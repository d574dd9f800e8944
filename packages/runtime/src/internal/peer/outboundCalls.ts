/**
 * The requests that this side sent and that wait for a response.
 *
 * One timer fiber serves them all. It sleeps until the earliest known deadline, or for a few seconds at most,
 * so that a response need not touch it. It ends when no call is pending, or when the peer ends.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import { subscriptionId } from "@skein/protocol/RequestMeta"
import type * as Revision from "@skein/protocol/Revision"
import { logValue } from "@skein/protocol/Text"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Duration from "effect/Duration"
import type * as Fiber from "effect/Fiber"
import type { Connection } from "../../Connection.ts"
import type { Resolved } from "../../Limits.ts"
import type { CallOptions, CallResult, Progress, SessionPeer } from "../../RequestContext.ts"
import {
  Closed,
  InvalidResponse,
  LimitExceeded,
  MessageRejected,
  type Reason,
  RequestError,
  Timeout,
  Unsupported
} from "../../RequestError.ts"
import type { SessionEnd } from "../../Session.ts"
import type { TransportError } from "../../TransportError.ts"
import type { FixedBounds } from "../base/fixedBounds.ts"

/** The part of a peer that its inbound requests and its outbound calls use. */
export interface PeerCore extends SessionPeer {
  readonly connection: Connection
  readonly limits: Resolved
  readonly bounds: FixedBounds
  /** Milliseconds of the monotonic clock. */
  readonly now: () => number
  /** A time of that clock without the time for which the timeouts of outbound calls have stood still. */
  readonly callTimeAt: (now: number) => number
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** The revision of messages that belong to no request: that of the session, or the latest. */
  readonly revision: Revision.Revision
  /** Whether the session has ended: messages that arrive now are not handled. */
  readonly isEnded: boolean
  /**
   * Whether the session has ended and requests in flight may not finish; and whether that is because this side stops.
   */
  readonly isOver: boolean
  readonly isStopping: boolean
  /** Whether this side handles something for the peer, so that the timeouts of its own calls are paused. */
  readonly pausesTimeouts: boolean
  /** Receives the results of cancelled calls. If it is undefined, cancelled calls are not remembered. */
  readonly onLateResult: ((method: string, result: JsonRpc.JsonObject) => void) | undefined
  /** A suspended or queued request, or a running notification, is over. */
  readonly countChanged: () => void
  /** Lets the session end, if it waits for the last handler and none is left. */
  readonly settle: () => void
  /** Sends a request, on the stream of the inbound request `about` if there is one. */
  readonly call: (
    about: JsonRpc.Id | undefined,
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions | undefined
  ) => CallResult
}

interface Call extends Pick<CallOptions, "onProgress" | "onNotification"> {
  readonly id: number
  readonly method: string
  /** Milliseconds, as are the other times. */
  readonly timeout: number
  readonly maxTimeout: number
  /** The inbound request on whose behalf it is made. */
  readonly about: JsonRpc.Id | undefined
  readonly startedAt: number
  /** When it began, in the time of `PeerCore.callTimeAt`, as is the deadline. */
  readonly begunAt: number
  readonly resume: (result: CallResult) => void
  deadline: number
  progress: number
}

/** Reads the params of a progress notification; undefined if they report no progress. */
export const readProgress = ({ message, progress, total }: JsonRpc.JsonObject): Progress | undefined =>
  // A number too large for a double is read as infinite, and no later report would be greater.
  typeof progress !== "number" || !Number.isFinite(progress) ? undefined : {
    progress,
    ...(typeof total === "number" && Number.isFinite(total) ? { total } : undefined),
    ...(typeof message === "string" ? { message } : undefined)
  }

// How long the timer sleeps at most, in milliseconds. An idle peer has no timer once this time has passed since its
// last response.
const maxSleep = 5_000

// How long the timer sleeps at least while timeouts stand still, in milliseconds. A timeout is late by this much at most.
const minSleepWhilePaused = 100

/** A range of ids. The first one follows the last one. */
export interface RequestIds {
  readonly first: number
  readonly last: number
  /** The one that is used first; `first` by default. */
  readonly next?: number | undefined
}

const allIds: RequestIds = { first: 1, last: Number.MAX_SAFE_INTEGER }

// How many cancelled calls are remembered for their late results.
const maxCancelledCalls = 1_000

/** The option that a call's deadline comes from. */
const boundOf = ({ begunAt, deadline, maxTimeout, timeout }: Call): string =>
  deadline === begunAt + maxTimeout && maxTimeout !== timeout ? "maxTimeout" : "timeout"

export class OutboundCalls {
  readonly #peer: PeerCore
  readonly #pending = new Map<JsonRpc.Id, Call>()
  // The methods of cancelled calls, oldest first.
  #cancelled: Map<JsonRpc.Id, string> | undefined = undefined
  readonly #ids: RequestIds
  #nextId: number
  #timer: Fiber.Fiber<void> | undefined = undefined
  #wakeAt = Infinity
  #armedAt = 0

  constructor(peer: PeerCore, ids = allIds) {
    this.#peer = peer
    this.#ids = ids
    this.#nextId = ids.next ?? ids.first
  }

  /** The calls that wait for a response, oldest first. */
  get pending(): Iterable<Pick<Call, "about" | "id" | "method" | "startedAt">> {
    return this.#pending.values()
  }

  /** Sends a request now and resumes the caller with its response. Returns the effect that cancels the call. */
  start(
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions,
    about: JsonRpc.Id | undefined,
    resume: (result: CallResult) => void
  ): Effect.Effect<void> {
    if (this.#pending.size >= this.#peer.bounds.maxPendingRequests) {
      const message = `${this.#pending.size} requests wait for a response already: ${method} was not sent`
      resume(failed(method, new LimitExceeded({ message })))
      return Effect.void
    }
    const id = this.#takeId()
    const startedAt = this.#peer.now()
    const begunAt = this.#peer.callTimeAt(startedAt)
    const { limits } = this.#peer
    const timeout = options.timeout === undefined ? limits.timeout : Duration.toMillis(options.timeout)
    const maxTimeout = options.maxTimeout === undefined ? limits.maxTimeout : Duration.toMillis(options.maxTimeout)
    const deadline = begunAt + Math.min(timeout, maxTimeout)
    const { headers, onNotification, onProgress } = options
    const call = {
      id,
      method,
      timeout,
      maxTimeout,
      onProgress,
      onNotification,
      about,
      startedAt,
      begunAt,
      resume,
      deadline,
      progress: -Infinity
    }
    // Registered before it is sent: the connection may be lost meanwhile, and then this call fails too.
    this.#pending.set(id, call)
    options.onSend?.(id)
    const sent = onProgress === undefined ? params : withProgressToken(params, id)
    try {
      this.#peer.connection.send(JsonRpc.request(id, method, sent), about, headers)
    } catch (cause) {
      this.#pending.delete(id)
      const message = `The parameters of ${method} have no JSON form`
      // A transport throws a RequestError where it cannot send the request.
      resume(cause instanceof RequestError ? Effect.fail(cause) : failed(method, new Unsupported({ message, cause })))
      return Effect.void
    }
    if (!this.#pending.has(id)) return Effect.void
    this.#arm(deadline)
    return Effect.sync(() => {
      if (this.#pending.delete(id)) this.#cancel(call, "The caller was interrupted")
    })
  }

  #takeId(): number {
    let id: number
    // A pending call may have had its id since the last time that the ids began again.
    do {
      id = this.#nextId
      this.#nextId = id >= this.#ids.last ? this.#ids.first : id + 1
    } while (this.#pending.has(id))
    return id
  }

  /** Resumes the caller with its response. A response to no pending call is ignored, except a late result. */
  settle(message: JsonRpc.Success | JsonRpc.Failure): void {
    const call = this.#take(message.id)
    if (call === undefined) return this.#reportLate(message)
    call.resume(
      message._tag === "Success"
        ? Effect.succeed(message.result as JsonRpc.JsonObject)
        : Effect.fail(McpError.fromErrorObject(message.error, this.#peer.revision))
    )
  }

  #reportLate(message: JsonRpc.Success | JsonRpc.Failure): void {
    const id = JsonRpc.ownId(message.id)
    const method = id === undefined ? undefined : this.#cancelled?.get(id)
    if (method === undefined) return
    this.#cancelled!.delete(id!)
    if (message._tag === "Success") this.#peer.onLateResult?.(method, message.result as JsonRpc.JsonObject)
  }

  /** Fails the call that an invalid response belongs to. */
  failInvalid(invalid: JsonRpc.Invalid): void {
    const call = this.#take(invalid.id)
    if (call === undefined) return
    const message = `The response to ${call.method} is not valid: ${invalid.error.message}`
    call.resume(failed(call.method, new InvalidResponse({ message })))
  }

  /** Fails a call whose request the transport could not deliver. */
  fail(id: JsonRpc.Id, cause: TransportError): void {
    const call = this.#take(id)
    if (call === undefined) return
    const { message, undelivered } = cause
    const reason = cause.reason._tag === "MessageRejected"
      ? new MessageRejected({ message, cause })
      : new Closed({ message, cause })
    call.resume(failed(call.method, reason, undelivered))
  }

  /** Passes a notification to the call whose subscription it belongs to, if there is one. */
  notify(notification: JsonRpc.Notification): void {
    const meta = notification.params?.["_meta"]
    if (!JsonRpc.isObject(meta)) return
    const call = this.#pending.get(JsonRpc.ownId(meta[subscriptionId] as JsonRpc.Id))
    if (call?.onNotification === undefined) return
    try {
      call.onNotification(notification)
    } catch (defect) {
      this.#peer.fork(Effect.logError(`failed to handle ${logValue(notification.method)}`, Cause.die(defect)))
    }
  }

  /**
   * Passes progress to the pending call that asked for it, if it grows, and extends the deadline. Returns whether the
   * token belongs to a pending call.
   */
  progress(params: JsonRpc.JsonObject): boolean {
    const call = this.#pending.get(JsonRpc.ownId(params["progressToken"] as JsonRpc.Id))
    if (call === undefined) return false
    const report = readProgress(params)
    if (call.onProgress === undefined || report === undefined || report.progress <= call.progress) return true
    call.progress = report.progress
    const now = this.#now
    call.deadline = Math.min(now + call.timeout, call.begunAt + call.maxTimeout)
    try {
      call.onProgress(report)
    } catch (defect) {
      this.#peer.fork(Effect.logError(`failed to handle the progress of ${call.method}`, Cause.die(defect)))
    }
    return true
  }

  /**
   * The peer has ended a subscription of this side with `notifications/cancelled` (2026-07-28: a server sends it when
   * it tears one down). For any other request the notification is ignored.
   */
  endSubscription(requestId: unknown): void {
    const call = this.#pending.get(JsonRpc.ownId(requestId as JsonRpc.Id))
    if (call === undefined || call.method !== "subscriptions/listen") return
    this.#pending.delete(call.id)
    call.resume(failed(call.method, new Closed({ message: `The peer has ended ${call.method}` })))
  }

  /** Restarts the timeouts: the peer was waiting for this side. */
  restartTimeouts(): void {
    const now = this.#now
    for (const call of this.#pending.values()) {
      call.deadline = Math.min(Math.max(call.deadline, now + call.timeout), call.begunAt + call.maxTimeout)
    }
  }

  /** Fails all pending calls. */
  end(end: SessionEnd): void {
    const calls = [...this.#pending.values()]
    this.#pending.clear()
    this.#timer?.interruptUnsafe()
    this.#timer = undefined
    this.#wakeAt = Infinity
    for (const { method, resume } of calls) resume(Effect.fail(closedError(method, end)))
  }

  get #now(): number {
    return this.#peer.callTimeAt(this.#peer.now())
  }

  /** Removes the call that a response names. */
  #take(id: JsonRpc.Id | undefined): Call | undefined {
    const call = id === undefined ? undefined : this.#pending.get(JsonRpc.ownId(id))
    if (call !== undefined) this.#pending.delete(call.id)
    return call
  }

  #cancel(call: Call, reason: string): void {
    // "The `initialize` request MUST NOT be cancelled by clients"
    if (call.method === "initialize") return
    const params = { requestId: call.id, reason }
    if (this.#peer.onLateResult !== undefined) {
      const cancelled = this.#cancelled ??= new Map()
      cancelled.set(call.id, call.method)
      if (cancelled.size > maxCancelledCalls) cancelled.delete(cancelled.keys().next().value!)
    }
    this.#peer.connection.send(JsonRpc.notification("notifications/cancelled", params), call.about)
  }

  /** Wakes the timer no later than at the deadline, but after `minSleep` milliseconds at the earliest. */
  #arm(deadline: number, minSleep = 0): void {
    if (deadline >= this.#wakeAt) return
    this.#timer?.interruptUnsafe()
    const now = this.#now
    this.#armedAt = now
    this.#wakeAt = Math.max(Math.min(deadline, now + maxSleep), now + minSleep)
    const wait = Duration.millis(this.#wakeAt - now)
    this.#timer = this.#peer.fork(Effect.andThen(Effect.sleep(wait), Effect.sync(() => this.#expire())))
  }

  #expire(): void {
    this.#timer = undefined
    this.#wakeAt = Infinity
    const now = this.#now
    let next = Infinity
    if (this.#peer.pausesTimeouts) this.restartTimeouts()
    for (const call of [...this.#pending.values()]) {
      if (call.deadline > now) {
        next = Math.min(next, call.deadline)
        continue
      }
      // Resuming an earlier caller may have ended this call.
      if (!this.#pending.delete(call.id)) continue
      const message = `No response to ${call.method} within ${now - call.begunAt} ms`
      this.#cancel(call, message)
      call.resume(failed(call.method, new Timeout({ message: `${message} (${boundOf(call)})` })))
    }
    if (this.#pending.size > 0 && next !== Infinity) this.#arm(next, now === this.#armedAt ? minSleepWhilePaused : 0)
  }
}

/** The error of a call on a connection that has ended; `undelivered` if the request was not sent. */
export const closedError = (method: string, end: SessionEnd, undelivered?: boolean): RequestError => {
  const message = `The connection ended before ${method} was ${undelivered === true ? "sent" : "answered"}`
  return new RequestError({ reason: new Closed({ message, end }), method, undelivered })
}

const failed = (method: string, reason: Reason, undelivered?: boolean): CallResult =>
  Effect.fail(new RequestError({ reason, method, undelivered }))

const withProgressToken = (params: JsonRpc.JsonObject | undefined, progressToken: number): JsonRpc.JsonObject => ({
  ...params,
  _meta: { ...(params?.["_meta"] as JsonRpc.JsonObject | undefined), progressToken }
})
