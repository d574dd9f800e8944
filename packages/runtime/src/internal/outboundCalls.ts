/**
 * The requests that this side sent and that wait for an answer.
 *
 * One timer fiber serves them all. It sleeps until the earliest deadline that it was told of, or for a few seconds at most, so that
 * it need not be touched when an answer comes; it ends there if nothing waits any more, and with the peer at the latest.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import { subscriptionId } from "@skein/protocol/RequestMeta"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Duration from "effect/Duration"
import type * as Fiber from "effect/Fiber"
import type { CallOptions, Progress } from "../RequestContext.ts"
import type { Headers } from "../Connection.ts"
import type { TransportError } from "../TransportError.ts"
import type { Resolved } from "../Limits.ts"
import {
  Closed,
  InvalidResponse,
  LimitExceeded,
  MessageRejected,
  RequestError,
  Timeout,
  Unsupported
} from "../RequestError.ts"
import type { SessionEnd } from "../Session.ts"

export type CallResult = Effect.Effect<JsonRpc.JsonObject, McpError.McpError | RequestError>

interface Call {
  readonly id: number
  readonly method: string
  /** Milliseconds, as are the other times. */
  readonly timeout: number
  readonly maxTimeout: number
  readonly onProgress: CallOptions["onProgress"]
  readonly onNotification: CallOptions["onNotification"]
  /** The request of the other side for whose sake it is made. */
  readonly about: JsonRpc.Id | undefined
  readonly startedAt: number
  readonly resume: (result: CallResult) => void
  deadline: number
  progress: number
}

/** What the calls need of their peer. */
export interface Host {
  /** Milliseconds of the monotonic clock. */
  readonly now: () => number
  readonly fork: <A, E>(effect: Effect.Effect<A, E>) => Fiber.Fiber<A, E>
  /** Sends a message; may throw what `JsonRpc.encode` throws. */
  readonly send: (message: JsonRpc.Message, about: JsonRpc.Id | undefined, headers?: Headers) => void
  readonly toError: (error: JsonRpc.ErrorObject) => McpError.McpError
  /** Whether the other side waits for this one, so that the calls' own timeouts stand still. */
  readonly held: boolean
  /** No call waits any more. */
  readonly quiet: () => void
  /** Hears what is answered to a call that nobody waits for any more; where nobody wants to know, nothing is remembered of it. */
  readonly late: ((method: string, result: JsonRpc.JsonObject) => void) | undefined
}

const settled = Effect.void

/** What a notification says about progress, if it says anything. */
export const readProgress = ({ message, progress, total }: JsonRpc.JsonObject): Progress | undefined =>
  // A number that is too large to be one is read as infinite, and nothing would grow beyond it.
  typeof progress !== "number" || !Number.isFinite(progress) ? undefined : {
    progress,
    ...(typeof total === "number" && Number.isFinite(total) ? { total } : undefined),
    ...(typeof message === "string" ? { message } : undefined)
  }

// How long the timer sleeps at most, in milliseconds: so long after the last answer an idle peer is rid of it.
const maxSleep = 5_000

// Of how many calls that nobody waits for any more it is known that there were, and only where somebody hears of their answers.
const maxLeft = 1_000

/** Which option of a call its deadline comes from. */
const bound = ({ deadline, maxTimeout, startedAt, timeout }: Call): string =>
  deadline === startedAt + maxTimeout && maxTimeout !== timeout ? "maxTimeout" : "timeout"

export class Calls {
  readonly #host: Host
  readonly #limits: Resolved
  readonly #pending = new Map<JsonRpc.Id, Call>()
  // The methods of calls that were cancelled, oldest first.
  #left: Map<JsonRpc.Id, string> | undefined = undefined
  #nextId = 1
  #timer: Fiber.Fiber<void> | undefined = undefined
  #wakeAt = Infinity

  constructor(host: Host, limits: Resolved) {
    this.#host = host
    this.#limits = limits
  }

  get size(): number {
    return this.#pending.size
  }

  /** The waiting calls, oldest first. */
  get waiting(): Iterable<{ readonly id: number; readonly method: string; readonly startedAt: number }> {
    return this.#pending.values()
  }

