/**
 * One inbound request, from its arrival to its response: the same for requests of a session and for stateless requests.
 *
 * A request has two sides. The `RequestContext` is a value: its handler and middleware read it, and derive others from
 * it with `with`. The `Exchange` is the one mutable object of a request in flight, and belongs to the code that runs
 * it: a `RequestRunner` runs it, and a `ResponseSink` takes its response. All contexts of a request share its exchange.
 *
 * A handler that does not suspend is run and answered synchronously, and costs no timer, no map entry and no scope:
 * members that only a suspended request needs are created when it suspends.
 */
import * as Conventions from "@skein/protocol/Conventions"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import type * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { Origin } from "./Connection.ts"
import { Closed, RequestError, Unsupported } from "./RequestError.ts"
import type {
  Caller,
  CallOptions,
  CallResult,
  Progress,
  Round,
  RunningStep,
  SessionPeer
} from "./internal/request/callTypes.ts"

export type * from "./internal/request/callTypes.ts"

/** The result of a dispatcher: an object, or a result that is JSON text already. */
export type Answer = JsonRpc.Success["result"]

/** Handles any request of a session or any stateless request, and returns its result. */
export type Dispatcher<R = never> = (request: RequestContext) => Effect.Effect<Answer, McpError.McpError, R>

/** The request that is being handled. Provided to every handler. */
export class McpRequest extends Context.Service<McpRequest, RequestContext>()("@skein/runtime/McpRequest") {}

/** Takes the messages about a request. One implementation per kind of transport: sessions, and stateless requests. */
export interface ResponseSink {
  /** The peer of the session that the requests belong to; undefined for stateless requests. */
  readonly peer?: SessionPeer | undefined
  /** Sends the response. May throw what `JsonRpc.encode` throws; then nothing was sent. */
  readonly respond: (exchange: Exchange, message: JsonRpc.Success | JsonRpc.Failure) => void
  /** The request was cancelled and is over: no response will follow. */
  readonly discard: (exchange: Exchange) => void
  /** Sends a notification about the request. Returns `false` while the client is slow: wait for `drained`. */
  readonly notify: (exchange: Exchange, method: string, params: JsonRpc.JsonObject) => boolean
  /** Succeeds when the client takes more messages about the request, or has disconnected. */
  readonly drained: (exchange: Exchange) => Effect.Effect<void>
  /** Sends a request about the request, in a session. A sink of stateless requests has none: see {@link Round}. */
  readonly sendRequest?:
    | ((
      exchange: Exchange,
      method: string,
      params: JsonRpc.JsonObject | undefined,
      options: CallOptions | undefined
    ) => CallResult)
    | undefined
  /**
   * Closes the HTTP connection that waits for the response, but not the request. Only transports with polling have it.
   */
  readonly endStream?: ((exchange: Exchange, retry: number | undefined) => void) | undefined
  /** Whether a stream is open that the response will be sent on. Only `Inspect` asks. */
  readonly isStreaming?: ((exchange: Exchange) => boolean) | undefined
  /** The handler did not end synchronously. */
  readonly suspended?: ((exchange: Exchange) => void) | undefined
  /** A request that was suspended is over, and its response was sent or discarded. */
  readonly ended?: ((exchange: Exchange) => void) | undefined
}

const progressTokenOf = (params: JsonRpc.JsonObject | undefined): JsonRpc.Id | undefined => {
  const meta = params?.["_meta"]
  const token = JsonRpc.isObject(meta) ? meta["progressToken"] : undefined
  return JsonRpc.isId(token) ? token : undefined
}

// How long a person may take to answer an input request that names no timeout. `docs/limits.md` has it as `timeout`.
const timeout = "10 minutes"

/** Why `method` is not sent to the client: the request that is handled cannot be answered with requests to it. */
export const unavailable = ({ caller, method: handled }: RequestContext, method: string): string =>
  `requests to the client are not available while handling ${handled} in ${caller.revision}: ${method} was not sent`

/**
 * The states of a request. `Running`: its handler runs. `Replacing`: its handler was interrupted by `replaceWith`, and
 * the replacement gives the response. `Done`: the response was sent or discarded.
 */
export type State = "Running" | "Replacing" | "Done"

