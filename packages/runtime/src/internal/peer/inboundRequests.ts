/**
 * The inbound traffic of one connection: the requests that are being handled or queued, the answers to batches, and the
 * notifications whose handlers are running.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import { logValue } from "@skein/protocol/Text"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Origin } from "../../Connection.ts"
import { maxBatchMessages } from "../../Limits.ts"
import {
  type Caller,
  type CallOptions,
  type CallResult,
  Exchange,
  type Refusal,
  type ResponseSink
} from "../../RequestContext.ts"
import type { RequestRunner } from "../../RequestRunner.ts"
import type { Session } from "../../Session.ts"
import type { PeerCore } from "./outboundCalls.ts"

/** Finds the caller of a request, or the reason to refuse it. It changes nothing. */
export type Identify = (
  request: JsonRpc.Request,
  session: Session | undefined,
  origin: Origin | undefined
) => Caller | Refusal

type Reply = JsonRpc.Success | JsonRpc.Failure

/** The replies to one batch (2025-03-26): sent together after the last one, or not at all if there are none. */
class BatchReply {
  readonly #send: (batch: JsonRpc.Batch) => void
  readonly #texts: Array<string> = []
  // The number of missing replies, plus one until the whole batch has been read.
  #missing = 1

  /** The number of messages in the batch. */
  readonly length: number

  constructor(length: number, send: (batch: JsonRpc.Batch) => void) {
    this.length = length
    this.#send = send
  }

  /** Counts one more expected reply. */
  expect(): this {
    this.#missing++
    return this
  }

  /**
   * Adds a reply, and returns its length, or throws what `JsonRpc.encode` throws. It is encoded here, so that one bad
   * reply does not affect the others.
   */
  add(reply: Reply): number {
    const text = JsonRpc.encode(reply)
    this.#texts.push(text)
    this.settle()
    return text.length
  }

  /** Counts a reply that was added or will never come. Sends the batch after the last one. */
  settle(): void {
    if (--this.#missing > 0 || this.#texts.length === 0) return
    this.#send({ _tag: "Batch", members: [], texts: this.#texts })
  }

  /** Whether replies are missing. */
  get isIncomplete(): boolean {
    return this.#missing > 0
  }
}

/** A request that waits until another one ends. */
interface Queued {
  readonly request: JsonRpc.Request
  readonly batch: BatchReply | undefined
  readonly origin: Origin | undefined
}

/** "The receiver MUST respond promptly": a ping is never queued, and does not count. */
const isUrgent = ({ method }: JsonRpc.Request): boolean => method === "ping"

const isReplied = (message: JsonRpc.Message | JsonRpc.Invalid): message is JsonRpc.Invalid =>
  message._tag === "Invalid" && !message.answer && message.notification !== true

const none: Iterable<never> = []

// Smaller messages are not counted in `maxInFlightBytes`: the number of requests bounds them.
const minLargeBytes = 16 * 1024

/** The requests of one connection, from their arrival to the response. It is the sink of their responses. */
export class InboundRequests<R> implements ResponseSink {
  readonly peer: PeerCore
  readonly #runner: RequestRunner<R>
  readonly #identify: { readonly identify: Identify }
  #queue: Map<JsonRpc.Id, Queued> | undefined = undefined
  #suspended: Map<JsonRpc.Id, Exchange> | undefined = undefined
  // The suspended requests of sessions that another one has replaced: their ids may be used again.
  #earlier: Set<Exchange> | undefined = undefined
  // The sizes of large messages whose requests are suspended or queued, and their sum.
  #large: Map<Exchange | Queued, number> | undefined = undefined
  #largeBytes = 0
  #batches: Map<Exchange, BatchReply> | undefined = undefined
  // The number of requests and notifications whose handlers have started and not suspended yet. The session does not
  // end meanwhile.
  #starting = 0

  constructor(peer: PeerCore, runner: RequestRunner<R>, identify: { readonly identify: Identify }) {
    this.peer = peer
    this.#runner = runner
    this.#identify = identify
  }

  /** The suspended requests, oldest first. */
  get suspendedRequests(): Iterable<Exchange> {
    const suspended = this.#suspended?.values() ?? none
    return this.#earlier === undefined ? suspended : [...this.#earlier, ...suspended]
  }

