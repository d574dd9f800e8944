/**
 * The requests of the request era: each is an exchange of its own with the HTTP answer that belongs to it. They share nothing, so
 * that their ids may be equal.
 */
import * as Header from "@skein/protocol/Header"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import { type Answer, type Caller, type CallOptions, type Owner, RequestContext } from "@skein/runtime/RequestContext"
import { RequestError } from "@skein/runtime/RequestError"
import type * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Fiber from "effect/Fiber"
import { logged, quoted } from "../text.ts"
import type { Host } from "../dispatch/serverCore.ts"
import { monotonicMillis } from "../time.ts"
import type { HttpAnswer, HttpRequest } from "./adapter.ts"
import type { Gauge } from "./gauge.ts"
import type { KeepAlive } from "./keepAlive.ts"
import * as mirrored from "./paramHeaders.ts"
import type { Resolved } from "./options.ts"
import type { Parts } from "./context.ts"
import { because, closing, json, tooMany, tooManyStreams } from "./refusal.ts"
import type { Refusals } from "./refusals.ts"
import * as sse from "./sse.ts"
import { Unsent } from "./slowReaderBuffer.ts"
import { Waiters } from "./waiters.ts"

/** A lone request in flight. */
class Turn extends RequestContext {
  readonly to: HttpAnswer
  readonly from: HttpRequest
  /** What waits of the answer's stream, once that has begun. */
  unsent: Unsent | undefined = undefined
  /** Where the stream is kept alive, while the request is suspended. */
  slot: number | undefined = undefined

  constructor(owner: Owner, request: JsonRpc.Request, caller: Caller, from: HttpRequest, to: HttpAnswer) {
    super(owner, request, caller, from)
    this.to = to
    this.from = from
  }

  /** Whether the answer is a stream, which has begun. */
  get streams(): boolean {
    return this.unsent !== undefined
  }

  get listens(): boolean {
    return this.method === listen
  }
}

const listen = "subscriptions/listen"

/**
 * The HTTP status of an error that came out of a request. What a handler fails with is a payload like any other, 200. The
 * exceptions are those of the specification: "If the server does not implement the requested RPC method, it MUST respond with
 * `404 Not Found`"; and 400 where the client lacks a capability.
 */
const statusOf = ({ code }: JsonRpc.ErrorObject): number => code === -32601 ? 404 : code === -32021 ? 400 : 200

/** The lone requests of an endpoint. */
export class Lone implements Owner {
  readonly #host: Host
  readonly #options: Resolved
  readonly #context: Context.Context<never>
  readonly #keepAlive: KeepAlive
  readonly #gauge: Gauge
  readonly #refusals: Refusals
  readonly #interruptTimeout: number
  readonly #clock: Clock.Clock
  /** Those that did not end at once. */
  readonly #turns = new Set<Turn>()
  #closing = false
  /** Who waits until there are none. */
  readonly #waiting = new Waiters()

  constructor({ context, gauge, host, keepAlive, limits, options, refusals }: Parts) {
    this.#host = host
    this.#options = options
    this.#context = context
    this.#keepAlive = keepAlive
    this.#gauge = gauge
    this.#refusals = refusals
    this.#interruptTimeout = limits.interruptTimeout
    this.#clock = Context.get(context, Clock.Clock)
  }

  /** The suspended ones, oldest first. */
  get exchanges(): Iterable<RequestContext> {
    return this.#turns
  }

