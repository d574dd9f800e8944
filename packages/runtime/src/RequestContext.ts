/**
 * One request of the other side, from its arrival to its answer: the same in both eras.
 *
 * An exchange is a fiber with a request attached. In the session era it is a child of a `Peer`; in the request era it is the
 * whole of what the server knows. A handler that does not suspend is run and answered at once, and costs no timer, no map
 * entry and no scope; what only a suspended request needs is made when it suspends.
 */
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as Revision from "@skein/protocol/Revision"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import type { Headers, Origin, Principal } from "./Connection.ts"
import { Closed, RequestError, Unsupported } from "./RequestError.ts"

/** What a request says about who asks, or what its session says for it. */
export interface Caller {
  /** The revision that the request is written in, and is answered in. */
  readonly revision: Revision.Revision
  /** Name and version of the client, as it gave them. Not to be trusted. */
  readonly info: JsonRpc.JsonObject | undefined
  /** What the client can do. */
  readonly capabilities: JsonRpc.JsonObject
  /** The least severe level of the log messages that the client wants for this request, where it said so. */
  readonly logLevel?: string | undefined
  /** Who it is, where the host has found it out. */
  readonly principal?: Principal | undefined
}

/** Why a request is refused before it is dispatched, and the revision to say so in. */
export interface Refusal {
  readonly error: McpError.McpError
  readonly revision: Revision.Revision
}

/** How one call is made. */
export interface CallOptions {
  /** How long to wait for the answer, instead of the connection's `timeout`. */
  readonly timeout?: Duration.Input | undefined
  /** How long to wait in all, instead of the connection's `maxTimeout`. */
  readonly maxTimeout?: Duration.Input | undefined
  /**
   * Asks the other side for progress. Each report starts the timeout anew. Called in order, and never after the end. What it
   * throws is logged.
   */
  readonly onProgress?: ((progress: Progress) => void) | undefined
  /** Hears the notifications of the subscription that the request opens (`subscriptions/listen`). What it throws is logged. */
  readonly onNotification?: ((notification: JsonRpc.Notification) => void) | undefined
  /**
   * Hears under which id the request is sent, right before it is. That is its progress token too, where `onProgress` asks for one, and
   * stays it for as long as a task lives that the request is answered with (2025-11-25); see `onStray` of a peer.
   */
  readonly onSend?: ((id: number) => void) | undefined
  /** Headers that mirror a part of the params, for a connection that `mirrors` them. */
  readonly headers?: Headers | undefined
  /** In the request era: what the question is known by when the handler runs again, instead of a digest of what is asked. */
  readonly key?: string | undefined
  /** In the request era, with a `key`: whether an answer counts that comes under it though nobody has asked yet. */
  readonly acceptUnsolicited?: boolean | undefined
}

/**
 * One run of a handler, of the several that its questions may cost in the request era, where nobody can be asked while a request
 * is handled.
 */
export interface Round {
  /** How a question reaches the client: through the answer of this request, after which its handler runs again. */
  readonly ask: (
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions | undefined
  ) => Effect.Effect<JsonRpc.JsonObject, McpError.McpError | RequestError>
  /** Runs what has to run once for a request, however often its handler runs. What the effect gives is JSON. */
  readonly once: <E, R>(key: string, effect: Effect.Effect<unknown, E, R>) => Effect.Effect<unknown, E, R>
}

/** What a dispatcher answers: an object, or a result that is JSON text already. */
export type Answer = JsonRpc.Success["result"]

/**
 * The one entry to a server or a client: from a request to its result. It is called by a `Peer` and by a lone `RequestContext`
 * alike, so that no feature is written twice for two eras.
 */
export type Dispatcher<R = never> = (exchange: RequestContext) => Effect.Effect<Answer, McpError.McpError, R>

/** The request that is being handled. Provided to every handler. */
export class McpRequest extends Context.Service<McpRequest, RequestContext>()("@skein/runtime/McpRequest") {}

/** Progress of a request: `progress` grows with every report, `total` and `message` are optional. */
export interface Progress {
  readonly progress: number
  readonly total?: number | undefined
  readonly message?: string | undefined
}