  /** The number of suspended requests. */
  get size(): number {
    return (this.#suspended?.size ?? 0) + (this.#earlier?.size ?? 0)
  }

  /** The number of requests that wait until another one ends. */
  get queued(): number {
    return this.#queue?.size ?? 0
  }

  /** The requests that wait until another one ends, oldest first. */
  get queuedRequests(): Iterable<JsonRpc.Request> {
    return Array.from(this.#queue?.values() ?? [], ({ request }) => request)
  }

  /** The number of requests that are running, starting or queued. */
  get active(): number {
    return this.#starting + this.size + this.queued
  }

  /** Whether the next request is refused, because the bounds on running and on queued requests are both reached. */
  get #isFull(): boolean {
    return this.#busy && this.queued >= this.peer.limits.maxQueuedRequests
  }

  get #busy(): boolean {
    return this.size >= this.peer.limits.maxInFlightRequests
  }

  /** Runs code that starts handlers. The session does not end before they have suspended. */
  starting(start: () => void): void {
    this.#starting++
    start()
    this.#starting--
    this.peer.settle()
  }

  /** Handles a request, queues it, or refuses it. */
  receive(request: JsonRpc.Request, origin: Origin | undefined, batch?: BatchReply): void {
    if (this.peer.isEnded) return this.#discard(request.id, batch)
    this.#starting++
    const isIdle = this.#suspended === undefined && this.peer.connection.isOutputFull !== true
    if (isIdle || this.#mayStart(request, origin, batch)) this.#start(request, origin, batch)
    this.#starting--
    this.peer.settle()
  }

  /** Whether a request may start now. If not, it was queued or refused. */
  #mayStart(request: JsonRpc.Request, origin: Origin | undefined, batch: BatchReply | undefined): boolean {
    const refusal = this.#refusal(request, origin)
    if (refusal !== undefined) {
      this.#refuse(request, refusal, batch)
      return false
    }
    if (!this.#busy || isUrgent(request)) return true
    const queued: Queued = { request, batch, origin }
    ;(this.#queue ??= new Map()).set(request.id, queued)
    this.#hold(queued, origin, batch)
    return false
  }

  #refusal(request: JsonRpc.Request, origin: Origin | undefined): Refusal | undefined {
    const { limits: { maxInFlightBytes, maxInFlightRequests, maxQueuedRequests }, revision } = this.peer
    if (this.#suspended?.has(request.id) === true || this.#queue?.has(request.id) === true) {
      return { error: McpError.invalidRequest("A request with this id is in flight already"), revision }
    }
    if (isUrgent(request)) return undefined
    const message = this.#isFull
      ? `at most ${maxInFlightRequests} in flight (maxInFlightRequests) and ${maxQueuedRequests} queued (maxQueuedRequests)`
      : this.#largeBytes > 0 && this.#largeBytes + (origin?.size ?? 0) > maxInFlightBytes
      ? `more than ${maxInFlightBytes} bytes in flight (maxInFlightBytes)`
      : this.peer.connection.isOutputFull === true
      ? "the responses to earlier requests have not been read (maxUnsentChars)"
      : undefined
    return message === undefined
      ? undefined
      : {
        error: new McpError.McpError({ reason: "InternalError", message: `Too many requests: ${message}` }),
        revision
      }
  }

  #start(request: JsonRpc.Request, origin: Origin | undefined, batch: BatchReply | undefined): void {
    let caller: Caller | Refusal
    try {
      caller = this.#identify.identify(request, this.peer.session, origin)
    } catch (defect) {
      caller = { error: this.#defect(request, defect), revision: this.peer.revision }
    }
    if ("error" in caller) return this.#refuse(request, caller, batch)
    const exchange = new Exchange(this, request, caller, origin)
    if (batch !== undefined) (this.#batches ??= new Map()).set(exchange, batch)
    this.#runner.start(exchange)
  }

  /** Starts queued requests, as many as may run. */
  #startQueued(): void {
    if (this.queued === 0 || this.#busy || this.peer.isOver) return
    this.starting(() => {
      for (const [id, queued] of this.#queue!) {
        if (this.#busy || this.peer.isOver) return
        this.#queue!.delete(id)
        this.#release(queued)
        const { batch, origin, request } = queued
        this.#start(request, origin, batch)
      }
    })
  }

  /**
   * Handles the requests of a batch, and sends their replies together. `deliver` takes the members that are not
   * answered.
   */
  receiveBatch(
    members: ReadonlyArray<JsonRpc.Message | JsonRpc.Invalid>,
    origin: Origin | undefined,
    deliver: (message: JsonRpc.Message | JsonRpc.Invalid, origin: Origin | undefined) => void
  ): void {
    const { connection, session } = this.peer
    const refused = session?.revision !== "2025-03-26"
      ? "Only revision 2025-03-26 has batches"
      : members.length > maxBatchMessages
      ? `A batch holds at most ${maxBatchMessages} messages`
      : undefined
    if (refused !== undefined) {
      return this.#reply(
        JsonRpc.failure(undefined, { code: -32600, message: `Invalid Request: ${refused}` }),
        undefined
      )
    }
    // Sent as a message about the first request of the batch, so that a transport with several streams can choose one.
    const about = members.find((member) => member._tag === "Request")?.id
    const batch = new BatchReply(members.length, (replies) => void connection.send(replies, about))
    this.starting(() => {
      for (const member of members) {
        if (member._tag === "Request") this.receive(member, origin, batch.expect())
        else if (isReplied(member)) this.replyInvalid(member, batch.expect())
        else deliver(member, origin)
      }
      batch.settle()
    })
  }

  /** Answers a message that could not be read. */
  replyInvalid(invalid: JsonRpc.Invalid, batch?: BatchReply): void {
    this.#reply(JsonRpc.failure(invalid.id, invalid.error), batch)
  }

  /** Counts the bytes of a large message for as long as its request is suspended or queued. */
  #hold(key: Exchange | Queued, origin: Origin | undefined, batch: BatchReply | undefined): void {
    const size = Math.floor((origin?.size ?? 0) / (batch?.length ?? 1))
    if (size < minLargeBytes) return
    ;(this.#large ??= new Map()).set(key, size)
    this.#largeBytes += size
  }

  #release(key: Exchange | Queued): void {
    const size = this.#large?.get(key)
    if (size === undefined) return
    this.#large!.delete(key)
    this.#largeBytes -= size
  }

  /** Another session replaces that of the connection. Its client may use the ids of requests that still run. */
  sessionReplaced(): void {
    if (this.#suspended === undefined) return
    for (const request of this.#suspended.values()) (this.#earlier ??= new Set()).add(request)
    this.#suspended.clear()
  }

  // ---- cancellation

  /** Cancels a request, because its sender asked for it. Returns whether there is such a request. */
  cancel(id: JsonRpc.Id, reason: unknown): boolean {
    const request = this.#suspended?.get(id) ?? this.#earlierOf(id)
    if (request === undefined) return this.#cancelQueued(id)
    // "The `initialize` request MUST NOT be cancelled by clients"
    if (request.method === "initialize" || request.cancelled) return true
    request.cancel()
    // "Both parties SHOULD log cancellation reasons for debugging"
    if (typeof reason === "string") {
      this.#runner.log(Effect.logDebug(`${logValue(request.method)} was cancelled: ${logValue(reason)}`))
    }
    return true
  }

  #earlierOf(id: JsonRpc.Id): Exchange | undefined {
    for (const request of this.#earlier ?? none) if (request.id === id) return request
    return undefined
  }

  #cancelQueued(id: JsonRpc.Id): boolean {
    const queued = this.#queue?.get(id)
    if (queued === undefined) return false
    if (queued.request.method === "initialize") return true
    this.#queue!.delete(id)
    this.#release(queued)
    this.#discard(id, queued.batch)
    this.peer.countChanged()
    return true
  }

  /** Discards the queued requests: the session has ended. */
  discardQueued(): void {
    const all = [...this.#queue?.values() ?? none]
    this.#queue?.clear()
    for (const queued of all) {
      this.#release(queued)
      this.#discard(queued.request.id, queued.batch)
    }
  }

  /** No response to a request will follow. */
  #discard(id: JsonRpc.Id, batch: BatchReply | undefined): void {
    batch?.settle()
    this.peer.connection.discardRequest?.(id)
  }

  // ---- replies

  /**
   * Sends a reply, alone or with those of its batch. May throw what `JsonRpc.encode` throws, and then nothing was sent.
   */
  #reply(message: Reply, batch: BatchReply | undefined): void {
    if (batch === undefined) this.peer.connection.send(message, message.id)
    else batch.add(message)
  }

  #refuse(request: JsonRpc.Request, { error, revision }: Refusal, batch: BatchReply | undefined): void {
    try {
      this.#reply(JsonRpc.failure(request.id, McpError.toErrorObject(error, revision)), batch)
    } catch (defect) {
      const internal = McpError.toErrorObject(this.#defect(request, defect), revision)
      this.#reply(JsonRpc.failure(request.id, internal), batch)
    }
  }

  #defect(request: JsonRpc.Request, defect: unknown): McpError.McpError {
    return this.#runner.defect(request, Cause.die(defect))
  }

