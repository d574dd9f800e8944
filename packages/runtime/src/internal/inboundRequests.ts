/**
 * The requests of the other side that are being handled on one connection.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import type * as Revision from "@skein/protocol/Revision"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import type { Connection, Origin } from "../Connection.ts"
import {
  type Answer,
  type Caller,
  type CallOptions,
  type Dispatcher,
  McpRequest,
  type Owner,
  type Refusal,
  RequestContext
} from "../RequestContext.ts"
import type { Resolved } from "../Limits.ts"
import type { BatchReply } from "./batch.ts"
import type { CallResult } from "./outboundCalls.ts"
import { guard } from "./guard.ts"
import { targetOf } from "./target.ts"

/** What the requests need of their peer. */
export interface Host {
  /** Milliseconds of the monotonic clock. */
  readonly now: () => number
  /** The revision in which what cannot be attributed to a caller is answered. */
  readonly revision: Revision.Revision
  /** Whether nothing may go on any more; and whether that is so because this side stops. */
  readonly over: boolean
  readonly stopping: boolean
  readonly log: (effect: Effect.Effect<void>) => void
  readonly identify: (request: JsonRpc.Request, origin: Origin | undefined) => Caller | Refusal
  readonly call: (
    about: JsonRpc.Id,
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions | undefined
  ) => CallResult
  /** The number of suspended or waiting requests has changed. */
  readonly counted: () => void
  /** Runs what starts requests: the session does not end in the middle of it. */
  readonly starting: (start: () => void) => void
}

/** A request that waits for another one to end. */
interface Waiting {
  readonly request: JsonRpc.Request
  readonly batch: BatchReply | undefined
  readonly origin: Origin | undefined
}

/** "The receiver MUST respond promptly": a ping waits for nothing, and takes no room. */
const urgent = ({ method }: JsonRpc.Request): boolean => method === "ping"

const none: Iterable<never> = []

export class Requests<R> implements Owner {
  readonly #host: Host
  readonly #connection: Connection
  readonly #dispatcher: { readonly dispatch: Dispatcher<R | McpRequest> }
  readonly #context: Context.Context<R>
  readonly #maxInFlightRequests: number
  readonly #maxQueued: number
  #queue: Map<JsonRpc.Id, Waiting> | undefined = undefined
  #exchanges: Map<JsonRpc.Id, RequestContext> | undefined = undefined
  #batches: Map<RequestContext, BatchReply> | undefined = undefined

  constructor(
    host: Host,
    connection: Connection,
    dispatcher: { readonly dispatch: Dispatcher<R | McpRequest> },
    context: Context.Context<R>,
    { maxInFlightRequests, maxQueuedRequests: maxQueued }: Resolved
  ) {
    this.#host = host
    this.#connection = connection
    this.#dispatcher = dispatcher
    this.#context = context
    this.#maxInFlightRequests = maxInFlightRequests
    this.#maxQueued = maxQueued
  }

  /** The suspended ones, oldest first. */
  get exchanges(): Iterable<RequestContext> {
    return this.#exchanges?.values() ?? none
  }

  get size(): number {
    return this.#exchanges?.size ?? 0
  }

  /** How many wait for another one to end. */
  get queued(): number {
    return this.#queue?.size ?? 0
  }

  /** Whether there is no room for another one, not even to wait. */
  get full(): boolean {
    return this.#busy && this.queued >= this.#maxQueued
  }