/** What an exchange needs of what it lives in: a `Peer`, or an endpoint that serves lone requests. */
export interface Owner {
  /** Starts the exchange's effect at once, with its services; or the one that answers in its stead. */
  readonly run: (
    exchange: RequestContext,
    instead?: Effect.Effect<Answer, McpError.McpError>
  ) => Fiber.Fiber<Answer, McpError.McpError>
  /** Sends the answer. May throw what `JsonRpc.encode` throws. */
  readonly answer: (exchange: RequestContext, message: JsonRpc.Success | JsonRpc.Failure) => void
  /** The exchange ends and nothing is to be said. */
  readonly drop: (exchange: RequestContext) => void
  /** Sends a notification about the exchange; `false` when whoever can wait should wait for `drained`. */
  readonly say: (exchange: RequestContext, method: string, params: JsonRpc.JsonObject) => boolean
  readonly drained: (exchange: RequestContext) => Effect.Effect<void>
  /** Asks the other side something for the exchange's sake, in the session era. */
  readonly ask: (
    exchange: RequestContext,
    method: string,
    params: JsonRpc.JsonObject | undefined,
    options: CallOptions | undefined
  ) => Effect.Effect<JsonRpc.JsonObject, McpError.McpError | RequestError>
  /** Ends the HTTP connection that waits for the answer, but not the exchange. What has no such thing omits it. */
  readonly detach?: ((exchange: RequestContext, retry: number | undefined) => void) | undefined
  /** The exchange did not end at once. */
  readonly suspended: (exchange: RequestContext) => void
  /** An exchange that was suspended is over, and its answer was sent. */
  readonly resumed: (exchange: RequestContext) => void
  /** A handler died, or its result had no JSON form. */
  readonly defect: (exchange: RequestContext, cause: Cause.Cause<unknown>, reference: string) => void
}

const progressTokenOf = (params: JsonRpc.JsonObject | undefined): JsonRpc.Id | undefined => {
  const meta = params?.["_meta"]
  const token = JsonRpc.isObject(meta) ? meta["progressToken"] : undefined
  return JsonRpc.isId(token) ? token : undefined
}

/** A handler may be written without types, and `JSON.stringify` asks a value's `toJSON` what to write. */
const resultOf = (value: Answer): Answer => {
  const toJSON = (value as { readonly toJSON?: unknown } | null | undefined)?.toJSON
  const written: unknown = typeof toJSON === "function" ? toJSON.call(value, "") : value
  if (JsonRpc.isObject(written)) return value
  throw new TypeError("The result is not an object")
}

// Of a question that a human answers.
const timeout = "10 minutes"

/** One request in flight. See the module's text. */
export class RequestContext {
  readonly id: JsonRpc.Id
  readonly method: string
  readonly params: JsonRpc.JsonObject | undefined
  readonly caller: Caller
  /** What the transport knows of it. */
  readonly origin: Origin | undefined
  /** Opens the round of its questions, in the request era. The dispatcher of a server gives it, where the method may ask. */
  rounds: ((exchange: RequestContext) => Round) | undefined = undefined
  /** The round, once it was needed. */
  round: Round | undefined = undefined
  /**
   * Answers in the handler's stead, when the handler was interrupted for it: the questions that have to be asked first. Whoever
   * interrupts the fiber sets it before.
   */
  instead: Effect.Effect<Answer, McpError.McpError> | undefined = undefined
  /** Asks a request that goes on for as long as it is let (`subscriptions/listen`) to end by itself: this side shuts down. */
  release: (() => void) | undefined = undefined
  /** When it suspended, in milliseconds of the monotonic clock; undefined for one that did not. */
  startedAt: number | undefined = undefined
  /** The last progress that was reported. */
  reported: Progress | undefined = undefined
  readonly #owner: Owner
  #fiber: Fiber.Fiber<Answer, McpError.McpError> | undefined = undefined
  #cancelled = false
  #stopped = false
  #finished = false

  constructor(owner: Owner, request: JsonRpc.Request, caller: Caller, origin?: Origin) {
    this.#owner = owner
    this.id = request.id
    this.method = request.method
    this.params = request.params
    this.caller = caller
    this.origin = origin
  }

  /** How long a question that a human answers may take, where it does not say: ten minutes. */
  get patience(): Duration.Input | undefined {
    return timeout
  }

  /** The fiber that handles it, while it is suspended. */
  get fiber(): Fiber.Fiber<Answer, McpError.McpError> | undefined {
    return this.#fiber
  }

  /** Whether it is over. */
  get finished(): boolean {
    return this.#finished
  }

  /** Whether it was cancelled: by the other side, or because this side stops. Nothing is sent about it from then on. */
  get cancelled(): boolean {
    return this.#cancelled
  }

  /**
   * Whether it was cancelled because this side stops. The other side may want the answer still: what goes on without the request
   * may be left to go on.
   */
  get stopped(): boolean {
    return this.#stopped
  }

  /** Runs the request. It is over when this returns, or it has told its owner that it is suspended. */
  start(): void {
    const fiber = this.#owner.run(this)
    const exit = fiber.pollUnsafe()
    if (exit !== undefined) return this.#done(exit)
    this.#fiber = fiber
    this.#owner.suspended(this)
    this.#observe(fiber)
  }

