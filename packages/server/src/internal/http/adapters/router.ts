/**
 * The adapter of an endpoint to Effect's `HttpRouter`.
 */
import * as Header from "@skein/protocol/Header"
import type { Principal } from "@skein/runtime/Connection"
import * as ByteSize from "effect/ByteSize"
import * as Cause from "effect/Cause"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as HttpHeaders from "effect/http/Headers"
import * as HttpBody from "effect/http/HttpBody"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import type { HttpServerError } from "effect/http/HttpServerError"
import { fromClientRequest, HttpServerRequest } from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { forwardedAddress } from "../../base/client.ts"
import {
  type Body,
  type BodyCounter,
  decodeBody,
  type Headers,
  type HeadFault,
  type HttpAnswer,
  type HttpRequest
} from "../messages/adapter.ts"
import * as head from "../messages/head.ts"
import { BodyCollector } from "./bodyCollector.ts"
import { highWaterMark, largeAnswer, StreamingAnswer } from "./streamingAnswer.ts"

const services = /* @__PURE__ */ Context.omit(Scope.Scope, Layer.CurrentMemoMap)

const isTooLarge = (error: HttpServerError): boolean =>
  error.reason._tag === "RequestParseError" && error.reason.reason === "BodyTooLarge"

// The most bytes of a body that are counted before they arrive: a longer one is read as a stream.
const short = 16 * 1024

/** The outcome of reading a body. A body whose connection broke fails as one that cannot be parsed. */
const bodyOf = (exit: Exit.Exit<ArrayBuffer, HttpServerError>): Body => {
  if (exit._tag === "Success") return decodeBody(exit.value)
  const failed = exit.cause.reasons.find(Cause.isFailReason)
  return { fault: failed !== undefined && isTooLarge(failed.error) ? "TooLarge" : "Aborted" }
}

/** The request of `node:http` behind a request of the router. On another platform the source is a `Request`. */
const messageOf = ({ source }: HttpServerRequest): head.Message | undefined =>
  "rawHeaders" in source ? source as head.Message : undefined

/**
 * A copy of a request without some headers. `modify` would keep the `source` of the platform, which has all of them, and
 * `toWeb` returns it. The body is empty, because the endpoint has read it.
 */
const withoutHeaders = (request: HttpServerRequest, names: ReadonlySet<string>): HttpServerRequest => {
  const { method, originalUrl, peerAddress, protocol, remoteAddress, url } = request
  const headers = HttpHeaders.removeMany(request.headers, [...names])
  const copy = HttpClientRequest.makeWith(method, originalUrl, [], Option.none(), headers, HttpBody.empty)
  return fromClientRequest(copy).modify({
    url,
    remoteAddress,
    peerAddress,
    ...(protocol === undefined ? undefined : { protocol })
  })
}

/** The request of a route, as an endpoint reads it. */
export class RouterRequest implements HttpRequest {
  size = 0
  principal: Principal | undefined
  readonly #request: HttpServerRequest
  readonly #headers: HttpServerRequest["headers"]
  readonly #answer: RouterAnswer
  readonly #trustedProxies: number
  readonly #all: Context.Context<never>
  /** The headers that handlers cannot read, if the request is authenticated. */
  readonly #withheld: ReadonlySet<string> | undefined
  #services: Context.Context<never> | undefined

  constructor(
    request: HttpServerRequest,
    answer: RouterAnswer,
    context: Context.Context<never>,
    principal: Principal | undefined,
    trustedProxies: number,
    withheld: ReadonlySet<string> | undefined
  ) {
    this.#withheld = withheld
    this.principal = principal
    this.#trustedProxies = trustedProxies
    this.#request = request
    this.#headers = request.headers
    this.#answer = answer
    this.#all = context
  }