/**
 * One request in flight: its state, and what the code that runs it needs. Handlers and middleware have the
 * `RequestContext` instead.
 */
export class Exchange {
  readonly id: JsonRpc.Id
  /** The headers, principal and services that the transport supplies with the request. */
  readonly origin: Origin | undefined
  /** Takes the messages about the request. */
  readonly sink: ResponseSink
  /** The request as its sender sent it. */
  readonly received: RequestContext
  /**
   * How many bytes the handler retains for the request, after `dropParams`. Before that, it is the memory of the
   * params.
   */
  retainedBytes: number | undefined = undefined
  /**
   * Starts a round of input requests. The dispatcher of a server sets it where a stateless method may request input.
   */
  rounds: ((exchange: Exchange) => Round) | undefined = undefined
  /** The round, once it was needed. */
  round: Round | undefined = undefined
  /** The steps that the handler of a task executes now, for snapshots. Set by the engine of the task. */
  runningSteps: (() => Iterable<RunningStep>) | undefined = undefined
  /** The span of the call that created a task, as W3C `traceparent`. Set by the engine of the task. */
  traceparent: string | undefined = undefined
  /** Asks a request without an end of its own (`subscriptions/listen`) to return its result: this side shuts down. */
  release: (() => void) | undefined = undefined
  /** When the handler suspended, in milliseconds of the monotonic clock; undefined if it did not. */
  startedAt: number | undefined = undefined
  /** Whether a handler has requested input of the client for it. */
  hasAsked = false
  /** Called when a handler first requests input of the client for it. */
  onAsk: (() => void) | undefined = undefined
  /** The last progress that was reported. */
  lastProgress: Progress | undefined = undefined
  /** Whether the handler runs, its replacement does, or the request is over. Set by the runner. */
  state: State = "Running"
  #replacement: Effect.Effect<Answer, McpError.McpError> | undefined = undefined
  /** The fiber that handles the request, while it is suspended. Set by the runner. */
  fiber: Fiber.Fiber<Answer, McpError.McpError> | undefined = undefined
  /** Whether the request was cancelled: see `RequestContext.cancelled`. Set by `cancel`. */
  cancelled = false
  /** Whether the request was cancelled because this side stops: see `RequestContext.stopped`. Set by `cancel`. */
  stopped = false

  /** `receive` makes the context of a request whose handler has one of another class. */
  constructor(
    sink: ResponseSink,
    request: JsonRpc.Request,
    caller: Caller,
    origin?: Origin,
    receive?: (exchange: Exchange) => RequestContext
  ) {
    this.sink = sink
    this.id = request.id
    this.origin = origin
    this.received = receive === undefined
      ? new RequestContext(this, request.method, request.params, caller)
      : receive(this)
  }

  get method(): string {
    return this.received.method
  }

  /** The params as they were received; undefined after `dropParams`. */
  get params(): JsonRpc.JsonObject | undefined {
    return this.received.params
  }

  get caller(): Caller {
    return this.received.caller
  }

  /** The tool, prompt or resource that the params name, if they name one. */
  get target(): string | undefined {
    return this.received.target
  }

  /** Whether the request is over. */
  get finished(): boolean {
    return this.state === "Done"
  }

  /** The round, which starts when it is first needed; undefined if the request has none. */
  startRound(): Round | undefined {
    return this.round ??= this.rounds?.(this)
  }

  /** Records that input of the client is requested for it. */
  markAsked(): void {
    if (this.hasAsked) return
    this.hasAsked = true
    this.onAsk?.()
  }

  /**
   * Drops the params of a context of the request, and of those that it was derived from: a handler without an end of
   * its own (`subscriptions/listen`) has read them, and retains this many bytes for the request.
   */
  dropParams(request: RequestContext, retainedBytes: number): void {
    this.retainedBytes = retainedBytes
    for (let each: RequestContext | undefined = request; each !== undefined; each = each.source) {
      ;(each as { params: JsonRpc.JsonObject | undefined }).params = undefined
    }
  }

  /**
   * Interrupts the handler and sends no response: the request was cancelled, its sender has disconnected, or this side
   * is `stopping`.
   */
  cancel(stopping = false): void {
    if (this.cancelled || this.finished) return
    this.cancelled = true
    this.stopped = stopping
    this.fiber?.interruptUnsafe()
  }

