/**
 * Stateless requests over HTTP (2026-07-28): each POST is one request, with a response of its own. They share nothing,
 * so their ids may be equal.
 */
import * as Header from "@skein/protocol/Header"
import * as JsonRpc from "@skein/protocol/JsonRpc"
import * as McpError from "@skein/protocol/McpError"
import * as RequestMeta from "@skein/protocol/RequestMeta"
import { logValue } from "@skein/protocol/Text"
import { Exchange, type ResponseSink } from "@skein/runtime/RequestContext"
import { logInterrupted } from "@skein/runtime/RequestRunner"
import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { clientOf } from "../../base/client.ts"
import type { HttpAnswer, HttpRequest } from "../messages/adapter.ts"
import type { EndpointContext } from "../sessions/context.ts"
import type { Claim, Share } from "../limits/load.ts"
import type { SilentAnswer } from "../limits/silentAnswers.ts"
import { memoryOf } from "../limits/memory.ts"
import * as paramHeaders from "../messages/paramHeaders.ts"
import {
  displaced,
  fromError,
  type HttpRefusal,
  interrupted,
  json,
  logDisplaced,
  tooManyRequests,
  tooManyStreams
} from "../messages/refusals.ts"
import * as sse from "../messages/sse.ts"

const listen = "subscriptions/listen"

/**
 * The HTTP status of an error response. An error of a handler has 200, like a result, unless it was made by
 * `McpError.withHttp`. The specification has two exceptions: "If the server does not implement the requested RPC method, it MUST respond with `404 Not Found`", and
 * 400 if the client lacks a capability.
 */
const statusOf = ({ code }: JsonRpc.ErrorObject): number => code === -32601 ? 404 : code === -32021 ? 400 : 200

/** About how many bytes a suspended request retains. The caller is a part of the params. */
const retainedBytes = ({ caller, params, retainedBytes }: Exchange): number =>
  params === undefined ? (retainedBytes ?? 0) + memoryOf([caller.info, caller.capabilities]) : memoryOf(params)

/** The stateless requests of an endpoint. */
export class StatelessRequests {
  readonly endpoint: EndpointContext
  /** The responses to the requests that have suspended. */
  readonly suspended = new Set<StatelessResponse>()
  /** Opened when the last request has ended, while the endpoint closes. */
  readonly #idle = Latch.makeUnsafe(false)

  constructor(endpoint: EndpointContext) {
    this.endpoint = endpoint
  }

  /** The suspended requests, oldest first. */
  get suspendedRequests(): Iterable<Exchange> {
    return Array.from(this.suspended).flatMap(({ exchange }) => exchange ?? [])
  }

  /** Validates a request and handles it. */
  start(message: JsonRpc.Request, from: HttpRequest, to: HttpAnswer): void {
    const { core, refuse, runner } = this.endpoint
    const { id, params } = message
    const version = RequestMeta.versionOf(params)
    const header = from.header(Header.keys.protocolVersion)
    // Without `_meta`, the header alone makes the request a stateless one, and the `_meta` is missing.
    if (header !== version && (version !== undefined || header === undefined)) {
      const mismatch = Header.mismatch(Header.names.protocolVersion, header, version ?? "")
      if (mismatch !== undefined) return refuse(to, fromError(McpError.headerMismatch(mismatch)), id)
    }
    const caller = core.identifyStateless(message, from)
    if ("error" in caller) return refuse(to, fromError(caller.error, caller.revision), id)
    const mismatch = paramHeaders.mismatch(core.catalog, message, from, caller, true)
    if (mismatch !== undefined) {
      return refuse(to, fromError(McpError.headerMismatch(mismatch), caller.revision), id)
    }
    const overload = this.#overload(message, from)
    if (overload !== undefined) return refuse(to, overload, id)
    runner.start(new Exchange(new StatelessResponse(this, from, to), message, caller, from))
  }

  #overload({ method }: JsonRpc.Request, from: HttpRequest): HttpRefusal | undefined {
    const { load, options: { maxInFlightRequests, maxStreams } } = this.endpoint
    if (method === listen) {
      return load.streams >= maxStreams && !load.makeRoomFor("streams", clientOf(from)) ? tooManyStreams : undefined
    }
    return load.requests >= maxInFlightRequests && !load.makeRoomFor("requests", clientOf(from))
      ? tooManyRequests
      : undefined
  }

  /** A request that had suspended has ended. */
  remove(response: StatelessResponse): void {
    this.suspended.delete(response)
    if (this.endpoint.isClosing && this.suspended.size === 0) this.#idle.openUnsafe()
  }

  /**
   * Ends the requests: subscriptions return their results, the others may finish within `shutdownTimeout` and are
   * interrupted then.
   */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    const { bounds: { interruptTimeout }, shutdownTimeout } = this.endpoint.options
    for (const exchange of this.suspendedRequests) exchange.release?.()
    if (this.suspended.size === 0) this.#idle.openUnsafe()
    return Effect.andThen(Effect.timeoutOption(this.#idle.await, shutdownTimeout), () => {
      const interrupted = [...this.suspendedRequests]
      for (const exchange of interrupted) exchange.cancel(true)
      const stopped = Effect.timeoutOption(this.#idle.await, interruptTimeout)
      return Effect.andThen(logInterrupted(interrupted), Effect.andThen(stopped, () => this.#abandon()))
    })
  })

  #abandon(): Effect.Effect<void> {
    const { size } = this.suspended
    if (size === 0) return Effect.void
    const names = Array.from(this.suspendedRequests, ({ method }) => logValue(method)).slice(0, 10).join(", ")
    for (const response of this.suspended) response.abort()
    return Effect.logWarning(`${size} requests did not stop after their interruption: ${names}`)
  }
}