  /** Validates a request and handles it. */
  start(message: JsonRpc.Request, from: HttpRequest, to: HttpAnswer): void {
    const { id, params } = message
    const version = RequestMeta.versionOf(params)
    const stated = from.header(Header.keys.protocolVersion)
    // Without `_meta` the header alone makes it one of this era, and `_meta` is what is missing.
    if (stated !== version && (version !== undefined || stated === undefined)) {
      const wrong = Header.mismatch(Header.names.protocolVersion, stated, version ?? "")
      if (wrong !== undefined) return this.#refusals.refuse(to, because(McpError.headerMismatch(wrong)), id)
    }
    const caller = this.#host.identify(message, from)
    if ("error" in caller) return this.#refusals.refuse(to, because(caller.error, caller.revision), id)
    const wrong = mirrored.mismatch(this.#host.catalog, message, from, caller, true)
    if (wrong !== undefined) {
      return this.#refusals.refuse(to, because(McpError.headerMismatch(wrong), caller.revision), id)
    }
    if (message.method === listen) {
      if (this.#gauge.streams >= this.#options.maxStreams) return this.#refusals.refuse(to, tooManyStreams, id)
    } else if (this.#gauge.requests >= this.#options.maxConcurrentRequests) {
      return this.#refusals.refuse(to, tooMany, id)
    }
    new Turn(this, message, caller, from, to).start()
  }

  /** The connections of the requests are to be closed within the grace: what listens ends by itself, what runs may finish. */
  get close(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#closing = true
      for (const turn of this.#turns) turn.release?.()
      return Effect.andThen(this.#settled(this.#options.shutdownTimeout), () => {
        for (const turn of this.#turns) turn.cancel(true)
        return Effect.andThen(this.#settled(this.#interruptTimeout), () => this.#leave())
      })
    })
  }

  #settled(millis: number): Effect.Effect<unknown> {
    return Effect.timeoutOption(this.#waiting.until(() => this.#turns.size === 0), millis)
  }

  #leave(): Effect.Effect<void> {
    if (this.#turns.size === 0) return Effect.void
    const names = Array.from(this.#turns, ({ method }) => logged(method)).slice(0, 10).join(", ")
    for (const turn of this.#turns) turn.to.abort()
    return Effect.logWarning(`${this.#turns.size} requests did not end when they were interrupted: ${names}`)
  }

  // ---- what an exchange needs; each is a `Turn`, since nobody else makes any with this owner

  run(
    exchange: RequestContext,
    instead?: Effect.Effect<Answer, McpError.McpError>
  ): Fiber.Fiber<Answer, McpError.McpError> {
    const { context } = (exchange as Turn).from
    const services = context === undefined ? this.#context : Context.merge(context, this.#context)
    return this.#host.run(services, exchange, instead)
  }

  answer(exchange: RequestContext, message: JsonRpc.Success | JsonRpc.Failure): void {
    const turn = exchange as Turn
    const text = JsonRpc.encode(message)
    if (!turn.streams) {
      const status = message._tag === "Success" ? 200 : statusOf(message.error)
      if (status !== 200 || this.#options.alwaysStream !== true) return turn.to.reply(status, json, text)
      this.#stream(turn)
    }
    turn.to.write(sse.message(text))
    this.#end(turn)
  }

  /** Whoever asked is gone; or they are not, and this side ends. A client that heard of nothing might wait for ever. */
  drop(exchange: RequestContext): void {
    const turn = exchange as Turn
    if (!turn.streams) return turn.to.over ? undefined : this.#refusals.refuse(turn.to, closing, turn.id)
    if (!turn.to.over) turn.to.write(sse.message(JsonRpc.encode(JsonRpc.failure(turn.id, closing.error))))
    this.#end(turn)
  }

  say(exchange: RequestContext, method: string, params: JsonRpc.JsonObject): boolean {
    const text = JsonRpc.encode(JsonRpc.notification(method, params))
    const turn = exchange as Turn
    this.#stream(turn)
    return turn.unsent!.write(turn.to, sse.message(text)) ?? this.#cut(turn)
  }

  /** Who reads nothing is as good as gone. */
  #cut(turn: Turn): true {
    turn.to.abort()
    turn.cancel()
    const message = `A client does not read: its request was cancelled, with ${turn.unsent!.size} characters unsent`
    Effect.runForkWith(this.#context)(Effect.logWarning(message))
    return true
  }

  drained(exchange: RequestContext): Effect.Effect<void> {
    return (exchange as Turn).to.drained
  }

  /** Never called: in this era what is to be asked travels in the result. */
  ask(
    _exchange: RequestContext,
    method: string,
    _params: JsonRpc.JsonObject | undefined,
    _options: CallOptions | undefined
  ): Effect.Effect<never, RequestError> {
    return Effect.fail(new RequestError({ reason: "Unsupported", method, message: `${method} cannot be asked here` }))
  }

  suspended(exchange: RequestContext): void {
    const turn = exchange as Turn
    turn.startedAt = monotonicMillis(this.#clock)
    this.#turns.add(turn)
    if (turn.streams) turn.slot = this.#keepAlive.add(turn.to)
    const { size } = turn.from
    if (turn.listens) {
      this.#gauge.listens(size)
      this.#stream(turn)
    } else this.#gauge.began(size)
    // "Closing the SSE response stream MUST be treated by the server as cancellation of that request."
    if (turn.to.over) turn.cancel()
    else turn.to.onClose(() => turn.cancel())
    if (this.#closing) turn.release?.()
  }

  resumed(exchange: RequestContext): void {
    const turn = exchange as Turn
    this.#turns.delete(turn)
    if (turn.listens) this.#gauge.left(turn.from.size)
    else this.#gauge.ended(turn.from.size)
    if (turn.slot !== undefined) this.#keepAlive.remove(turn.to, turn.slot)
    if (this.#turns.size === 0) this.#waiting.wake()
  }

  defect({ method, params }: RequestContext, cause: Cause.Cause<unknown>, reference: string): void {
    const name = params?.["name"]
    const about = typeof name === "string" ? `${logged(method)} ${quoted(name)}` : logged(method)
    Effect.runForkWith(this.#context)(Effect.logError(`${about} failed, reference ${reference}`, cause))
  }

  #stream(turn: Turn): void {
    if (turn.streams) return
    turn.unsent = new Unsent(this.#options.maxUnsentChars)
    turn.to.open(200, sse.headers)
    this.#host.observer?.streamOpened()
    if (turn.startedAt !== undefined) turn.slot = this.#keepAlive.add(turn.to)
  }

  #end({ to }: Turn): void {
    this.#host.observer?.streamClosed()
    to.end()
  }
}