  get headFault(): HeadFault | undefined {
    const message = messageOf(this.#request)
    if (message === undefined) return undefined
    // The router still answers requests after `Connection: close`. This one must not reach a handler.
    return head.isAfterEnd(message) ? "Framing" : head.faultOf(message)
  }

  get urlHost(): string | undefined {
    const { source } = this.#request
    return "rawHeaders" in source ? undefined : head.urlHostOf(source, head.url.exec((source as Request).url))
  }

  get method(): string {
    return this.#request.method
  }

  get path(): string {
    const { url } = this.#request
    const query = url.indexOf("?")
    return query < 0 ? url : url.slice(0, query)
  }

  get query(): string | undefined {
    const { url } = this.#request
    const query = url.indexOf("?")
    return query < 0 ? undefined : url.slice(query + 1)
  }

  /**
   * The services without the scope of the route, which closes with the response: handlers of a session may continue
   * after that.
   */
  get context(): Context.Context<never> {
    return this.#services ??= this.#withheld === undefined
      ? services(this.#all)
      : Context.add(
        services(this.#all),
        HttpServerRequest,
        withoutHeaders(this.#request, this.#withheld)
      )
  }

  get address(): string | undefined {
    return forwardedAddress(this.header("x-forwarded-for"), this.#trustedProxies, this.peerAddress)
  }

  get peerAddress(): string | undefined {
    return Option.getOrUndefined(this.#request.remoteAddress)
  }

  header(name: string): string | undefined {
    return this.#headers[name] ?? (name === "host" ? this.urlHost : undefined)
  }

  get params(): ReadonlyArray<string> | undefined {
    const message = messageOf(this.#request)
    if (message !== undefined) return head.paramsOf(message.rawHeaders)
    let params: Array<string> | undefined
    for (const name in this.#headers) if (name.startsWith(Header.paramKeyPrefix)) (params ??= []).push(name)
    return params
  }

  read(limit: number, done: (body: Body) => void, counter: BodyCounter): void {
    const length = Number(this.header("content-length"))
    if (length > limit) return done({ fault: "TooLarge" })
    // The rest of a body that is not needed is read and dropped, until the connection is closed.
    const body = new BodyCollector(this, limit, done, counter)
    if (length <= short) {
      const context = Context.add(this.#all, HttpIncomingMessage.MaxBodySize, ByteSize.bytes(limit))
      this.#run(Effect.provideContext(this.#request.arrayBuffer, context), (exit) => body.end(bodyOf(exit)))
      // Its parts cannot be observed.
      if (!body.isOver) body.arrived(length)
      return
    }
    // As a stream: `arrayBuffer` would store its chunks separately until the end.
    const all = Stream.runForEachArray(
      this.#request.stream,
      (chunks) => Effect.sync(() => chunks.forEach((chunk) => body.add(chunk, length)))
    )
    this.#run(all, (exit) => Exit.isSuccess(exit) ? body.complete() : body.end({ fault: "Aborted" }))
  }

  /** Reads the body, until the client disconnects. */
  #run<A>(reading: Effect.Effect<A, HttpServerError>, ended: (exit: Exit.Exit<A, HttpServerError>) => void): void {
    const fiber = this.#answer.reading = Effect.runForkWith(this.#all)(reading)
    fiber.addObserver((exit) => {
      this.#answer.reading = undefined
      ended(exit)
    })
  }
}

// How many bytes of an answer are handed to the connection at once.
const maxTaken = 64 * 1024

// The head of a stream is sent with its first chunk, and the first message may come much later.
const primer: readonly [Uint8Array] = [new Uint8Array(0)]

/** The answer to a request. The response of the route is made when its head is known. */
export class RouterAnswer extends StreamingAnswer implements HttpAnswer {
  /** The fiber that reads the body, while it does. */
  reading: Fiber.Fiber<unknown, HttpServerError> | undefined = undefined
  readonly #request: HttpServerRequest
  readonly #scope: Scope.Scope
  readonly #settle: (response: Effect.Effect<HttpServerResponse.HttpServerResponse>) => void
  #chunks: Array<Uint8Array> = []
  #size = 0
  #primed = false
  #aborted = false
  /** Takes the next chunks, while the stream waits for them. */
  #taker: ((chunks: Pulled) => void) | undefined = undefined

  constructor(
    request: HttpServerRequest,
    scope: Scope.Scope,
    settle: (response: Effect.Effect<HttpServerResponse.HttpServerResponse>) => void
  ) {
    super()
    this.#request = request
    this.#scope = scope
    this.#settle = settle
  }

  get slow(): boolean {
    return !this.isClosed && this.#size >= highWaterMark
  }

  get unsent(): number {
    return this.#size
  }

  reply(status: number, headers: Headers, body: string): void {
    if (this.isClosed) return
    if (body.length > largeAnswer) return this.replyInParts(status, headers, body)
    this.isClosed = true
    const message = headers["connection"] === "close" ? messageOf(this.#request) : undefined
    if (message !== undefined) head.endConnection(message)
    const all = this.#all(headers)
    // Without a length Node writes chunks, or closes the connection of a client of HTTP/1.0.
    const response = body !== ""
      ? HttpServerResponse.text(body, { status, headers: all })
      : HttpServerResponse.empty({ status, headers: status === 204 ? all : { ...all, "content-length": "0" } })
    this.#settle(Effect.succeed(response))
  }

  open(status: number, headers: Headers): void {
    if (this.isClosed) return
    const all = this.#all(headers)
    const response = HttpServerResponse.stream(Stream.fromPull(Effect.sync(() => this.#pull())), {
      status,
      headers: all,
      contentType: all["content-type"]!
    })
    // The stream of the response is never started if the client disconnects early; the scope of the route is closed in
    // any case.
    const watched = Scope.addFinalizer(this.#scope, Effect.sync(() => this.left()))
    this.#settle(Effect.as(watched, response))
  }

  /** Effect's server closes the connection after a request with an `Upgrade`, such as the first one of a Java client. */
  #all(headers: Headers): Headers {
    const all = this.withAdded(headers)
    return messageOf(this.#request)?.upgrade === true ? { ...all, connection: "close" } : all
  }

  protected enqueue(bytes: Uint8Array): void {
    this.#chunks.push(bytes)
    this.#size += bytes.byteLength
    this.#give()
  }

  end(): void {
    if (this.isClosed) return
    this.isClosed = true
    this.closeListener = undefined
    this.#give()
    this.took()
  }

  abort(): void {
    // The end of a stream may still be unsent.
    if (this.isClosed && this.#size === 0) return
    this.#aborted = true
    this.#clear()
    if (this.isClosed) {
      this.took()
      return this.#give()
    }
    // Before the head is sent, the route has no connection of its own to close.
    this.#settle(Effect.succeed(HttpServerResponse.empty({ status: 503 })))
    this.end()
  }

  onClose(left: () => void): void {
    if (!this.isClosed) this.closeListener = left
  }

  /** The client has disconnected. */
  left(): void {
    this.reading?.interruptUnsafe()
    this.#clear()
    if (this.isClosed) return this.took()
    const onClose = this.closeListener
    this.end()
    onClose?.()
  }

  #pull(): Pulled {
    const wait: Pulled = Effect.callback((resume) => {
      this.#taker = resume
      return Effect.sync(() => {
        this.#taker = undefined
      })
    })
    return Effect.suspend((): Pulled => {
      if (this.#primed) return this.#take() ?? wait
      this.#primed = true
      return Effect.succeed(primer)
    })
  }

  #clear(): void {
    this.#chunks = []
    this.#size = 0
  }

  /** The next chunks or the end of the stream; undefined if there is nothing yet. */
  #take(): Pulled | undefined {
    if (this.#aborted) return Effect.interrupt
    if (this.#chunks.length === 0) return this.isClosed ? Cause.done() : undefined
    // At most as much as the connection should buffer.
    let [count, size] = [0, 0]
    while (count < this.#chunks.length && size < maxTaken) size += this.#chunks[count++]!.byteLength
    const chunks = this.#chunks.splice(0, count)
    this.#size -= size
    this.took()
    return Effect.succeed(chunks as [Uint8Array, ...Array<Uint8Array>])
  }

  #give(): void {
    const taker = this.#taker
    const next = taker === undefined ? undefined : this.#take()
    if (next === undefined) return
    this.#taker = undefined
    taker!(next)
  }
}

/** One or more chunks, or the end. */
type Pulled = Effect.Effect<readonly [Uint8Array, ...ReadonlyArray<Uint8Array>], Cause.Done>