  /** Sends a request now; the effect of `resume` gets its answer. Gives what to run when nobody waits for it any more. */
  start(
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions,
    about: JsonRpc.Id | undefined,
    resume: (result: CallResult) => void
  ): Effect.Effect<void> {
    if (this.#pending.size >= this.#limits.maxPendingRequests) {
      const message =
        `${this.#pending.size} requests wait for an answer already (maxPendingRequests): ${method} was not sent`
      resume(Effect.fail(new RequestError({ reason: new LimitExceeded({ message }), method })))
      return settled
    }
    const id = this.#nextId++
    const startedAt = this.#host.now()
    const timeout = Duration.toMillis(options.timeout ?? this.#limits.timeout)
    const maxTimeout = Duration.toMillis(options.maxTimeout ?? this.#limits.maxTimeout)
    const deadline = startedAt + Math.min(timeout, maxTimeout)
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
      resume,
      deadline,
      progress: -Infinity
    }
    // Known before it is sent: the connection may be lost while it is sent, and that fails it too.
    this.#pending.set(id, call)
    options.onSend?.(id)
    const sent = onProgress === undefined ? params : withProgressToken(params, id)
    try {
      this.#host.send(JsonRpc.request(id, method, sent), about, headers)
    } catch (cause) {
      this.#remove(id)
      const message = `The parameters of ${method} have no JSON form`
      // A transport that cannot take it says why.
      const error = cause instanceof RequestError
        ? cause
        : new RequestError({ reason: new Unsupported({ message, cause }), method })
      resume(Effect.fail(error))
      return settled
    }
    if (!this.#pending.has(id)) return settled
    this.#arm(deadline)
    return Effect.sync(() => {
      if (this.#remove(id)) this.#cancel(call, "The caller does not wait any more")
    })
  }

  /** An answer came. One that nobody waits for is ignored, but for what it may have left behind. */
  settle(message: JsonRpc.Success | JsonRpc.Failure): void {
    const call = message.id === undefined ? undefined : this.#pending.get(message.id)
    if (call === undefined) return this.#late(message)
    this.#remove(call.id)
    call.resume(
      message._tag === "Success"
        ? Effect.succeed(message.result as JsonRpc.JsonObject)
        : Effect.fail(this.#host.toError(message.error))
    )
  }

  #late(message: JsonRpc.Success | JsonRpc.Failure): void {
    const method = message.id === undefined ? undefined : this.#left?.get(message.id)
    if (method === undefined) return
    this.#left!.delete(message.id!)
    if (message._tag === "Success") this.#host.late?.(method, message.result as JsonRpc.JsonObject)
  }

  /** Something that looked like an answer but is none. */
  refuse(invalid: JsonRpc.Invalid): void {
    const call = invalid.id === undefined ? undefined : this.#pending.get(invalid.id)
    if (call === undefined) return
    this.#remove(call.id)
    const message = `The answer to ${call.method} is not valid: ${invalid.error.message}`
    call.resume(Effect.fail(new RequestError({ reason: new InvalidResponse({ message }), method: call.method })))
  }

  /** The transport says that a request will not be answered. */
  fail(id: JsonRpc.Id, cause: TransportError): void {
    const call = this.#pending.get(id)
    if (call === undefined) return
    this.#remove(call.id)
    const { message, undelivered } = cause
    const reason = cause.reason._tag === "MessageRejected"
      ? new MessageRejected({ message, cause })
      : new Closed({ message, cause })
    call.resume(Effect.fail(new RequestError({ reason, method: call.method, undelivered })))
  }

  /** Hands a notification to the call whose subscription it belongs to, if there is one. */
  notice(notification: JsonRpc.Notification): void {
    const meta = notification.params?.["_meta"]
    if (!JsonRpc.isObject(meta)) return
    const call = this.#pending.get(meta[subscriptionId] as JsonRpc.Id)
    if (call?.onNotification === undefined) return
    try {
      call.onNotification(notification)
    } catch (defect) {
      this.#host.fork(Effect.logError(`${notification.method} was not handled`, Cause.die(defect)))
    }
  }

  /**
   * Progress came: it must belong to a waiting call that asked for it, and grow. It pushes the deadline back. Gives whether a call
   * waits that it belongs to.
   */
  progress(params: JsonRpc.JsonObject): boolean {
    const call = this.#pending.get(params["progressToken"] as JsonRpc.Id)
    if (call === undefined) return false
    const report = readProgress(params)
    if (call.onProgress === undefined || report === undefined || report.progress <= call.progress) return true
    call.progress = report.progress
    const now = this.#host.now()
    call.deadline = Math.min(now + call.timeout, call.startedAt + call.maxTimeout)
    try {
      call.onProgress(report)
    } catch (defect) {
      this.#host.fork(Effect.logError(`The progress of ${call.method} was not handled`, Cause.die(defect)))
    }
    return true
  }

  /**
   * The other side says that a request of this side's is over. It may say so of a subscription only (2026-07-28: a server
   * sends it when it tears one down); of any other request it is ignored.
   */
  revoke(requestId: unknown): void {
    const call = this.#pending.get(requestId as JsonRpc.Id)
    if (call === undefined || call.method !== "subscriptions/listen") return
    this.#remove(call.id)
    const message = `The other side has ended ${call.method}`
    call.resume(Effect.fail(new RequestError({ reason: new Closed({ message }), method: call.method })))
  }

  /** Starts the timeouts anew: the other side was waiting for this one. */
  postpone(): void {
    const now = this.#host.now()
    for (const call of this.#pending.values()) {
      call.deadline = Math.min(Math.max(call.deadline, now + call.timeout), call.startedAt + call.maxTimeout)
    }
  }

  /** Fails whatever waits. */
  end(end: SessionEnd): void {
    const calls = [...this.#pending.values()]
    this.#pending.clear()
    this.#timer?.interruptUnsafe()
    this.#timer = undefined
    this.#wakeAt = Infinity
    for (const { method, resume } of calls) resume(Effect.fail(closed(method, end)))
  }

  #remove(id: number): boolean {
    const removed = this.#pending.delete(id)
    if (removed && this.#pending.size === 0) this.#host.quiet()
    return removed
  }

  #cancel(call: Call, reason: string): void {
    // "The `initialize` request MUST NOT be cancelled by clients"
    if (call.method === "initialize") return
    const params = { requestId: call.id, reason }
    if (this.#host.late !== undefined) {
      const left = this.#left ??= new Map()
      left.set(call.id, call.method)
      if (left.size > maxLeft) left.delete(left.keys().next().value!)
    }
    this.#host.send(JsonRpc.notification("notifications/cancelled", params), call.about)
  }

  /** Makes sure that the timer wakes at the deadline or before. */
  #arm(deadline: number): void {
    if (deadline >= this.#wakeAt) return
    this.#timer?.interruptUnsafe()
    const now = this.#host.now()
    this.#wakeAt = Math.min(deadline, now + maxSleep)
    const wait = Duration.millis(this.#wakeAt - now)
    this.#timer = this.#host.fork(Effect.andThen(Effect.sleep(wait), Effect.sync(() => this.#sweep())))
  }

  #sweep(): void {
    this.#timer = undefined
    this.#wakeAt = Infinity
    const now = this.#host.now()
    let next = Infinity
    if (this.#host.held) this.postpone()
    for (const call of [...this.#pending.values()]) {
      if (call.deadline > now) {
        next = Math.min(next, call.deadline)
        continue
      }
      // An earlier one's end may have ended this one.
      if (!this.#remove(call.id)) continue
      const message = `No answer to ${call.method} within ${now - call.startedAt} ms`
      this.#cancel(call, message)
      const error = new RequestError({
        reason: new Timeout({ message: `${message} (${bound(call)})` }),
        method: call.method
      })
      call.resume(Effect.fail(error))
    }
    if (this.#pending.size > 0 && next !== Infinity) this.#arm(next)
  }
}

/** `undelivered` where it was over before anything was sent. */
export const closed = (method: string, end: SessionEnd, undelivered?: boolean): RequestError => {
  const message = `The connection ended before ${method} was ${undelivered === true ? "sent" : "answered"}`
  return new RequestError({ reason: new Closed({ message, end }), method, undelivered })
}

const withProgressToken = (params: JsonRpc.JsonObject | undefined, progressToken: number): JsonRpc.JsonObject => ({
  ...params,
  _meta: { ...(params?.["_meta"] as JsonRpc.JsonObject | undefined), progressToken }
})