  // ---- the sink of the responses

  /** May throw what `JsonRpc.encode` throws, and then nothing was sent. */
  respond(exchange: Exchange, message: Reply): void {
    const batch = this.#batches?.get(exchange)
    if (batch === undefined) return void this.peer.connection.send(message, exchange.id)
    const chars = batch.add(message)
    this.#batches!.delete(exchange)
    if (batch.isIncomplete) this.peer.connection.replyRetained?.(exchange.id, chars)
  }

  discard(exchange: Exchange): void {
    const batch = this.#batches?.get(exchange)
    this.#batches?.delete(exchange)
    this.#discard(exchange.id, batch)
  }

  notify(exchange: Exchange, method: string, params: JsonRpc.JsonObject): boolean {
    return this.peer.connection.send(JsonRpc.notification(method, params), exchange.id)
  }

  drained(exchange: Exchange): Effect.Effect<void> {
    const { connection } = this.peer
    return connection.drainedAbout?.(exchange.id) ?? connection.drained
  }

  sendRequest(
    exchange: Exchange,
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions | undefined
  ): CallResult {
    return this.peer.call(exchange.id, method, params, options)
  }

  endStream(exchange: Exchange, retry: number | undefined): void {
    this.peer.connection.endStream?.(exchange.id, retry)
  }