  /**
   * Interrupts the handler, and answers with the result of `effect` once the handler has ended, finalizers included. A
   * handler that ends with a result or an error of its own all the same is answered with that, and a cancelled request
   * is not answered.
   *
   * A server that needs input from a stateless client answers so: the input requests replace the result of the handler.
   */
  replaceWith(effect: Effect.Effect<Answer, McpError.McpError>): void {
    if (this.state !== "Running" || this.cancelled) return
    this.state = "Replacing"
    this.#replacement = effect
    this.fiber?.interruptUnsafe()
  }

  /** The handler has suspended. */
  suspend(fiber: Fiber.Fiber<Answer, McpError.McpError>, now: number): void {
    this.fiber = fiber
    this.startedAt = now
    this.sink.suspended?.(this)
  }

  /**
   * The effect to run after the handler has ended with this exit; undefined if the exit is the outcome of the request.
   */
  takeReplacement(exit: Exit.Exit<Answer, McpError.McpError>): Effect.Effect<Answer, McpError.McpError> | undefined {
    const replacement = this.#replacement
    this.#replacement = undefined
    return !this.cancelled && Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? replacement : undefined
  }
}

/** The members in which a derived request differs: see `RequestContext.with`. */
export interface Change {
  readonly method?: string
  readonly params?: JsonRpc.JsonObject | undefined
  readonly caller?: Caller
  /** The round of its input requests. Derived requests inherit it. */
  readonly round?: Round | undefined
  /** Runs around each request to the client. Derived requests inherit it. */
  readonly aroundInput?: ((result: CallResult) => CallResult) | undefined
}

/** The members of a derived request besides its method, its params and its caller. */
export interface Derivation extends Pick<Change, "round" | "aroundInput"> {
  readonly source: RequestContext
}

/** A request, as its handler and middleware see it. */
export class RequestContext {
  /** The request in flight, for the code that runs it. A handler has no use for it. */
  readonly exchange: Exchange
  readonly method: string
  readonly params: JsonRpc.JsonObject | undefined
  readonly caller: Caller
  readonly #derivation: Derivation | undefined

  constructor(
    exchange: Exchange,
    method: string,
    params: JsonRpc.JsonObject | undefined,
    caller: Caller,
    derivation?: Derivation
  ) {
    this.exchange = exchange
    this.method = method
    this.params = params
    this.caller = caller
    this.#derivation = derivation
  }

  /**
   * Returns the same request with other members, for a middleware. Everything else is that of the request that was
   * received: its progress, its input requests, its cancellation and its response.
   */
  with(change: Change): RequestContext {
    const { aroundInput, caller = this.caller, method = this.method, round } = change
    return this.derive(method, "params" in change ? change.params : this.params, caller, {
      source: this,
      round: round ?? this.#derivation?.round,
      aroundInput: aroundInput ?? this.#derivation?.aroundInput
    })
  }

  /** Makes a derived request. A subclass returns one of its own class. */
  protected derive(
    method: string,
    params: JsonRpc.JsonObject | undefined,
    caller: Caller,
    derivation: Derivation
  ): RequestContext {
    return new RequestContext(this.exchange, method, params, caller, derivation)
  }

  get id(): JsonRpc.Id {
    return this.exchange.id
  }

  /** The headers, principal and services that the transport supplies with the request. */
  get origin(): Origin | undefined {
    return this.exchange.origin
  }

  /** The request as its sender sent it. It differs from the request itself after `with`. */
  get original(): RequestContext {
    return this.exchange.received
  }

  /** The request that this one was derived from; undefined for the request that was received. */
  get source(): RequestContext | undefined {
    return this.#derivation?.source
  }

  /** The peer of the session that the request belongs to; undefined for a stateless request over HTTP. */
  get peer(): SessionPeer | undefined {
    return this.exchange.sink.peer
  }

  /** The tool, prompt or resource that the params name, if they name one. */
  get target(): string | undefined {
    return Conventions.targetOf(this.method, this.params)
  }

  /** Whether an input request may name who answers it (`CallOptions.to`): the requests of tasks are stored for others. */
  get asksOthers(): boolean {
    return false
  }