/** The response to one request: JSON if the result is the first message, a stream from the first notification on. */
class StatelessResponse implements ResponseSink, Claim, SilentAnswer {
  /** The request, once it has suspended. */
  exchange: Exchange | undefined = undefined
  share: Share | undefined = undefined
  bytes = 0
  readonly isWaiting = false
  readonly #requests: StatelessRequests
  readonly #from: HttpRequest
  readonly #to: HttpAnswer
  /** Set while the response is a stream. */
  #stream: sse.SlowReaderBuffer | undefined = undefined
  /** The slot of the stream for keep-alive comments, while the request is suspended. */
  #keepAliveSlot: number | undefined = undefined

  constructor(requests: StatelessRequests, from: HttpRequest, to: HttpAnswer) {
    this.#requests = requests
    this.#from = from
    this.#to = to
  }

  get #endpoint(): EndpointContext {
    return this.#requests.endpoint
  }

  get kind(): "streams" | "requests" {
    return this.exchange?.method === listen ? "streams" : "requests"
  }

  /** Completes a subscription, or answers with an error and cancels the request. */
  evict(): void {
    const exchange = this.exchange!
    this.#endpoint.load.remove(this)
    if (exchange.release !== undefined) return exchange.release()
    this.#endpoint.runner.log(logDisplaced)
    this.#fail(exchange, displaced)
    exchange.cancel()
  }

  respond(_exchange: Exchange, message: JsonRpc.Success | JsonRpc.Failure): void {
    const text = JsonRpc.encode(message)
    if (this.#stream === undefined) {
      const http = message._tag === "Success" ? undefined : message.error.http
      if (http !== undefined) return this.#to.reply(http.status, { ...json, ...http.headers }, text)
      const status = message._tag === "Success" ? 200 : statusOf(message.error)
      if (status !== 200 || this.#endpoint.options.alwaysStream !== true) return this.#to.reply(status, json, text)
      this.#openStream()
    }
    this.#to.write(sse.message(text))
    this.#endStream()
  }

  /**
   * Ends the response of a request without a result. A client that is still connected, because the server shuts down,
   * receives an error: without one it might wait forever.
   */
  discard(exchange: Exchange): void {
    this.#fail(exchange, interrupted)
  }

  #fail({ id }: Exchange, error: JsonRpc.ErrorObject): void {
    const text = JsonRpc.encode(JsonRpc.failure(id, error))
    const isGone = this.#to.isClosed
    if (this.#stream === undefined) return isGone ? undefined : this.#to.reply(200, json, text)
    if (!isGone) this.#to.write(sse.message(text))
    this.#endStream()
  }

  notify(exchange: Exchange, method: string, params: JsonRpc.JsonObject): boolean {
    const text = JsonRpc.encode(JsonRpc.notification(method, params))
    return this.#openStream().write(this.#to, sse.message(text)) ?? this.#cancelUnread(exchange)
  }

  /** A client that does not read is treated as disconnected. */
  #cancelUnread(exchange: Exchange): true {
    this.#to.abort()
    exchange.cancel()
    const message = `cancelled a request: its client does not read, and ${this.#stream!.size} characters are unsent`
    this.#endpoint.runner.log(Effect.logWarning(message))
    return true
  }

  isStreaming(): boolean {
    return this.#stream !== undefined
  }

  drained(): Effect.Effect<void> {
    return this.#to.drained
  }

  suspended(exchange: Exchange): void {
    const { core, keepAlive, load, options, silentAnswers, streamExpiry } = this.#endpoint
    this.exchange = exchange
    this.#requests.suspended.add(this)
    if (this.#stream !== undefined) this.#keepAliveSlot = keepAlive.add(this.#to)
    if (exchange.method === listen) this.#openStream()
    // "Closing the SSE response stream MUST be treated by the server as cancellation of that request." While the server
    // shuts down, a proxy may have closed it for that reason.
    const left = (): void => exchange.cancel(this.#endpoint.isClosing)
    if (this.#to.isClosed) left()
    else this.#to.onClose(left)
    if (this.#endpoint.isClosing) exchange.release?.()
    if (exchange.finished) return
    load.add(this, clientOf(this.#from), retainedBytes(exchange))
    if (exchange.method === listen) streamExpiry.add(this, this.#from.principal)
    // A method that the server lacks MUST be answered with 404, also by a middleware that takes long.
    if (this.#stream !== undefined || !core.hasMethod(exchange.received)) return
    if (options.alwaysStream === true) this.#openStream()
    else silentAnswers.add(this, exchange.startedAt!)
  }

  /** Begins the stream of a request that takes long. */
  beginStream(): void {
    if (this.#stream === undefined) this.#openStream().write(this.#to, sse.keepAlive)
  }

  ended(): void {
    const { keepAlive, load, silentAnswers, streamExpiry } = this.#endpoint
    this.#requests.remove(this)
    silentAnswers.remove(this)
    streamExpiry.remove(this)
    load.remove(this)
    if (this.#keepAliveSlot !== undefined) keepAlive.remove(this.#to, this.#keepAliveSlot)
  }

  /** Closes the connection without a response. */
  abort(): void {
    this.#to.abort()
  }

  #openStream(): sse.SlowReaderBuffer {
    if (this.#stream !== undefined) return this.#stream
    this.#stream = new sse.SlowReaderBuffer(this.#endpoint.options.bounds.maxUnsentChars)
    this.#to.open(200, sse.headers)
    this.#endpoint.core.observer?.streamOpened()
    if (this.exchange !== undefined) this.#keepAliveSlot = this.#endpoint.keepAlive.add(this.#to)
    return this.#stream
  }

  #endStream(): void {
    this.#stream = undefined
    this.#endpoint.core.observer?.streamClosed()
    this.#to.end()
  }
}