  #observe(fiber: Fiber.Fiber<Answer, McpError.McpError>): void {
    fiber.addObserver((exit) => {
      const { instead } = this
      if (instead !== undefined && !this.#cancelled && Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)) {
        this.instead = undefined
        this.#fiber = this.#owner.run(this, instead)
        return this.#observe(this.#fiber)
      }
      this.#done(exit)
      this.#owner.resumed(this)
    })
  }

  /**
   * The handler is interrupted, and nothing is said: the other side wants no answer any more, or is gone; or, `stopping`, this side
   * stops.
   */
  cancel(stopping = false): void {
    if (this.#cancelled || this.#finished) return
    this.#cancelled = true
    this.#stopped = stopping
    this.#fiber?.interruptUnsafe()
  }

  /**
   * Tells the other side how far the request has come, if it asked (2024-11-05 and later, `notifications/progress`).
   *
   * Does nothing when no progress token was sent, when the value is not greater than the last one, and after the end. A `total`
   * that is not finite is left out. Waits while the other side is slow to read, which is what limits the rate.
   */
  progress(progress: Progress): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!(Number.isFinite(progress.progress) && progress.progress > (this.reported?.progress ?? -Infinity))) {
        return Effect.void
      }
      if (this.#finished || this.#cancelled) return Effect.void
      this.reported = progress
      const progressToken = progressTokenOf(this.params)
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
   * Sends a notification that belongs to this request. Nothing is sent after the end. Waits while the other side is slow to
   * read. Parameters without JSON form are a defect.
   */
  notify(method: string, params: JsonRpc.JsonObject): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#finished || this.#cancelled) return Effect.void
      return this.#owner.say(this, method, params) ? Effect.void : this.#owner.drained(this)
    })
  }

  /**
   * Asks the other side something for this request's sake: in the session era with a request of its own, on the stream that
   * belongs to this one; in the request era through the answer of this request, after which the handler runs again. It fails
   * with `RequestError` `Unsupported` where this request cannot be answered so, and with `Closed` after its end.
   */
  request(
    method: string,
    params?: JsonRpc.JsonObject,
    options?: CallOptions
  ): Effect.Effect<JsonRpc.JsonObject, McpError.McpError | RequestError> {
    return Effect.suspend(() => {
      if (this.#finished || this.#cancelled) {
        const message = `${this.method} is over: ${method} was not sent`
        return Effect.fail(new RequestError({ reason: new Closed({ message }), method }))
      }
      if (Revision.era(this.caller.revision) === "session") return this.#owner.ask(this, method, params, options)
      if (this.rounds !== undefined) return (this.round ??= this.rounds(this)).ask(method, params, options)
      const message = `Nobody can be asked about ${this.method} in ${this.caller.revision}: ${method} was not sent`
      return Effect.fail(new RequestError({ reason: new Unsupported({ message }), method }))
    })
  }

  /**
   * Ends the HTTP connection on which the client waits, but not the request: the client comes back for the rest, after `retry`
   * milliseconds (2025-11-25, transports: polling). Does nothing on other transports and in other revisions.
   */
  disconnect(retry?: number): Effect.Effect<void> {
    return Effect.sync(() => {
      if (!this.#finished && !this.#cancelled) this.#owner.detach?.(this, retry)
    })
  }

  #done(exit: Exit.Exit<Answer, McpError.McpError>): void {
    this.#finished = true
    if (this.#cancelled) return this.#owner.drop(this)
    if (Exit.isSuccess(exit)) {
      try {
        return this.#owner.answer(this, JsonRpc.success(this.id, resultOf(exit.value)))
      } catch (error) {
        return this.#fault(Cause.die(error))
      }
    }
    const reason = exit.cause.reasons.find(Cause.isFailReason)
    if (reason === undefined || exit.cause.reasons.some(Cause.isDieReason)) return this.#fault(exit.cause)
    if (!McpError.isMcpError(reason.error)) return this.#fault(exit.cause)
    try {
      this.#fail(reason.error)
    } catch (error) {
      this.#fault(Cause.die(error))
    }
  }

  /** A defect, a result that is none, or a handler that interrupted itself: what is answered says nothing but a reference. */
  #fault(cause: Cause.Cause<unknown>): void {
    const reference = globalThis.crypto.randomUUID()
    this.#owner.defect(this, cause, reference)
    this.#fail(McpError.internal(reference))
  }

  #fail(error: McpError.McpError): void {
    this.#owner.answer(this, JsonRpc.failure(this.id, McpError.toErrorObject(error, this.caller.revision)))
  }
}