  /** How long a person may take to answer an input request that names no timeout: ten minutes. */
  get inputTimeout(): Duration.Input | undefined {
    return timeout
  }

  /** Whether the request is over. */
  get finished(): boolean {
    return this.exchange.finished
  }

  /**
   * Whether the request was cancelled by its sender, or because this side stops. After that, nothing is sent about it.
   */
  get cancelled(): boolean {
    return this.exchange.cancelled
  }

  /**
   * Whether the request was cancelled because this side stops. The sender may still want the result, so work that does
   * not need the request may continue elsewhere.
   */
  get stopped(): boolean {
    return this.exchange.stopped
  }

  /** The round of input requests, which starts when it is first needed; undefined if the request has none. */
  startRound(): Round | undefined {
    return this.#derivation?.round ?? this.exchange.startRound()
  }

  /**
   * Reports progress to the client, if the request has a progress token (`notifications/progress`).
   *
   * Does nothing without a token, when the value is not greater than the last one, and after the end. A `total` that is
   * not finite is left out. Waits while the client is slow to read, which limits the rate.
   */
  progress(progress: Progress): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { exchange } = this
      if (!(Number.isFinite(progress.progress) && progress.progress > (exchange.lastProgress?.progress ?? -Infinity))) {
        return Effect.void
      }
      if (exchange.finished || exchange.cancelled) return Effect.void
      exchange.lastProgress = progress
      const progressToken = progressTokenOf(exchange.params)
      if (progressToken === undefined) return Effect.void
      const { progress: value, total, message } = progress
      return this.notify("notifications/progress", {
        progressToken,
        progress: value,
        ...(Number.isFinite(total) ? { total } : undefined),
        ...(message === undefined || this.caller.revision === "2024-11-05" ? undefined : { message })
      })
    })
  }

  /**
   * Sends a notification that belongs to this request. Nothing is sent after the end. Waits while the client is slow to
   * read. Parameters without JSON form are a defect.
   */
  notify(method: string, params: JsonRpc.JsonObject): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { exchange } = this
      if (exchange.finished || exchange.cancelled) return Effect.void
      return exchange.sink.notify(exchange, method, params) ? Effect.void : exchange.sink.drained(exchange)
    })
  }

  /**
   * Sends a request to the client on behalf of this request. In a session that is a request on the stream of this one;
   * in a stateless revision it travels in the result of this request, and the handler runs again with the response. It
   * fails with `RequestError` `Unsupported` where this request cannot be answered with input requests, and with
   * `Closed` after its end.
   */
  request(method: string, params?: JsonRpc.JsonObject, options?: CallOptions): CallResult {
    const result = Effect.suspend(() => this.#send(method, params, options))
    const aroundInput = this.#derivation?.aroundInput
    return aroundInput === undefined ? result : aroundInput(result)
  }

  #send(method: string, params: JsonRpc.JsonObject | undefined, options: CallOptions | undefined): CallResult {
    const { exchange } = this
    if (exchange.finished || exchange.cancelled) {
      const message = `${exchange.method} has ended: ${method} was not sent`
      return Effect.fail(new RequestError({ reason: new Closed({ message }), method }))
    }
    const { sink } = exchange
    if (Revision.era(this.caller.revision) === "session" && sink.sendRequest !== undefined) {
      exchange.markAsked()
      return sink.sendRequest(exchange, method, params, options)
    }
    const round = exchange.rounds === undefined ? undefined : this.startRound()
    if (round !== undefined) {
      exchange.markAsked()
      return round.ask(method, params, options)
    }
    return Effect.fail(new RequestError({ reason: new Unsupported({ message: unavailable(this, method) }), method }))
  }

  /**
   * Closes the HTTP connection on which the client waits, but not the request: the client reconnects for the rest,
   * after `retry` milliseconds (2025-11-25, transports: polling). Does nothing on other transports and in other
   * revisions.
   */
  disconnect(retry?: number): Effect.Effect<void> {
    return Effect.sync(() => {
      const { exchange } = this
      if (!exchange.finished && !exchange.cancelled) exchange.sink.endStream?.(exchange, retry)
    })
  }
}