  suspended(exchange: Exchange): void {
    ;(this.#suspended ??= new Map()).set(exchange.id, exchange)
    this.#hold(exchange, exchange.origin, this.#batches?.get(exchange))
    // The handler ended the session before it suspended.
    if (this.peer.isOver) exchange.cancel(this.peer.isStopping)
  }

  ended(exchange: Exchange): void {
    if (this.#earlier?.delete(exchange) !== true) this.#suspended!.delete(exchange.id)
    this.#release(exchange)
    this.#startQueued()
    this.peer.countChanged()
  }
}

/** The notifications whose handlers have suspended. */
export class RunningNotifications {
  readonly #peer: PeerCore
  /** The methods of those that run, by their fibers. */
  readonly running = new Map<Fiber.Fiber<void>, string>()
  #dropped = 0

  constructor(peer: PeerCore) {
    this.#peer = peer
  }

  /** Whether the next notification is dropped. */
  get full(): boolean {
    return this.running.size >= this.#peer.bounds.maxRunningNotifications
  }

  /** Counts a notification that is dropped because `maxRunningNotifications` are running. The first one is logged. */
  drop(method: string): void {
    if (this.#dropped++ > 0) return
    const { maxRunningNotifications: max } = this.#peer.bounds
    this.#peer.fork(
      Effect.logWarning(`dropped ${logValue(method)}: ${max} notifications are being handled already`)
    )
  }

  /** Adds a handler that did not end synchronously. */
  add(method: string, fiber: Fiber.Fiber<void>): void {
    this.running.set(fiber, method)
    fiber.addObserver(() => {
      this.running.delete(fiber)
      const dropped = this.#dropped
      this.#dropped = 0
      if (dropped > 1) this.#peer.fork(Effect.logWarning(`dropped ${dropped} notifications`))
      this.#peer.countChanged()
    })
  }
}

/** Logs any failure of a notification handler, except an interruption. */
export const logFailure = <R>(method: string, handled: Effect.Effect<void, never, R>): Effect.Effect<void, never, R> =>
  Effect.catchCause(
    handled,
    (cause) =>
      Cause.hasInterruptsOnly(cause) ? Effect.void : Effect.logError(`failed to handle ${logValue(method)}`, cause)
  )