  get #busy(): boolean {
    return this.size >= this.#maxInFlightRequests
  }

  /** Handles a request, keeps it until there is room, or refuses it. */
  receive(request: JsonRpc.Request, batch: BatchReply | undefined, origin: Origin | undefined): void {
    if (this.#exchanges === undefined) return this.#start(request, batch, origin)
    const refusal = this.#refusal(request)
    if (refusal !== undefined) return this.#refuse(request, refusal, batch)
    if (!this.#busy || urgent(request)) return this.#start(request, batch, origin)
    ;(this.#queue ??= new Map()).set(request.id, { request, batch, origin })
    if (this.full) this.#host.counted()
  }

  /** Forgets those that wait: the session is over. */
  clear(): void {
    const waiting = [...this.#queue?.values() ?? none]
    this.#queue?.clear()
    for (const { batch, request } of waiting) this.forget(request.id, batch)
  }

  #start(request: JsonRpc.Request, batch: BatchReply | undefined, origin: Origin | undefined): void {
    const caller = this.#identify(request, origin)
    if ("error" in caller) return this.#refuse(request, caller, batch)
    const exchange = new RequestContext(this, request, caller, origin)
    if (batch !== undefined) (this.#batches ??= new Map()).set(exchange, batch)
    exchange.start()
  }

  /** Answers, or adds to the answers of a batch. May throw what `JsonRpc.encode` throws, and then nothing was sent. */
  reply(message: JsonRpc.Success | JsonRpc.Failure, batch: BatchReply | undefined): void {
    if (batch === undefined) return void this.#connection.send(message, message.id)
    // Encoded here, so that one answer that has no JSON form does not cost the others theirs.
    JsonRpc.encode(message)
    batch.add(message)
  }

  /** The other side wants no answer to a request any more. Answers whether there is such a request. */
  cancel(id: JsonRpc.Id, reason: unknown): boolean {
    const exchange = this.#exchanges?.get(id)
    if (exchange === undefined) return this.#withdraw(id)
    // "The `initialize` request MUST NOT be cancelled by clients"
    if (exchange.method === "initialize" || exchange.cancelled) return true
    exchange.cancel()
    // "Both parties SHOULD log cancellation reasons for debugging"
    if (typeof reason === "string") {
      this.#host.log(
        Effect.logDebug(`${quoted(exchange.method)} was cancelled: ${quoted(reason)}`)
      )
    }
    return true
  }

  /** The same for one that has not been started. */
  #withdraw(id: JsonRpc.Id): boolean {
    const waiting = this.#queue?.get(id)
    if (waiting === undefined) return false
    if (waiting.request.method === "initialize") return true
    this.#queue!.delete(id)
    this.forget(id, waiting.batch)
    this.#host.counted()
    return true
  }

  /** There may be room for some that wait. */
  #next(): void {
    if (this.queued === 0 || this.#busy || this.#host.over) return
    this.#host.starting(() => {
      for (const [id, { batch, origin, request }] of this.#queue!) {
        if (this.#busy || this.#host.over) return
        this.#queue!.delete(id)
        this.#start(request, batch, origin)
      }
    })
  }

  #refusal(request: JsonRpc.Request): Refusal | undefined {
    const { revision } = this.#host
    if (this.#exchanges!.has(request.id) || this.#queue?.has(request.id) === true) {
      return { error: McpError.invalidRequest("A request with this id is in flight already"), revision }
    }
    if (!this.full || urgent(request)) return undefined
    const message = `Too many requests: at most ${this.#maxInFlightRequests} in flight and ${this.#maxQueued} that wait`
    return { error: new McpError.McpError({ reason: "InternalError", message }), revision }
  }

  #identify(request: JsonRpc.Request, origin: Origin | undefined): Caller | Refusal {
    try {
      return this.#host.identify(request, origin)
    } catch (defect) {
      return { error: this.#internal(request, defect), revision: this.#host.revision }
    }
  }

  #refuse(request: JsonRpc.Request, { error, revision }: Refusal, batch: BatchReply | undefined): void {
    try {
      this.reply(JsonRpc.failure(request.id, McpError.toErrorObject(error, revision)), batch)
    } catch (defect) {
      const internal = McpError.toErrorObject(this.#internal(request, defect), revision)
      this.reply(JsonRpc.failure(request.id, internal), batch)
    }
  }

  #internal(request: JsonRpc.Request, defect: unknown): McpError.McpError {
    const reference = globalThis.crypto.randomUUID()
    this.#log(request, Cause.die(defect), reference)
    return McpError.internal(reference)
  }

  #log(
    { method, params }: Pick<JsonRpc.Request, "method" | "params">,
    cause: Cause.Cause<unknown>,
    reference: string
  ): void {
    const target = targetOf(params)
    const named = target === undefined
      ? quoted(method)
      : `${quoted(method)} ${JSON.stringify(target.slice(0, maxQuote))}`
    this.#host.log(Effect.logError(`${named} failed, reference ${reference}`, cause))
  }

  // ---- what an exchange needs

  run(
    exchange: RequestContext,
    instead?: Effect.Effect<Answer, McpError.McpError>
  ): Fiber.Fiber<Answer, McpError.McpError> {
    const effect = instead ?? guard(() => this.#dispatcher.dispatch(exchange))
    const brought = exchange.origin?.context
    const context = brought === undefined ? this.#context : Context.merge(brought, this.#context)
    return Effect.runForkWith(Context.add(context, McpRequest, exchange))(effect)
  }

  answer(exchange: RequestContext, message: JsonRpc.Success | JsonRpc.Failure): void {
    const batch = this.#batches?.get(exchange)
    this.reply(message, batch)
    if (batch !== undefined) this.#batches!.delete(exchange)
  }

  say(exchange: RequestContext, method: string, params: JsonRpc.JsonObject): boolean {
    return this.#connection.send(JsonRpc.notification(method, params), exchange.id)
  }

  drained(exchange: RequestContext): Effect.Effect<void> {
    return this.#connection.drainedAbout?.(exchange.id) ?? this.#connection.drained
  }

  ask(
    exchange: RequestContext,
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions | undefined
  ): CallResult {
    return this.#host.call(exchange.id, method, params, options)
  }

  drop(exchange: RequestContext): void {
    const batch = this.#batches?.get(exchange)
    this.#batches?.delete(exchange)
    this.forget(exchange.id, batch)
  }

  /** Nothing more will be said about a request. */
  forget(id: JsonRpc.Id, batch: BatchReply | undefined): void {
    batch?.drop()
    this.#connection.discardRequest?.(id)
  }

  detach(exchange: RequestContext, retry: number | undefined): void {
    this.#connection.endStream?.(exchange.id, retry)
  }

  suspended(exchange: RequestContext): void {
    exchange.startedAt = this.#host.now()
    ;(this.#exchanges ??= new Map()).set(exchange.id, exchange)
    if (this.full) this.#host.counted()
    // Its handler has ended the session before it suspended.
    if (this.#host.over) exchange.cancel(this.#host.stopping)
  }

  resumed(exchange: RequestContext): void {
    this.#exchanges!.delete(exchange.id)
    this.#next()
    this.#host.counted()
  }

  defect(exchange: RequestContext, cause: Cause.Cause<unknown>, reference: string): void {
    this.#log(exchange, cause, reference)
  }
}

// What the other side gives as a name or a reason is logged up to this many characters.
const maxQuote = 256

/** A text of the other side's in a line of the log, cut short, and quoted where it could look like another line. */
const quoted = (text: string): string => {
  const cut = text.slice(0, maxQuote)
  return /^[\x20-\x7e]*$/.test(cut) ? cut : JSON.stringify(cut)
}
